"""The processes of the soak: started, killed, started again; each with files of its own."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ADOPT = 36  # PR_SET_CHILD_SUBREAPER: whoever loses its parent becomes a child of ours
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def adopt_orphans() -> None:
    """Let processes whose parents die come to us, so that none gets out of sight."""
    ctypes.CDLL(None).prctl(ADOPT, 1, 0, 0, 0)


class Actor:
    """A command that is started again and again.

    Attributes:
        lives: How often it was started.
        codes: How often it ended with each code, as words.
    """

    def __init__(self, name: str, logs: Path, environment: dict[str, str]) -> None:
        self.name, self.lives, self.codes = name, 0, dict[str, int]()
        self._logs, self._environment = logs, environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def out(self) -> Path:
        return self._logs / f"{self.name}-{self.lives}.out"

    def start(self, *words: str) -> None:
        """Start it with a module and its words; it must not be running."""
        assert not self.alive
        self.lives += 1
        log = self._logs / f"{self.name}-{self.lives}.log"
        with self.out.open("wb") as out, log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env=os.environ | ONE_THREAD | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether it runs; how it ended is counted once."""
        if self._process is None:
            return False
        code = self._process.poll()
        if code is None:
            return True
        word = f"signal {-code}" if code < 0 else f"exit {code}"
        self.codes[word] = self.codes.get(word, 0) + 1
        self._process = None
        return False

    def end(self, number: int = signal.SIGKILL, patience_s: float = 120.0) -> bool:
        """Send a signal to the process alone and wait; True if it was running and has ended."""
        if not self.alive or self._process is None:
            return False
        self._process.send_signal(number)
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return not self.alive

    def said(self) -> dict[str, Any] | None:
        """Return the JSON document that this life has printed; None until it is whole."""
        try:
            found = json.loads(self.out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def parents() -> dict[int, int]:
    """Return the parent of every living process; those that have ended are left out."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = (path / "stat").read_text().rpartition(") ")[2].split()[:2]
            if state != "Z":
                found[int(path.name)] = int(parent)
    return found


def descendants(pid: int) -> list[int]:
    """Return all living processes below one, nearest first."""
    known, found = sorted(parents().items()), [pid]
    for one in found:
        found += [child for child, parent in known if parent == one]
    return found[1:]


def reap(known: set[int]) -> None:
    """Take note of orphans that have ended; those that are known are asked by who started them."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
