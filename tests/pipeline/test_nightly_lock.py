"""One run at a time, whatever was left behind by others."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent_gym.core.clock import SystemClock
from agent_gym.pipeline.nightly.lock import LockHeld, one_run

HERE = Path(__file__).parent
RACER = """
import sys
from pathlib import Path
from agent_gym.core.clock import SystemClock
from agent_gym.pipeline.nightly.lock import LockHeld, one_run
sys.stdout.write("ready\\n"); sys.stdout.flush()
for line in sys.stdin:
    try:
        with one_run(Path(line.strip()), SystemClock(), "racer"):
            sys.stdout.write("in\\n"); sys.stdout.flush()
            sys.stdin.readline()
        sys.stdout.write("out\\n")
    except LockHeld as error:
        sys.stdout.write("5\\n")
    sys.stdout.flush()
"""


def racer():
    process = subprocess.Popen(
        [sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def tell(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def test_of_two_at_once_exactly_one_gets_in_fifty_times(tmp_path):
    racers = [racer(), racer()]
    try:
        for turn in range(50):
            path = tmp_path / f"home{turn % 7}" / "nightly.lock"
            for each in racers[:: 1 if turn % 2 else -1]:
                tell(each, path)
            answers = [each.stdout.readline() for each in racers]
            assert sorted(answers) == ["5\n", "in\n"]
            inside = racers[answers.index("in\n")]
            tell(inside, "")
            assert inside.stdout.readline() == "out\n"
    finally:
        for each in racers:
            each.stdin.close()
            each.wait(10)


def test_a_lock_of_a_killed_process_is_free_at_once(tmp_path):
    path, process = tmp_path / "nightly.lock", racer()
    tell(process, path)
    assert process.stdout.readline() == "in\n"
    with pytest.raises(LockHeld, match=str(process.pid)), one_run(path, SystemClock(), "me"):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    process.stdin.close()
    assert json.loads(path.read_text())["pid"] == process.pid  # what it left says nothing
    with one_run(path, SystemClock(), "me"):
        assert json.loads(path.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("left", [b"", b"{", b"\xff\xfe", b'{"pid": 1, "since": "x"}'])
def test_whatever_stands_in_the_file_locks_nothing(tmp_path, left):
    path = tmp_path / "nightly.lock"
    path.write_bytes(left)
    clock = SystemClock()
    with one_run(path, clock, "me"), pytest.raises(LockHeld), one_run(path, clock, "again"):
        pass


def test_a_file_that_was_removed_under_the_holder_does_not_let_two_in(tmp_path):
    path = tmp_path / "nightly.lock"
    inside, errors = threading.Event(), []
    with one_run(path, SystemClock(), "me"):
        path.unlink()
        with one_run(path, SystemClock(), "other file"):  # the name is what is locked
            inside.set()
            with pytest.raises(LockHeld), one_run(path, SystemClock(), "third"):
                errors.append("two in one")
    assert inside.is_set()
    assert errors == []
