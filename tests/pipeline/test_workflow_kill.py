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


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", FIRSTS)
def test_a_killed_job_goes_on_to_one_effect(tmp_path, first):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(first), str(STEP)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=1_200,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    plain, points = found["plain"], found["points"]
    assert plain["outcome"]["ending"] == "promoted"
    assert len(points) >= 8
    state = plain["state"]
    assert sorted(state["batches"]) == ["job", "job-round-1"]  # one for each round
    assert [status for status, _ in state["batches"].values()] == ["completed"] * 2
    assert state["champion"] == plain["outcome"]["challenger"]
    events = [event for event, _ in state["history"]]
    assert events.count("sealed look") == events.count("verdict") == events.count("deployed") == 1
    assert state["problems"] == []
    for point in points:
        assert point["killed"], point["point"]
        assert point["outcome"] == plain["outcome"], point["point"]
        assert point["state"] == state, point["point"]
