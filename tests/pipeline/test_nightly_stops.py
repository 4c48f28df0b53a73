"""Nights that are killed or find the disk full: files are old or new, and the next night ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def driven(how, folder):
    paths = os.pathsep.join([str(HERE), str(HERE.parent.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, str(HERE / "night_driver.py"), how, str(folder)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def scratch(tmp_path):
    """A folder in memory if there is one: a killed process loses nothing there either."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.mark.parametrize("how", ["kill", "full"])
def test_a_stopped_night_leaves_old_or_new_files_and_the_next_one_ends_the_same(scratch, how):
    found = driven(how, scratch)
    assert found["code"] == 0
    assert found["changed"] > 10  # the night that is stopped would have changed something
    assert len(found["nights"]) >= 50
    stopped = {"kill": -signal.SIGKILL, "full": 4}[how]
    for night in found["nights"]:
        assert night["ended"] == stopped, night
        assert night["wrong"] == [], night
        assert night["again"] == 0, night
        assert night["different"] == [], night


def test_of_two_nights_at_once_exactly_one_exits_5(scratch):
    ends = driven("race", scratch)["ends"]
    assert ends == [[0, 5]] * len(ends)
    assert len(ends) >= 25
