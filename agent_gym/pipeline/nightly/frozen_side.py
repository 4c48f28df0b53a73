"""The other side of frozen.py: what the code of a baseline answers when it is asked to play.

Run as ``python -P -m agent_gym.pipeline.nightly.frozen_side FD``. One line of JSON on stdin says
what to play, lines of JSON on the file descriptor say what came of it. These words are a contract
between versions of this package: a change of their meaning is a new FROZEN_WORDS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, TypeAlias

import agent_gym
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.scenarios.suite import ScenarioConfig
from agent_gym.pipeline.nightly.crew import FROZEN_WORDS, LocalCrew, Task
from agent_gym.pipeline.nightly.run import CUT_SHORT
from agent_gym.pipeline.nightly.setup import subject_of
from agent_gym.rollouts.play import attempt

Say: TypeAlias = Callable[[dict[str, Any]], None]


def serve(answers: BinaryIO, line: bytes) -> None:
    """Play what one request asks for."""

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, allow_nan=False).encode() + b"\n")
        answers.flush()

    status, failure = attempt(lambda: _play(json.loads(line), say))
    if status == "error":
        say({"refused": failure})
    elif status == "interrupted":
        say({"end": "partial"})


def _play(request: dict[str, Any], say: Say) -> None:
    if request["schema"] != FROZEN_WORDS:
        raise ConfigError(
            "this code does not understand the request",
            found=request["schema"],
            expected=FROZEN_WORDS,
        )
    own = Path(agent_gym.__file__).resolve()
    if not own.is_relative_to(request["code"]):
        raise ConfigError(
            "other code was found before the frozen one", found=own, expected=request["code"]
        )
    for name in request["imports"]:
        import_module(name)
    crew = LocalCrew(
        subject=subject_of(request["subject"]),
        workers=request["workers"],
        timeout_s=request["timeout_s"],
        imports=tuple(request["imports"]),
    )
    tasks = [
        Task(ScenarioConfig.model_validate(each["scenario"]), tuple(each["seeds"]))
        for each in request["tasks"]
    ]
    for task in tasks:
        task.scenario.make()
    rows = crew.play(tasks, lambda name, found: say({"scenario": name, "episodes": found}))
    cut = any(row["status"] in CUT_SHORT for found in rows.values() for row in found)
    say({"end": "partial" if cut else "complete"})


def main() -> None:
    """Answer one request; stop when the one who asked is gone."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    line = _line(sys.stdin.fileno())
    Thread(target=_stop_with_the_asker, daemon=True).start()
    # Whoever asked may hang up as soon as the end was said: that is no failure.
    with suppress(BrokenPipeError, KeyboardInterrupt):
        with os.fdopen(int(sys.argv[1]), "wb") as answers:
            serve(answers, line)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _line(handle: int) -> bytes:
    """Return the first line; nothing is buffered, so that the rest can be waited for elsewhere."""
    read = b""
    while not read.endswith(b"\n"):
        more = os.read(handle, 1 << 16)
        if not more:
            break
        read += more
    return read


def _stop_with_the_asker() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
