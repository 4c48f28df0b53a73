"""Who asks: the key, the signature and the time of a request."""

from __future__ import annotations

import hmac
import re
from collections import deque
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from agent_gym.apps.sandbox.clock import SimulatedClock
from agent_gym.apps.sandbox.errors import (
    BAD_KEY_FORMAT,
    BAD_SIGNATURE,
    EARLY,
    LATE,
    LONG_WINDOW,
    UNAUTHORIZED,
    missing,
)
from agent_gym.apps.sandbox.keys import KEY_FORMAT, AccountKey
from agent_gym.apps.sandbox.market import MS_NS
from agent_gym.apps.sandbox.params import Params
from agent_gym.core.clock import Clock

DEFAULT_WINDOW_MS, LONGEST_WINDOW_MS, AHEAD_MS = 5_000, 60_000, 1_000
TOLD_CLOCKS = 64
_SIGNATURE = re.compile(rb"(?:^|&)signature=[^&]*")


class Access:
    """Checks requests against the keys of the accounts.

    A client's clock is right if it goes with the wall clock, with the simulated clock, or with what
    the simulated clock said when somebody asked for the time: a client that sets its watch by an
    exchange whose time stands still, or flies, must not be turned away for it.
    """

    def __init__(self, keys: Sequence[AccountKey], simulated: SimulatedClock, wall: Clock) -> None:
        self._keys, self._simulated, self._wall = tuple(keys), simulated, wall
        self._told: deque[int] = deque(maxlen=TOLD_CLOCKS)

    def time_was_told(self) -> None:
        """Remember how far apart the two clocks were when somebody asked."""
        self._told.append(self._simulated.now_ns() // MS_NS - self._wall.now_ns() // MS_NS)

    def account_of(self, api_key: str | None) -> AccountKey:
        """Return whose key this is."""
        if api_key is None or KEY_FORMAT.fullmatch(api_key) is None:
            raise BAD_KEY_FORMAT
        found = None
        for one in self._keys:
            if hmac.compare_digest(one.api_key, api_key):
                found = one
        if found is None:
            raise UNAUTHORIZED
        return found

    def check_signed(self, key: AccountKey, payload: bytes, params: Params) -> None:
        """Raise unless the request was signed with the secret, and lately."""
        signature = params.need("signature")
        stamp = params.whole("timestamp")
        if stamp is None:
            raise missing("timestamp")
        if not key.fits(payload, signature):
            raise BAD_SIGNATURE
        window = params.whole("recvWindow")
        if window is not None and window > LONGEST_WINDOW_MS:
            raise LONG_WINDOW
        self._check_time(stamp, DEFAULT_WINDOW_MS if window is None else window)

    def _check_time(self, stamp: int, window: int) -> None:
        wall = self._wall.now_ns() // MS_NS
        clocks = [wall, self._simulated.now_ns() // MS_NS, *(wall + apart for apart in self._told)]
        if any(-AHEAD_MS < now - stamp <= window for now in clocks):
            return
        raise LATE if all(stamp < now for now in clocks) else EARLY


def signed_part(query: bytes, body: bytes) -> bytes:
    """Return what a signature is made over: query and body, without the signature itself.

    Example:
        >>> signed_part(b"a=1&signature=ff", b"b=2")
        b'a=1b=2'
    """
    return _SIGNATURE.sub(b"", query) + _SIGNATURE.sub(b"", body)


def signed_words(params: Mapping[str, str]) -> bytes:
    """Return the same for a request over a websocket: the parameters in the order of their names.

    Example:
        >>> signed_words({"b": "2", "signature": "ff", "a": "1"})
        b'a=1&b=2'
    """
    pairs = sorted((name, value) for name, value in params.items() if name != "signature")
    return "&".join(f"{name}={value}" for name, value in pairs).encode()


def read_params(query: bytes, body: bytes) -> dict[str, str]:
    """Return the parameters of a request; those of the query win."""
    read = [
        dict(parse_qsl(part.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100))
        for part in (body, query)
    ]
    return read[0] | read[1]
