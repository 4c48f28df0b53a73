"""Kill -9 in all places of a training job: it goes on, and everything has happened once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_points.py")
POINTS, PARTS = 36, 4


def tried(tmp_path, gain, points, first, step=1):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), *map(str, (gain, points, first, step))],
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
        assert point["outcome"] == plain["outcome"], point["point"]
        assert point["state"] == plain["state"], point["point"]


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_killed_job_goes_on_to_one_effect(tmp_path, part):
    plain, points = tried(tmp_path, 0.1, POINTS, part, PARTS)
    assert plain["outcome"]["ending"] == "promoted"
    assert sum(point["killed"] for point in points) >= 8  # 32 or more in all parts
    state = plain["state"]
    assert sorted(state["batches"]) == ["job", "job-round-1"]  # one for each round
    assert [status for status, _ in state["batches"].values()] == ["completed"] * 2
    assert state["champion"] == plain["outcome"]["challenger"]
    events = [event for event, _ in state["history"]]
    assert events.count("sealed look") == events.count("verdict") == events.count("deployed") == 1
    check_same(plain, points)


@pytest.mark.timeout(1_200)
def test_killed_around_a_rollback_it_stays_rolled_back(tmp_path):
    plain, points = tried(tmp_path, -0.3, 50, -5)
    assert plain["outcome"]["ending"] == "rolled back"
    assert plain["outcome"]["reason"]
    assert plain["state"]["champion"] == plain["outcome"]["champion"]
    assert sum(point["killed"] for point in points) >= 3
    check_same(plain, points)
