"""The process of one agent: it is shown an observation and says what it would do.

It has no way to the market, the points or the database; those are on the other side. What the agent
prints goes nowhere. Every question is answered from the question alone (the agent is reset with
dice of that tick), so another process would have given the same answer.
"""

from __future__ import annotations

import os
import resource
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, Decision, EpisodeStart, Nanos, Observation, Role
from agent_gym.pipeline.minds.frames import packed, receive_patiently
from agent_gym.rollouts.play import attempt

ORPHANED = 70
MOST_SIGNALS = 64
LONGEST_WORDS = 4_000
MEGABYTE = 1 << 20
LARGEST_FILE_MB, MOST_FILES = 64, 256


def question(start: EpisodeStart, seen: Observation, agent: Ref) -> dict[str, Any]:
    """Return what an agent is asked, as plain values."""
    return {
        "kind": agent.use,
        "params": dict(agent.params),
        "role": start.role,
        "feature_names": list(start.feature_names),
        "low": start.actions.low,
        "high": start.actions.high,
        "seed": [start.seeds.root, list(start.seeds.path)],
        "period_ns": start.period_ns,
        "ts": seen.ts,
        "features": seen.features.tolist(),
        "text": seen.text,
    }


class Mind:
    """The agents of one model after another; there is one for each process."""

    def __init__(self) -> None:
        self._loaded: tuple[Ref, Any] | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Decide, and say which model did."""
        agent = self._agent(Ref(use=asked["kind"], params=asked["params"]))
        root, path = asked["seed"]
        agent.reset(
            EpisodeStart(
                Role(asked["role"]),
                tuple(asked["feature_names"]),
                ActionSpec(n=None, low=asked["low"], high=asked["high"]),
                Seeds(root, tuple(path)),
                None if asked["period_ns"] is None else Nanos(asked["period_ns"]),
            )
        )
        features = np.array(asked["features"], dtype=np.float64)
        made = agent.act(Observation(Nanos(asked["ts"]), features, None, asked["text"]))
        if not isinstance(made, Decision):
            raise AgentError("this is no decision", found=type(made).__name__, expected="Decision")
        signals = dict(made.signals or {})
        if len(signals) > MOST_SIGNALS:
            raise AgentError(
                "an agent says too much", found=f"{len(signals)} signals", expected=MOST_SIGNALS
            )
        return {
            "action": np.asarray(made.action, dtype=np.float64).tolist(),
            "signals": {str(name): float(value) for name, value in signals.items()},
            "rationale": None if made.rationale is None else str(made.rationale)[:LONGEST_WORDS],
            "version": str(agent.version),
        }

    def _agent(self, wanted: Ref) -> Any:
        if self._loaded is None or self._loaded[0] != wanted:
            self._loaded = (wanted, make("agent", wanted))
        return self._loaded[1]


def main() -> None:
    """Answer questions until the other side is gone."""
    questions, answers = _own_pipes()
    hello = receive_patiently(questions)
    _limit(hello["memory_mb"])
    inbox: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_listen, args=(questions, inbox), daemon=True).start()
    status, failure = attempt(lambda: [import_module(name) for name in hello["imports"]].clear())
    _say(answers, packed({"ready": status == "ok", "error": failure}))
    mind = Mind()
    while True:
        _say(answers, _reply(mind, inbox.get()))


def _reply(mind: Mind, asked: dict[str, Any]) -> bytes:
    made: list[bytes] = []
    _, failure = attempt(lambda: made.append(packed(mind.answer(asked))))
    return made[0] if made else packed({"error": failure})


def _own_pipes() -> tuple[int, int]:
    """Take the pipes away from where an agent would print to or read from."""
    questions, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return questions, answers


def _limit(memory_mb: int) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, memory_mb * MEGABYTE),
        (resource.RLIMIT_FSIZE, LARGEST_FILE_MB * MEGABYTE),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        new = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (new, new))


def _listen(questions: int, inbox: SimpleQueue[dict[str, Any]]) -> None:
    """Take in questions; when the other side is gone end at once, even in the middle of one."""
    while True:
        try:
            inbox.put(receive_patiently(questions))
        except (EOFError, OSError):
            os._exit(ORPHANED)


def _say(answers: int, frame: bytes) -> None:
    left = memoryview(frame)
    while left:
        left = left[os.write(answers, left) :]


if __name__ == "__main__":
    main()
