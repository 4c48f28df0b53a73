"""Sessions of people: whoever has shown a token gets a signed cookie, for the dashboard alone.

A cookie is ``<token id>.<end>.<number>.<signature>``. It says who came in, not what they may do:
the token is looked up again at every request, so one that is revoked ends its sessions too.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from agent_gym.apps.api.tokens import OTHERS, Token, TokenFile
from agent_gym.core.clock import HOUR_NS, SECOND_NS, Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError, StoreError

COOKIE = "agent_gym_session"
VARIABLE = "AGENT_GYM_SESSION_SECRET"
FILE = "session.key"
LIFE_NS = 12 * HOUR_NS
SHORTEST_SECRET = 32
FEWEST_SIGNS = 12
MOST_ENDED = 10_000
PLACEHOLDERS = ("change", "secret", "example", "password", "placeholder", "your", "default", "todo")
_SHAPE = re.compile(r"([0-9a-f]{8})\.(\d{1,19})\.([0-9a-f]{16})\.([0-9a-f]{64})")


def session_secret(folder: Path, environment: Mapping[str, str] | None = None) -> bytes:
    """Return what cookies are signed with: the environment's word, or a key of the folder's own.

    Raises:
        ConfigError: The environment names a secret that anybody could guess.
        DataError: Others may read the key.
    """
    said = (os.environ if environment is None else environment).get(VARIABLE)
    if said is not None:
        return _checked(said).encode()
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return _kept(path)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            made = secrets.token_hex(32)
            file.write(made + "\n")
    except OSError as error:
        raise _unkept(path, error) from error
    return made.encode()


def check_secret(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Raise what ``session_secret`` would raise for what is there; nothing is made."""
    said = (os.environ if environment is None else environment).get(VARIABLE)
    if said is not None:
        _checked(said)
    elif os.path.lexists(folder / FILE):
        try:
            _kept(folder / FILE)
        except OSError as error:
            raise _unkept(folder / FILE, error) from error


class Sessions:
    """Gives out cookies and knows them again.

    Args:
        tokens: Who may come in.
        secret: Signs the cookies.
        clock: Tells when a session has ended.
    """

    def __init__(self, tokens: TokenFile, secret: bytes, clock: Clock | None = None) -> None:
        self._tokens, self._secret, self._clock = tokens, secret, clock or SystemClock()
        self._ended: dict[str, None] = {}

    def begin(self, token_text: str) -> tuple[Token, str] | None:
        """Return whose token this is and the cookie of a new session; None if it is nobody's."""
        token = self._tokens.check(f"Bearer {token_text}")
        if token is None:
            return None
        said = f"{token.id}.{self._clock.now_ns() + LIFE_NS}.{secrets.token_hex(8)}"
        return token, f"{said}.{self._sign(said)}"

    def check(self, cookie: str) -> Token | None:
        """Return whose session this is; None if it is nobody's, has ended, or the token is gone."""
        shape = _SHAPE.fullmatch(cookie)
        if shape is None or shape[3] in self._ended:
            return None
        said = cookie.rpartition(".")[0]
        if not hmac.compare_digest(self._sign(said), shape[4]):
            return None
        now = self._clock.now_ns()
        if now >= int(shape[2]):
            return None
        found = next((each for each in self._tokens.all() if each.id == shape[1]), None)
        late = found is not None and found.expires_ns is not None and now >= found.expires_ns
        return None if late else found

    def end(self, cookie: str) -> None:
        """Let a session end before its time; so far as this service lives."""
        shape = _SHAPE.fullmatch(cookie)
        if shape is not None and self.check(cookie) is not None:
            self._ended[shape[3]] = None
            while len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]

    def _sign(self, said: str) -> str:
        return hmac.new(self._secret, said.encode(), sha256).hexdigest()


def cookie_header(value: str | None, *, path: str, secure: bool = False) -> str:
    """Return the header that sets the cookie; None takes it away.

    Example:
        >>> cookie_header(None, path="/dashboard")
        'agent_gym_session=; Path=/dashboard; HttpOnly; SameSite=Strict; Max-Age=0'
    """
    age = 0 if value is None else LIFE_NS // SECOND_NS
    safe = "; Secure" if secure else ""
    return f"{COOKIE}={value or ''}; Path={path}; HttpOnly; SameSite=Strict; Max-Age={age}{safe}"


def _checked(secret: str) -> str:
    low = secret.lower()
    guessed = any(word in low for word in PLACEHOLDERS) or len(set(secret)) < FEWEST_SIGNS
    if len(secret) < SHORTEST_SECRET or guessed:
        raise ConfigError(
            "the secret of the sessions could be guessed",
            where=f"environment variable {VARIABLE}",
            found=f"{len(secret)} characters, {len(set(secret))} different ones",
            expected=f"at least {SHORTEST_SECRET} random characters, no placeholder",
            remedy=f"Unset {VARIABLE}: a random key is made and kept in {FILE}",
        )
    return secret


def _unkept(path: Path, error: OSError) -> StoreError:
    what = "the key of the sessions cannot be kept"
    return StoreError(what, where=str(path), found=error.strerror)


def _kept(path: Path) -> bytes:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode) or mode & OTHERS:
        raise DataError(
            "others may read the key of the sessions",
            where=str(path),
            found=f"mode {mode:04o}",
            expected="a file of mode 0600",
            remedy=f"Run chmod 600 {path}",
        )
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise DataError(
            "this is no key of sessions",
            where=str(path),
            remedy="Remove the file; everybody then logs in again",
        )
    return text.encode()
