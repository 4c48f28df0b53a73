"""A first run says that it compiles kernels; later ones, and those for programs, say nothing."""

import logging
import os
import subprocess
import sys

from agent_gym.apps.cli.kernel_notice import FIRST, KERNELS, QUIET_S, KernelNotice
from agent_gym.core.clock import ManualClock

ROUGH = """
import agent_gym.apps.cli.kernel_notice as notice
notice.listen()
notice.listen()
from agent_gym.core.kernels import door

@door("float64(float64)")
def doubled(x: float) -> float:
    return 2.0 * x

assert doubled(2.0) == 4.0
"""


def test_it_is_said_once_and_then_every_ten_seconds():
    said, clock = [], ManualClock()
    notice = KernelNotice(said.append, clock)
    record = logging.LogRecord(KERNELS, logging.INFO, "", 0, "compiling %s", ("x",), None)
    for seconds in (0.0, 1.0, QUIET_S, 1.0, QUIET_S):
        clock.sleep_s(seconds)
        notice.emit(record)
    assert said == [FIRST, "Still compiling, kernel 3 ...", "Still compiling, kernel 5 ..."]


def test_only_the_first_run_says_so_and_never_to_a_program(tmp_path):
    """A cache of its own: empty, then full, then for somebody who asks for JSON."""
    program = tmp_path / "rough.py"
    program.write_text(ROUGH)

    def told(*words, cache="one"):
        ended = subprocess.run(
            [sys.executable, str(program), *words],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache)},
            capture_output=True,
            text=True,
            timeout=250,
            check=True,
        )
        assert ended.stdout == ""
        return ended.stderr.splitlines()

    assert told() == [FIRST]
    assert told() == []
    assert told("--json", cache="two") == []
