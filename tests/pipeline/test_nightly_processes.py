"""Nights in real processes: any number, scenarios that break them, and being told to end."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from nightly_samples import MODULE, asked, clock_at, contents, stand_still, tiny_suite

from agent_gym.core.clock import SystemClock
from agent_gym.pipeline.nightly import NightlyOptions, Workspace, prepare, run_nightly
from agent_gym.pipeline.nightly.crew import LocalCrew, Task

HERE = Path(__file__).parent
MARK = "NIGHTLY_TEST_MARK"
SCRIPT = """
import sys
from pathlib import Path
from nightly_samples import asked, stand_still, tiny_suite
from agent_gym.pipeline.nightly import NightlyOptions, Workspace, prepare, run_nightly

def main():
    prepare.code_identity = stand_still
    quick, slow = tiny_suite(names=("alpha",)), tiny_suite(names=("beta",), fail=sys.argv[2])
    suite = quick.model_copy(update={"scenarios": (*quick.scenarios, *slow.scenarios)})
    outcome = run_nightly(asked(suite, workers=2), NightlyOptions(), Workspace(Path(sys.argv[1])))
    print(outcome.played, outcome.kept)
    sys.exit(outcome.exit_code)

if __name__ == "__main__":
    main()
"""


@pytest.fixture(autouse=True)
def _code_that_stays(monkeypatch):
    monkeypatch.setattr(prepare, "code_identity", stand_still)


def rows(workers, tasks):
    crew = LocalCrew(asked().subject, workers, imports=(MODULE,))
    found = crew.play(tasks, lambda _name, _rows: None)
    return {
        (name, row["seed"]): {key: row[key] for key in row if key != "duration_s"}
        for name, each in found.items()
        for row in each
    }


def test_the_number_of_workers_and_the_order_change_no_byte(tmp_path):
    suite = tiny_suite(n_seeds=10, names=("alpha", "beta", "gamma"))
    nights = []
    for workers in (1, 2, 8):
        home = tmp_path / "home"  # the same path, since a message may name it
        options = asked(suite, workers=workers)
        run_nightly(options, NightlyOptions(), Workspace(home), clock=clock_at())
        nights.append(contents(home))
        shutil.rmtree(home)
    assert nights[0] == nights[1] == nights[2]
    tasks = [Task(each, tuple(range(9))) for each in suite.scenarios]
    assert rows(2, tasks) == rows(2, [Task(t.scenario, t.seeds[::-1]) for t in tasks[::-1]])


def test_what_hangs_exits_or_raises_is_a_row_and_the_others_go_on(tmp_path):
    suites = [
        tiny_suite(n_seeds=2, names=(name,), fail=fail)
        for name, fail in (
            ("good", "none"),
            ("hangs", "hang"),
            ("exits", "exit"),
            ("raises", "raise"),
            ("stops", "ctrl-c"),
        )
    ]
    suite = suites[0].model_copy(update={"scenarios": tuple(each.scenarios[0] for each in suites)})
    options = asked(suite, workers=2, timeout_s=8.0)
    outcome = run_nightly(options, NightlyOptions(), Workspace(tmp_path), clock=clock_at())
    assert outcome.exit_code == 4
    found = {
        scenario.name: {(sample.status, bool(sample.error)) for sample in scenario.samples}
        for scenario in outcome.result.run.samples.scenarios
    }
    assert found == {
        "good": {("ok", False)},
        "hangs": {("timeout", True)},
        "exits": {("crashed", True)},
        "raises": {("error", True)},
        "stops": {("error", True)},  # nobody has pressed Ctrl-C
    }


def begin(home, fail):
    paths = os.pathsep.join([str(HERE), str(HERE.parent.parent), *filter(None, sys.path)])
    script = home.parent / "night.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(home), fail],
        env=os.environ | {"PYTHONPATH": paths, MARK: str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


def kept(home):
    try:
        with sqlite3.connect(f"file:{home}/gym.db?mode=ro", uri=True) as db:
            ((count,),) = db.execute("SELECT count(*) FROM nightly_episodes").fetchall()
        return int(count)
    except sqlite3.Error:
        return 0


def left_over(home):
    """Return the processes that a night of this workspace has left."""
    found, mark = [], f"{MARK}={home}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def wait_for(condition, seconds=120.0):
    clock = SystemClock()
    end = clock.monotonic_s() + seconds
    while not condition():
        assert clock.monotonic_s() < end, "waited in vain"
        clock.sleep_s(0.1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_end_leaves_a_report_that_says_so(tmp_path, number):
    home = tmp_path / "home"
    process = begin(home, "hang")
    wait_for(lambda: kept(home) == 8)
    process.send_signal(number)
    assert process.wait(60) == 130
    wait_for(lambda: left_over(home) == [], 30)
    report = json.loads((home / "reports/latest.json").read_text())
    assert report["status"] == "partial"
    states = {each["name"]: {s["status"] for s in each["samples"]} for each in report["scenarios"]}
    assert states["alpha"] == {"ok"}
    assert states["beta"] <= {"interrupted", "cancelled"}
    assert json.loads((home / "reports/nightly_diff.json").read_text())["verdict"] == "error"


def test_after_a_kill_nothing_runs_on_and_nothing_finished_is_played_again(tmp_path):
    home = tmp_path / "home"
    process = begin(home, "hang")
    wait_for(lambda: kept(home) == 8)
    process.kill()
    process.wait(10)
    wait_for(lambda: left_over(home) == [], 30)
    assert not (home / "reports/latest.json").exists()
    again = begin(home, "none")
    said = again.communicate(timeout=120)[0]
    assert again.returncode == 3  # there is no baseline
    assert said.split() == ["12", "8"]  # eight new ones and the four that are always repeated
