"""The words that all doors speak: one question, one answer, both JSON objects.

    hello    {"id", "ask": "hello", "protocol": [1]}       -> {"id", "protocol": 1}
    start    {"id", "ask": "start", "episode": {...}}      -> {"id"}
    act      {"id", "ask": "act", "ts", "features", ...}   -> {"id", "target"} or {"id", "action"}
    observe  {"id", "ask": "observe", "reward", ...}       -> {"id"}; only if hello said "observe"

An answer bears the id of its question. ``{"id", "error": "..."}`` ends the episode with that error.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from agent_gym.core.errors import AgentError
from agent_gym.core.types import (
    Action,
    ActionSpec,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Step,
)

PROTOCOL = 1
LONGEST_TEXT = 4_000
LONGEST_SHOWN = 200
MOST_SIGNALS = 64


class DoorError(AgentError):
    """An agent behind a door hung, died, broke the protocol or gave what is no decision."""


def pack(message: dict[str, Any]) -> bytes:
    """Return a message as JSON on one line; what is not a number is null, and nothing is rounded.

    Example:
        >>> pack({"id": 1, "features": [0.1, float("nan")]})
        b'{"id":1,"features":[0.1,null]}'
    """
    return msgspec.json.encode(message)


def unpack(line: bytes) -> dict[str, Any]:
    """Return the message of a line; anything but an object is an error."""
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DoorError(
            "the agent does not speak JSON",
            found=repr(line[:LONGEST_SHOWN]),
            expected="one JSON object a line",
            remedy="Write nothing but answers to standard output; notes belong to standard error",
        ) from error
    if not isinstance(said, dict):
        raise DoorError("an answer is a JSON object", found=type(said).__name__)
    return said


def hello() -> dict[str, Any]:
    """Return the first question: which protocol is spoken."""
    return {"ask": "hello", "protocol": [PROTOCOL]}


def start_words(start: EpisodeStart) -> dict[str, Any]:
    """Return the question that begins an episode."""
    actions = start.actions
    episode = {
        "role": str(start.role),
        "features": list(start.feature_names),
        "actions": {
            "n": actions.n,
            "levels": None if actions.levels is None else list(actions.levels),
            "low": actions.low,
            "high": actions.high,
        },
        "seed": start.seeds.as_int(),
        "period_ns": start.period_ns,
    }
    return {"ask": "start", "episode": episode}


def act_words(obs: Observation) -> dict[str, Any]:
    """Return the question what to do."""
    return {
        "ask": "act",
        "ts": int(obs.ts),
        "features": obs.features.tolist(),
        "legal": None if obs.legal is None else obs.legal.tolist(),
        "text": obs.text,
    }


def observe_words(step: Step) -> dict[str, Any]:
    """Return what came of a decision."""
    after = step.after
    return {
        "ask": "observe",
        "reward": after.reward,
        "terminated": after.terminated,
        "truncated": after.truncated,
    }


def check_answer(said: dict[str, Any], number: int) -> dict[str, Any]:
    """Return an answer to the question of this number; a told error is raised."""
    if said.get("id") != number:
        raise DoorError(
            "an answer to another question", found=_shown(said.get("id")), expected=f"id {number}"
        )
    if said.get("error") is not None:
        raise DoorError("the agent gave up", found=_shown(said["error"]))
    return said


def check_hello(said: dict[str, Any]) -> bool:
    """Return whether the agent wants to observe; another protocol is an error."""
    if said.get("protocol") != PROTOCOL:
        raise DoorError(
            "the agent speaks another protocol",
            where="answer to hello",
            found=_shown(said.get("protocol")),
            expected=PROTOCOL,
            remedy='Answer {"id": <that of the question>, "protocol": 1}',
        )
    return said.get("observe") is True


def read_decision(said: dict[str, Any], actions: ActionSpec) -> Decision:
    """Return the decision of an answer.

    ``target`` is a position and is turned into the nearest legal action; ``action`` is taken as is.
    """
    if ("target" in said) == ("action" in said):
        raise DoorError(
            "an answer to act has either a target or an action",
            found=", ".join(map(str, list(said)[:8])),
        )
    if "target" in said:
        action = _encoded(_numbers(said["target"], "target"), actions)
    else:
        action = _legal(_numbers(said["action"], "action"), actions)
    rationale = said.get("rationale")
    if rationale is not None and not isinstance(rationale, str):
        raise DoorError("a rationale is text", found=type(rationale).__name__)
    text = None if rationale is None else rationale[:LONGEST_TEXT]
    return Decision(action, _signals(said.get("signals")), text)


def _numbers(value: Any, what: str) -> int | float | list[float]:
    several = isinstance(value, list) and bool(value)
    for each in value if several else [value]:
        if isinstance(each, bool) or not isinstance(each, int | float) or not _finite(each):
            raise DoorError(
                f"the {what} is no number", found=_shown(each), expected="finite numbers"
            )
    return [float(each) for each in value] if several else value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _encoded(target: int | float | list[float], actions: ActionSpec) -> Action:
    if isinstance(target, list):
        several: FloatArray = np.clip(np.array(target), actions.low, actions.high)
        return several
    return actions.encode(float(target))


def _legal(action: int | float | list[float], actions: ActionSpec) -> Action:
    if isinstance(action, list):
        return np.array(action)
    if actions.n is None:
        return float(action)
    if action != int(action) or not 0 <= action < actions.n:
        raise DoorError(
            "there is no such action", found=_shown(action), expected=f"0 to {actions.n - 1}"
        )
    return int(action)


def _signals(given: Any) -> dict[str, float] | None:
    if given is None:
        return None
    if not isinstance(given, dict) or len(given) > MOST_SIGNALS:
        raise DoorError("signals are at most 64 named numbers", found=type(given).__name__)
    return {
        str(name)[:LONGEST_SHOWN]: float(_one(value, str(name))) for name, value in given.items()
    }


def _one(value: Any, name: str) -> int | float:
    read = _numbers(value, f"signal {name[:LONGEST_SHOWN]}")
    if isinstance(read, list):
        raise DoorError("a signal is one number", found=_shown(value))
    return read


def _shown(value: object) -> str:
    return repr(value)[:LONGEST_SHOWN]
