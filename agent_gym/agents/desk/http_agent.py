"""An agent behind a URL: one POST a question, no redirects, no more bytes or time than allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import requests

from agent_gym.agents.desk.answers import (
    MAX_PAYLOAD_BYTES,
    AgentTimedOut,
    AgentUnreachable,
    AnswerBroken,
    question,
    read_answer,
)
from agent_gym.agents.desk.schemas import AgentRequest
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import AgentError, ConfigError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BUSY = frozenset({429, 502, 503, 504})
OK = 200
REDIRECTS = range(300, 400)


class HttpAgent:
    """Posts questions as JSON and reads answers as JSON; the words are those of ProcessAgent.

    Args:
        url: Where; http or https, without a user name. Secrets belong into ``token``.
        token: Sent as a bearer token; never shown.
        hosts: Hosts that may be spoken to, as written in the URL; this machine alone by default.
        has_state: Whether it can say what became of an order, and take it back.
        max_bytes: The longest answer.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        hosts: Iterable[str] = LOOPBACK,
        has_state: bool = False,
        max_bytes: int = 2 * MAX_PAYLOAD_BYTES,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or parts.username or parts.password:
            raise ConfigError(
                "an agent's URL is http or https and names no user", found=parts.scheme
            )
        if parts.hostname not in set(hosts):
            raise ConfigError(
                "this host may not be spoken to",
                found=parts.hostname,
                expected=", ".join(hosts),
                remedy="Name it in hosts, as it is written in the URL",
            )
        self.verbs = ("answer", "state", "cancel") if has_state else ("answer",)
        self._url = url
        self._max_bytes = max_bytes
        self._wall = SystemClock()
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def answer(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Ask; deadlines are the wall's."""
        answer = self._ask("answer", request)
        assert answer is not None
        return answer

    def state(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any] | None:
        """Ask what became of an order."""
        return self._ask("state", request)

    def cancel(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Ask it to take an order back."""
        answer = self._ask("cancel", request)
        assert answer is not None
        return answer

    def _ask(self, verb: str, request: AgentRequest) -> Mapping[str, Any] | None:
        """Post in a thread: a server that drips bytes can outlast every timeout of a socket."""
        limit_s = request.deadline_ms / 1e3
        result: SimpleQueue[bytes | AgentError] = SimpleQueue()
        body = question(verb, request)
        Thread(target=lambda: result.put(self._post(body, limit_s)), daemon=True).start()
        try:
            answer = result.get(timeout=limit_s)
        except Empty as error:
            raise AgentTimedOut("no answer in time") from error
        if isinstance(answer, AgentError):
            raise answer
        return read_answer(answer, verb)

    def _post(self, body: bytes, limit_s: float) -> bytes | AgentError:
        until_s = self._wall.monotonic_s() + limit_s
        try:
            with requests.Session() as session:
                session.trust_env = False  # no proxies, no passwords from files
                with session.post(
                    self._url,
                    data=body,
                    headers=self._headers,
                    timeout=limit_s,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    return self._read(response, until_s)
        except requests.Timeout:
            return AgentTimedOut("no answer in time")
        except requests.ConnectionError as error:
            return AgentUnreachable("no connection", found=type(error).__name__)
        except requests.RequestException as error:
            return AnswerBroken("not an HTTP answer", found=type(error).__name__)

    def _read(self, response: requests.Response, until_s: float) -> bytes | AgentError:
        status = response.status_code
        if status in REDIRECTS:
            return AnswerBroken("it points elsewhere, which is not followed", found=status)
        if status in BUSY:
            return AgentUnreachable("it is busy or down", found=status)
        if status != OK:
            return AnswerBroken("it failed", found=status, expected=OK)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            return AnswerBroken("the answer is packed, which was not asked for")
        text = bytearray()
        for chunk in response.iter_content(4096):
            text += chunk
            if len(text) > self._max_bytes:
                return AnswerBroken("the answer is too long", expected=f"{self._max_bytes} bytes")
            if self._wall.monotonic_s() > until_s:
                return AgentTimedOut("no answer in time")
        return bytes(text)
