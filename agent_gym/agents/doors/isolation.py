"""Untrusted programs: which levels of isolation there are, and how a program is started in one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, Literal, TypeAlias

from pydantic import Field

from agent_gym.agents.doors.words import DoorError
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config

Level: TypeAlias = Literal["limits", "no-network", "sealed"]
NEEDS: dict[Level, tuple[str, ...]] = {
    "limits": ("limits",),
    "no-network": ("limits", "network"),
    "sealed": ("limits", "network", "files", "pids", "user", "disk"),
}
CAGE = Path(__file__).with_name("cage.py")
MIB = 1 << 20
SYSTEM = (
    *("/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/opt"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime"),
    *("/etc/alternatives", "/etc/ssl/openssl.cnf", "/dev/null", "/dev/zero", "/dev/urandom"),
    *("/dev/random", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat"),
)
GRACE_S = 5.0


class Limits(Config):
    """What a program may use; each process of it, but for the number of processes."""

    cpu_s: int = Field(default=120, ge=1, description="seconds of processor time")
    memory_mb: int = Field(default=2_048, ge=16, description="address space")
    open_files: int = Field(default=64, ge=8)
    processes: int = Field(default=32, ge=1, description="processes and threads together")
    file_mb: int = Field(default=16, ge=0, description="size of a file that it writes")
    disk_mb: int = Field(
        default=64, ge=1, description="all files in its folder together; holds where sealed"
    )

    def as_rlimits(self) -> dict[str, int]:
        """Return the limits by the names of the system, but that of its disk."""
        return {
            "CPU": self.cpu_s,
            "AS": self.memory_mb * MIB,
            "NOFILE": self.open_files,
            "NPROC": self.processes,
            "FSIZE": self.file_mb * MIB,
            "CORE": 0,
        }


class Isolation(Config):
    """How an untrusted program is held."""

    require: Level = Field(
        default="no-network",
        description="refuse to run it below this level; `agent-gym doctor` tells what is reached",
    )
    limits: Limits = Field(default_factory=Limits)
    env: dict[str, str] = Field(default_factory=dict, description="all that it finds there")
    reads: tuple[Path, ...] = Field(
        default=(), description="files and folders that it may read besides system and program"
    )


@dataclass(eq=False)
class Caged:
    """A program that runs in a cage; ``parts`` says which walls really stand."""

    process: subprocess.Popen[bytes]
    parts: Mapping[str, str]
    folder: Path
    _end: Any = field(default=None, repr=False)

    @property
    def level(self) -> Level:
        """Return the highest level whose walls all stand."""
        return level_of(self.parts)

    def end(self, grace_s: float = 0.0) -> str:
        """End the program and all that it began, remove its folder, and say how it ended.

        Args:
            grace_s: How long one that is about to end may take to do so by itself.
        """
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)
        if self._end is not None:
            self._end()
        code = self.process.returncode
        if code is None or code < 0 or code == 128 + signal.SIGKILL:
            return "killed"
        return f"killed by signal {code - 128}" if code > 128 else f"exit status {code}"


def level_of(parts: Mapping[str, str]) -> Level:
    """Return the highest level whose parts are all there.

    Example:
        >>> level_of({"limits": "ok", "network": "ok", "files": "no Landlock"})
        'no-network'
    """
    reached: Level = "limits"
    for level, needs in NEEDS.items():
        if all(parts.get(part) == "ok" for part in needs):
            reached = level
    return reached


def start_caged(
    argv: tuple[str, ...], isolation: Isolation, start_s: float = 10.0, *, namespaces: bool = True
) -> Caged:
    """Start a program in a cage.

    Args:
        argv: Program and arguments; ``python`` is this interpreter, files are found from here.
        isolation: Its limits, and the level below which it must not run.
        start_s: Seconds until it must have been started.
        namespaces: Whether to leave the namespaces of this machine; False shows what a system
            without them gives.
    """
    words = _resolved(argv)
    folder = Path(tempfile.mkdtemp(prefix="agent-gym-cage-"))
    status_r, status_w = os.pipe()
    life_r, life_w = os.pipe()
    spec = {
        "argv": words,
        "env": _environment(folder) | isolation.env,
        "folder": str(folder),
        "readable": _readable(words, isolation.reads),
        "limits": isolation.limits.as_rlimits(),
        "disk_mb": isolation.limits.disk_mb,
        "needs": NEEDS[isolation.require],
        "namespaces": namespaces,
        "number": os.getpid() % 100_000 * 1_000 + life_w % 1_000,
        "status": status_w,
        "life": life_r,
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(CAGE), json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=(status_w, life_r),
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        os.close(life_w)
        shutil.rmtree(folder, ignore_errors=True)
        raise DoorError("no process could be started", found=error.strerror) from error
    finally:
        os.close(status_w)
        os.close(life_r)
    caged = Caged(process, {}, folder)
    caged._end = weakref.finalize(caged, _end, process, life_w, folder)
    try:
        caged.parts = _told(status_r, start_s, isolation.require)
    except DoorError:
        caged.end()
        raise
    finally:
        os.close(status_r)
    return caged


def _told(handle: int, start_s: float, require: Level) -> dict[str, str]:
    """Return which walls stand, once the program has been started."""
    wall, text = SystemClock(), b""
    until_s = wall.monotonic_s() + start_s
    while True:
        left_s = until_s - wall.monotonic_s()
        if left_s <= 0.0 or not select([handle], [], [], left_s)[0]:
            raise DoorError("the program was not started in time", expected=f"{start_s:g} s")
        chunk = os.read(handle, 65_536)
        if not chunk:
            break
        text += chunk
    lines = [json.loads(line) for line in text.splitlines()]
    failed = next((line["failed"] for line in lines if "failed" in line), None)
    if failed is not None or not lines:
        raise DoorError(
            "the program could not be started",
            found=failed or "the cage ended without a word",
            remedy="See that the program exists and may be run",
        )
    parts: dict[str, str] = lines[0]["parts"]
    if lines[0]["lacking"]:
        reasons = "; ".join(
            f"{part}: {parts.get(part, 'not set up')}" for part in lines[0]["lacking"]
        )
        raise DoorError(
            "an untrusted program must not run here",
            found=f"level {level_of(parts)} ({reasons})",
            expected=f"level {require}",
            remedy="Run it on a machine that reaches the level (see `agent-gym doctor`), or lower "
            "`require`",
        )
    return parts


def _end(process: subprocess.Popen[bytes], life: int, folder: Path) -> None:
    """Let go of the keeper, which ends all; what is left of its group is killed."""
    os.close(life)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    shutil.rmtree(folder, ignore_errors=True)


def _resolved(argv: tuple[str, ...]) -> list[str]:
    program = sys.executable if argv[0] in {"python", "python3"} else shutil.which(argv[0])
    if program is None:
        raise ConfigError(
            "there is no such program",
            found=argv[0],
            remedy="Name one that lies on the path, or say where it is",
        )
    rest = [str(Path(word).absolute()) if Path(word).is_file() else word for word in argv[1:]]
    return [str(Path(program).absolute()), *rest]


def _readable(words: list[str], reads: tuple[Path, ...]) -> list[str]:
    own = {sys.prefix, sys.base_prefix} if words[0] == str(Path(sys.executable).absolute()) else ()
    named = [word for word in words if Path(word).is_file()]
    return [*SYSTEM, *own, *named, *(str(path.absolute()) for path in reads)]


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
