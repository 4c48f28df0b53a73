"""What an agent says, turned into a record; an answer that breaks the contract is an error."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentRequest, AgentResponse, AnswerStatus
from agent_gym.core.errors import AgentError

MAX_PAYLOAD_BYTES = 65_536
LONGEST_REASON = 300
LARGEST = 1 << 63  # whole numbers beyond are not written as JSON
NUMBERS = frozenset({"size", "filled", "avg_price", "fees", "slippage_bp", "rest"})
_STATUSES: dict[str, AnswerStatus] = {
    "ok": "ok",
    "reject": "reject",
    "timeout": "timeout",
    "error": "error",
}
_CODE_OF: dict[AnswerStatus, RejectCode] = {
    "timeout": RejectCode.AGENT_TIMEOUT,
    "error": RejectCode.AGENT_ERROR,
}


class AgentTimedOut(AgentError):
    """The agent did not answer within its deadline."""


class AgentUnreachable(AgentError):
    """There is no agent to talk to: it is not there, refuses the line or has died."""


class AnswerBroken(AgentError):
    """The agent answered with something that its contract forbids."""

    code = RejectCode.AGENT_ERROR


class AnswerContradicts(AnswerBroken):
    """The answer contradicts the question or itself."""

    code = RejectCode.AGENT_CONTRADICTORY


def as_response(answer: object, request: AgentRequest, latency_ms: float) -> AgentResponse:
    """Return an answer as a record.

    Raises:
        AnswerBroken: It is not an answer at all, or holds what cannot be recorded.
        AnswerContradicts: It answers another question, or says ok and a reason against at once.
    """
    payload: object
    if isinstance(answer, AgentResponse):
        if answer.trace_id != request.trace_id or answer.agent != request.agent:
            raise AnswerContradicts("the answer belongs to another question", found=answer.trace_id)
        status, code, payload = answer.status, answer.code, answer.payload
    elif type(answer) is dict or isinstance(answer, Mapping):
        if answer.get("trace_id", request.trace_id) != request.trace_id:
            raise AnswerContradicts("the answer belongs to another question")
        status, code, payload = _parts(answer)
    else:
        raise AnswerBroken("not an answer", found=type(answer).__name__, expected="a mapping")
    if status == "ok" and code is not None:
        raise AnswerContradicts("ok, and a reason against, at once", found=code)
    if status == "reject" and code is None:
        raise AnswerBroken("a rejection without a code", expected="one of the known codes")
    return AgentResponse(
        request.trace_id,
        request.agent,
        status,
        code or _CODE_OF.get(status),
        _checked(payload),
        latency_ms,
        request.attempt,
    )


def question(verb: str, request: AgentRequest) -> bytes:
    """Return what a remote agent is sent: one JSON object with ``ask`` and ``request``."""
    return msgspec.json.encode({"ask": verb, "request": request})


def read_answer(text: bytes, verb: str) -> Mapping[str, Any] | None:
    """Return a remote agent's words as an answer; None if it says that it never saw the order."""
    try:
        answer = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise AnswerBroken("the answer is not JSON", found=repr(text[:40])) from error
    if not isinstance(answer, dict):
        raise AnswerBroken("the answer is no JSON object", found=type(answer).__name__)
    if verb == "state" and answer.get("status") == "unseen":
        return None
    return answer


def failure(
    request: AgentRequest, status: AnswerStatus, code: RejectCode, why: str, latency_ms: float
) -> AgentResponse:
    """Return the record of a question that got no answer."""
    payload = {"why": why[:LONGEST_REASON]}
    return AgentResponse(
        request.trace_id, request.agent, status, code, payload, latency_ms, request.attempt
    )


def _parts(answer: Mapping[Any, Any]) -> tuple[AnswerStatus, RejectCode | None, object]:
    status = _STATUSES.get(str(answer.get("status")))
    if status is None:
        raise AnswerBroken(
            "no such status", found=repr(answer.get("status"))[:80], expected=", ".join(_STATUSES)
        )
    given = answer.get("code")
    try:
        code = None if given is None else RejectCode(given)
    except ValueError as error:
        raise AnswerBroken("no such code", found=repr(given)[:80]) from error
    return status, code, answer.get("payload", {})


def _checked(payload: object) -> dict[str, Any]:
    if type(payload) is not dict and not isinstance(payload, Mapping):
        raise AnswerBroken("payload is not a mapping", found=type(payload).__name__)
    plain: dict[str, Any] = dict(payload)
    simple = True
    for key, value in plain.items():
        kind = type(value)
        if kind is not float and isinstance(value, float):
            plain[key] = float(value)  # numpy's, for one
        if isinstance(value, float):
            if not math.isfinite(value):
                raise AnswerBroken("a number is not finite", where=str(key)[:80], found=value)
        elif key in NUMBERS and kind is not int and value is not None:
            raise AnswerBroken("not a number", where=str(key), found=repr(value)[:80])
        elif kind is int and not -LARGEST < value < LARGEST:
            raise AnswerBroken("a number is too large", where=str(key)[:80])
        elif kind is not bool and kind is not int and value is not None:
            simple = False
        simple = simple and type(key) is str
    return plain if simple else _recordable(plain)


def _recordable(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload as JSON would give it back, so that a log replays to the same record."""
    try:
        text = json.dumps(payload, allow_nan=False)
        again: dict[str, Any] = msgspec.json.decode(text)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise AnswerBroken("payload cannot be written as JSON", found=str(error)[:80]) from error
    if len(text) > MAX_PAYLOAD_BYTES:
        raise AnswerBroken(
            "payload is too large", found=f"{len(text)} bytes", expected=MAX_PAYLOAD_BYTES
        )
    return again
