"""A ccxt client that asks a sandbox and nobody else, in the exchange's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode, urlsplit

import ccxt

from agent_gym.apps.sandbox.client import ccxt_options
from agent_gym.apps.sandbox_door.errors import ExchangeRefusal, NoSandbox
from agent_gym.core.errors import ConfigError

Method: TypeAlias = Literal["GET", "POST"]
START = "Start one with `agent-gym sandbox`, and give the address that it prints"


class SandboxClient:
    """Asks the exchange; nothing is sent before the address has shown that it is a sandbox.

    The real exchange speaks the same words, so a key or an order must not go there by a slip.

    Args:
        url: Where the sandbox listens.
        api_key: Key of an account.
        secret: Its secret.
    """

    def __init__(self, url: str, api_key: str, secret: str) -> None:
        self._url = checked_address(url)
        self._key = {"X-MBX-APIKEY": api_key}
        plain = {"quoteJsonNumbers": False, "enableLastJsonResponse": True}
        self._ccxt = ccxt.binance(ccxt_options(self._url, api_key, secret) | plain)
        self._ccxt.session.max_redirects = 0  # a key goes where it was meant to
        self._lock = Lock()
        self._interval: str | None = None

    def ask(self, request: str, params: Mapping[str, Any] | None = None) -> Any:
        """Ask the exchange, by ccxt's name of the request, such as ``privatePostOrder``."""
        with self._lock:
            self._check_sandbox()
            return self._carried(lambda: getattr(self._ccxt, request)(dict(params or {})))

    def session(self, method: Method, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Ask for the session itself: its clock, the score, its end."""
        with self._lock:
            self._check_sandbox()
            return self._session(method, path, params or {})

    def interval(self) -> str:
        """Return the period of the bars that are played."""
        with self._lock:
            return self._check_sandbox()

    def _session(self, method: Method, path: str, params: Mapping[str, Any]) -> Any:
        query = f"?{urlencode(params)}" if params else ""
        address = f"{self._url}/sandbox/{path}{query}"
        key = self._key if self._interval is not None else None
        return self._carried(lambda: self._ccxt.fetch(address, method, key))

    def _check_sandbox(self) -> str:
        if self._interval is None:
            clock = self._session("GET", "clock", {})
            if not isinstance(clock, dict) or not isinstance(clock.get("interval"), str):
                raise self._no_sandbox("something else listens here")
            self._interval = clock["interval"]
        return self._interval

    def _carried(self, ask: Callable[[], Any]) -> Any:
        """Ask, and tell what went wrong; the words of ccxt hold signatures and stay here."""
        self._ccxt.last_json_response = None
        try:
            return ask()
        except ccxt.RequestTimeout:
            raise NoSandbox(
                "the sandbox did not answer in time",
                where=self._url,
                expected=f"within {self._ccxt.timeout // 1000} s",
                remedy="It may be done yet: look at clock, open_orders and fills, then ask again",
            ) from None
        except ccxt.BaseError as error:
            said = self._ccxt.last_json_response
            if isinstance(said, dict) and "code" in said and "msg" in said:
                raise ExchangeRefusal(int(said["code"]), str(said["msg"])) from None
            raise self._no_sandbox(type(error).__name__) from None

    def _no_sandbox(self, found: str) -> NoSandbox:
        return NoSandbox("no sandbox answers", where=self._url, found=found, remedy=START)


def checked_address(url: str) -> str:
    """Return an address without a slash at its end, or say what is wrong with it.

    Example:
        >>> checked_address("http://127.0.0.1:8800/")
        'http://127.0.0.1:8800'
    """
    parts = urlsplit(url)
    extra = parts.username or parts.password or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or extra:
        raise ConfigError(
            "not the address of a sandbox",
            where="--sandbox",
            found=url[:200],
            expected="an address such as http://127.0.0.1:8800",
            remedy=START,
        )
    return url.rstrip("/")
