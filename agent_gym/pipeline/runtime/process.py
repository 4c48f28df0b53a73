"""The service's side of an agent's process: start it, ask it, end it when it fails."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from agent_gym.core.clock import Clock
from agent_gym.core.errors import AgentError
from agent_gym.pipeline.minds.frames import Overdue, TooLong, packed, receive, send
from agent_gym.pipeline.runtime.config import RuntimeConfig

MODULE = "agent_gym.pipeline.minds.mind"
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONHASHSEED", "NUMBA_CACHE_DIR")
"""All that an agent's process gets to know of the environment: no secrets, no addresses."""
LONGEST_NAME = 64


class AgentLost(AgentError):
    """An agent did not decide: it hung, died, or gave what is no decision."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent decided, and the hash of the model that did."""

    targets: list[float]
    signals: dict[str, float]
    rationale: str | None
    version: str
    latency_ms: float


class AgentProcess:
    """One process for one agent; it is started when it is first asked, and again after a failure.

    It leads a process group of its own, which is killed whole.
    """

    def __init__(self, config: RuntimeConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self.used_s = clock.monotonic_s()

    @property
    def idle(self) -> bool:
        """Return whether nobody waits for it now."""
        return not self._lock.locked()

    @property
    def pid(self) -> int | None:
        """Return the number of the process; None while there is none."""
        return None if self._child is None else self._child.pid

    def ask(self, question: dict[str, Any], n_targets: int) -> Answer:
        """Return what the agent decides.

        Raises:
            AgentLost: It did not, and its process is gone.
        """
        with self._lock:
            try:
                child = self._running()
                began = self._clock.monotonic_s()
                said = self._exchange(child, question, began + self._config.timeout_s)
                took = (self._clock.monotonic_s() - began) * 1e3
            except AgentLost:
                self._end()
                raise
            finally:
                self.used_s = self._clock.monotonic_s()
            if "error" in said:
                raise _failed(said["error"])
            return _answer(said, n_targets, took)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is not None and self._child.poll() is None:
            return self._child
        self._end()
        try:
            child = subprocess.Popen(  # our own interpreter and module; nothing comes from outside
                [sys.executable, "-P", "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise AgentLost("no process could be started", found=error.strerror) from error
        self._child = child
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None  # asked for above
            os.set_blocking(pipe.fileno(), False)
        hello = {"memory_mb": self._config.memory_mb, "imports": list(self._config.imports)}
        deadline = self._clock.monotonic_s() + self._config.start_timeout_s
        said = self._exchange(child, hello, deadline)
        if not said.get("ready"):
            raise AgentLost(
                "the modules of agents cannot be imported",
                where=", ".join(self._config.imports),
                found=_what(said.get("error")),
            )
        return child

    def _exchange(
        self, child: subprocess.Popen[bytes], message: dict[str, Any], deadline_s: float
    ) -> dict[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            send(child.stdin.fileno(), packed(message), deadline_s, self._clock)
            return receive(child.stdout.fileno(), deadline_s, self._clock)
        except Overdue:
            raise AgentLost(
                "the agent took too long",
                expected=f"at most {self._config.timeout_s:g} s",
                remedy="Raise timeout_s, or see what it waits for",
            ) from None
        except (EOFError, OSError):
            raise AgentLost("the agent's process is gone", found=_ending(child)) from None
        except TooLong as error:
            raise AgentLost("the agent says too much", found=error) from None
        except ValueError as error:
            raise AgentLost("the agent does not speak JSON", found=error) from None

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _ending(child: subprocess.Popen[bytes]) -> str:
    try:
        code = child.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        return "it closed its pipe"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _answer(said: dict[str, Any], n_targets: int, latency_ms: float) -> Answer:
    action, version = said.get("action"), said.get("version")
    if not (
        isinstance(action, list)
        and len(action) == n_targets
        and all(isinstance(each, float) and math.isfinite(each) for each in action)
    ):
        raise AgentLost(
            "the action is no target for each market",
            found=str(action)[:LONGEST_NAME],
            expected=f"{n_targets} finite numbers",
        )
    if not isinstance(version, str):
        raise AgentLost("the agent does not say which model it is", found=type(version).__name__)
    signals = {
        name[:LONGEST_NAME]: value
        for name, value in said.get("signals", {}).items()
        if isinstance(value, float) and math.isfinite(value)
    }
    return Answer(action, signals, said.get("rationale"), version, latency_ms)


def _failed(error: Any) -> AgentLost:
    place = error.get("raised_at") if isinstance(error, dict) else None
    return AgentLost("the agent failed", where=place, found=_what(error))


def _what(error: Any) -> str | None:
    if not isinstance(error, dict):
        return None
    return f"{error.get('error')}: {error.get('what')}"[:500]
