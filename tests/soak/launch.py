"""Runs a command of Agent Gym with a clock that can be moved from outside.

Usage: python -m tests.soak.launch CLOCK WORD... CLOCK is a file of eight bytes: nanoseconds that
are added to the wall clock of this process (``time.time`` and ``time.time_ns``, on which
``core.clock`` and the workflow engine stand). Processes that the command starts have the real
clock; so have ``datetime.now`` and what measures durations.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

FORMAT = "<q"


def set_clock(path: Path, offset_ns: int) -> None:
    """Say how far the clocks of all commands are off."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(struct.pack(FORMAT, offset_ns))


def move_clock(path: Path) -> None:
    """Add what the file says to the wall clock of this process, from now on."""
    with path.open("rb") as file:
        memory = mmap.mmap(file.fileno(), struct.calcsize(FORMAT), access=mmap.ACCESS_READ)
    seconds, nanos = time.time, time.time_ns  # noqa: TID251

    def off_ns() -> int:
        return int(struct.unpack(FORMAT, memory[:])[0])

    time.time_ns = lambda: nanos() + off_ns()  # noqa: TID251
    time.time = lambda: seconds() + off_ns() / 1e9  # noqa: TID251


if __name__ == "__main__":
    move_clock(Path(sys.argv[1]))
    sys.argv = ["agent-gym", *sys.argv[2:]]
    from agent_gym.apps.cli.main import main  # the clock has to be moved first

    main()
