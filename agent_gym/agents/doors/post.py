"""Questions over HTTP: no redirects, no proxies, no more bytes or time than allowed."""

from __future__ import annotations

import os
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import requests
from pydantic import Field, field_validator

from agent_gym.agents.doors.words import DoorError, pack, unpack
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config

LOOPBACK = ("127.0.0.1", "::1", "localhost")
OK = 200
REDIRECTS = range(300, 400)


class Address(Config):
    """Whom to ask, and how long to wait."""

    url: str = Field(description="http or https, without a user name")
    token_variable: str | None = Field(
        default=None, description="environment variable that holds a bearer token"
    )
    hosts: tuple[str, ...] = Field(
        default=LOOPBACK, description="hosts that may be spoken to; this machine alone by default"
    )
    answer_s: float = Field(default=5.0, gt=0, le=600, description="for one answer")
    max_bytes: int = Field(default=65_536, ge=1_024, le=16 << 20, description="longest answer")

    @field_validator("url")
    @classmethod
    def _plain(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or parts.username or parts.password:
            raise ValueError("an agent's URL is http or https and names no user")
        return url


class Poster:
    """Posts and gets JSON; a connection is kept from one question to the next."""

    def __init__(self, address: Address) -> None:
        self._address, self._wall = address, SystemClock()
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._session: requests.Session | None = None
        self.check_host(address.url)
        if address.token_variable is not None:
            token = os.environ.get(address.token_variable)
            if not token:
                raise ConfigError("there is no token", where=address.token_variable)
            self._headers["Authorization"] = f"Bearer {token}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Poster:
        """Return one of the same kind; a connection cannot be copied."""
        return Poster(self._address)

    def check_host(self, url: str) -> None:
        """Raise ConfigError if the host of a URL may not be spoken to."""
        parts = urlsplit(url)
        if parts.hostname not in self._address.hosts or parts.scheme not in {"http", "https"}:
            raise ConfigError(
                "this host may not be spoken to",
                found=parts.hostname,
                expected=", ".join(self._address.hosts),
                remedy="Name it in hosts, as it is written in the URL",
            )

    def post(
        self, url: str, message: dict[str, Any], headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Post a message and return the answer."""
        return self._asked("POST", url, pack(message), headers or {})

    def get(self, url: str) -> dict[str, Any]:
        """Return the document at a URL."""
        return self._asked("GET", url, None, {})

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def _asked(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        """Ask in a thread: a server that drips bytes can outlast every timeout of a socket."""
        result: SimpleQueue[bytes | DoorError] = SimpleQueue()
        if self._session is None:
            self._session = requests.Session()
            self._session.trust_env = False  # no proxies, no passwords from files
        session, sent = self._session, self._headers | headers
        Thread(
            target=lambda: result.put(self._carried(session, method, url, (body, sent))),
            daemon=True,
        ).start()
        try:
            answer = result.get(timeout=self._address.answer_s)
        except Empty:
            answer = self._late()
        if isinstance(answer, DoorError):
            self._session = None  # the thread may still use it
            raise answer
        return unpack(answer)

    def _late(self) -> DoorError:
        limit = f"at most {self._address.answer_s:g} s"
        return DoorError("the agent did not answer in time", expected=limit)

    def _carried(
        self,
        session: requests.Session,
        method: str,
        url: str,
        what: tuple[bytes | None, dict[str, str]],
    ) -> bytes | DoorError:
        until_s = self._wall.monotonic_s() + self._address.answer_s
        try:
            with session.request(
                method,
                url,
                data=what[0],
                headers=what[1],
                timeout=self._address.answer_s,
                allow_redirects=False,
                stream=True,
            ) as response:
                return self._read(response, until_s)
        except requests.Timeout:
            return self._late()
        except requests.ConnectionError as error:
            return DoorError("no connection to the agent", found=type(error).__name__)
        except (requests.RequestException, ValueError) as error:
            return DoorError("not an HTTP answer", found=type(error).__name__)

    def _read(self, response: requests.Response, until_s: float) -> bytes | DoorError:
        status, most = response.status_code, self._address.max_bytes
        if status in REDIRECTS:
            return DoorError("the agent points elsewhere, which is not followed", found=status)
        if status != OK:
            return DoorError("the agent failed", found=f"HTTP {status}", expected=OK)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            return DoorError("the answer is packed, which was not asked for")
        text = bytearray()
        for chunk in response.iter_content(4096):
            text += chunk
            if len(text) > most:
                return DoorError("an answer is too long", expected=f"at most {most:,} bytes")
            if self._wall.monotonic_s() > until_s:
                return self._late()
        return bytes(text)
