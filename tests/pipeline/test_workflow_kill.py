"""Kill -9 in all places of a training job: it goes on, and everything has happened once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_points.py")
STEP = 32
FIRSTS = (3, 11, 19, 27)  # together every eighth effect: more than 30 points


def tried(tmp_path, first, step, gain):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(first), str(step), str(gain)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=1_200,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    return found["plain"], found["points"]


def check_same(plain, points):
    assert plain["state"]["problems"] == []
    for point in points:
        assert point["killed"], point["point"]
        assert point["outcome"] == plain["outcome"], point["point"]
        assert point["state"] == plain["state"], point["point"]


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", FIRSTS)
def test_a_killed_job_goes_on_to_one_effect(tmp_path, first):
    plain, points = tried(tmp_path, first, STEP, 0.1)
    assert plain["outcome"]["ending"] == "promoted"
    assert len(points) >= 8
    state = plain["state"]
    assert sorted(state["batches"]) == ["job", "job-round-1"]  # one for each round
    assert [status for status, _ in state["batches"].values()] == ["completed"] * 2
    assert state["champion"] == plain["outcome"]["challenger"]
    events = [event for event, _ in state["history"]]
    assert events.count("sealed look") == events.count("verdict") == events.count("deployed") == 1
    check_same(plain, points)


@pytest.mark.timeout(1_200)
def test_killed_around_a_rollback_it_stays_rolled_back(tmp_path):
    plain, points = tried(tmp_path, -7, 2, -0.3)
    assert plain["outcome"]["ending"] == "rolled back"
    assert plain["outcome"]["reason"]
    assert plain["state"]["champion"] == plain["outcome"]["champion"]
    assert len(points) == 4
    check_same(plain, points)
