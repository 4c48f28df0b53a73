"""Run in a cage by the probe: tries to get out and prints what held. Needs the stdlib alone."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

KNOWN = {"PATH", "LANG", "HOME", "TMPDIR", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
TRACE_ATTACH = 16
Attempt = Callable[[], str | None]


def loopback(port: int) -> str | None:
    """Reach a server on this machine."""
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return "a server of this machine was reached"


def interfaces() -> str | None:
    """Find a way out to the network."""
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"it sees {', '.join(found)}" if found else None


def writing(outside: str) -> str | None:
    """Write where everybody else may."""
    for folder in (outside, "/tmp", "/dev/shm", "/var/tmp"):
        path = Path(folder) / f"agent-gym-probe-{os.getpid()}"
        try:
            path.write_text("x", encoding="utf-8")
        except OSError:
            continue
        path.unlink()
        return f"it wrote into {folder}"
    return None


def reading(outside: str) -> str | None:
    """Read a file that is none of its business."""
    return f"it read {(Path(outside) / 'secret').read_text(encoding='utf-8')}"


def environment() -> str | None:
    """Find something in the environment that was not given."""
    found = {name for name in os.environ if name not in KNOWN and not name.startswith("PYTHON")}
    found -= {"LC_CTYPE"}  # the interpreter sets it itself
    return f"it found {', '.join(sorted(found))}" if found else None


def signals() -> str | None:
    """Reach a process that it did not start."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - it may not even be listed
        if name.isdigit() and int(name) not in (os.getpid(), os.getppid()):
            Path(f"/proc/{name}/environ").read_bytes()
            return f"it read the environment of process {name}"
    return None


def tracing() -> str | None:
    """Take hold of a process that it did not start."""
    other = os.getppid()
    if ctypes.CDLL(None, use_errno=True).ptrace(TRACE_ATTACH, other, None, None) == 0:
        return f"it traces process {other}"
    with open(f"/proc/{other}/mem", "r+b"):  # noqa: PTH123 - a kernel's file
        return f"it may write to the memory of process {other}"


def disk(limit_mb: int) -> str | None:
    """Write more into its own folder than allowed."""
    folder, block, written = Path(os.environ.get("TMPDIR", ".")), b"x" * (1 << 20), 0
    try:
        for number in range(limit_mb + 1):
            written += (folder / f"block-{number}").write_bytes(block)
    except OSError:
        return None
    return f"it wrote {written >> 20} MB"


def memory(limit_mb: int) -> str | None:
    """Take more memory than allowed."""
    try:
        taken = bytearray((limit_mb + 64) << 20)
    except MemoryError:
        return None
    return f"it got {len(taken) >> 20} MB"


def processes(most: int) -> str | None:
    """Start more processes than allowed."""
    begun: list[int] = []
    try:
        for _ in range(most + 1):
            child = os.fork()
            if child == 0:
                signal.pause()
            begun.append(child)
    except OSError:
        return None
    finally:
        for child in begun:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"it started {len(begun)}"


def main() -> None:
    """Try everything and tell."""
    port, outside, most, limit_mb, disk_mb = sys.argv[1:]
    tried: dict[str, Attempt] = {
        "loopback": lambda: loopback(int(port)),
        "interfaces": interfaces,
        "writing": lambda: writing(outside),
        "reading": lambda: reading(outside),
        "environment": environment,
        "signals": signals,
        "tracing": tracing,
        "disk": lambda: disk(int(disk_mb)),
        "memory": lambda: memory(int(limit_mb)),
        "processes": lambda: processes(int(most)),
    }
    told: dict[str, str] = {}
    for name, attempt in tried.items():
        try:
            told[name] = attempt() or "held"
        except OSError:
            told[name] = "held"
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
