from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from agent_gym.core.clock import DAY_NS, ManualClock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.pipeline.cleanup import CleanupRules, carry_out, plan_cleanup
from agent_gym.pipeline.cleanup.removal import GOING
from agent_gym.pipeline.nightly import LockHeld

NOW_NS = 1_000 * DAY_NS
CLOCK = ManualClock(NOW_NS)
ALL = CleanupRules(older_than=10, keep=0)


def age(path: Path, days: float) -> None:
    then = NOW_NS - round(days * DAY_NS)
    for each in [path, *path.rglob("*")]:
        os.utime(each, ns=(then, then), follow_symlinks=False)


def a_run(home: Path, name: str, *, days: float = 100, status: str | None = "done") -> Path:
    run = home / "experiments" / name / "seed_0"
    (run / "checkpoints" / "step_10").mkdir(parents=True)
    (run / "checkpoints" / "step_10" / "arrays.npz").write_bytes(b"x" * 1_000)
    (run / "best").mkdir()
    (run / "best" / "policy.safetensors").write_bytes(b"y" * 500)
    (run / "config.json").write_text("{}")
    if status is not None:
        (run / "result.json").write_text(json.dumps({"status": status}))
    age(home / "experiments" / name, days)
    return run


def a_night(home: Path, name: str, days: float = 100) -> Path:
    run = home / "reports" / "runs" / name
    run.mkdir(parents=True)
    for file in ("samples.json", "setup.json"):
        (run / file).write_text("{}")
    age(run, days)
    return run


def gone(home: Path, rules: CleanupRules = ALL, pages: tuple[Path, ...] = ()) -> set[str]:
    return {item.path for item in plan_cleanup(home, rules, CLOCK, pages).goes}


def why(home: Path, path: str, pages: tuple[Path, ...] = ()) -> str:
    stays = plan_cleanup(home, ALL, CLOCK, pages).stays
    return next(item.why for item in stays if item.path == path)


def test_old_runs_go_and_what_was_planned_is_what_is_removed(tmp_path):
    a_run(tmp_path, "old"), a_run(tmp_path, "young", days=3), a_night(tmp_path, "n1")
    plan = plan_cleanup(tmp_path, ALL, CLOCK)
    assert [item.path for item in plan.goes] == ["experiments/old", "reports/runs/n1"]
    assert plan.goes[0].n_bytes == 1_500 + len('{"status": "done"}') + 2
    assert (tmp_path / "experiments" / "old").is_dir()  # a plan touches nothing
    done = carry_out(plan, CLOCK)
    assert done.removed == plan.goes
    assert done.left == ()
    assert done.n_bytes == plan.n_bytes
    assert not (tmp_path / "experiments" / "old").exists()
    assert (tmp_path / "experiments" / "young" / "seed_0" / "best").is_dir()
    assert carry_out(plan_cleanup(tmp_path, ALL, CLOCK), CLOCK).removed == ()


def test_the_newest_stay_and_only_their_checkpoints_go(tmp_path):
    for number in range(4):
        a_run(tmp_path, f"e{number}", days=100 + number)
    rules = CleanupRules(older_than=10, keep=2)
    assert gone(tmp_path, rules) == {
        "experiments/e2",
        "experiments/e3",
        "experiments/e0/seed_0/checkpoints",
        "experiments/e1/seed_0/checkpoints",
    }
    carry_out(plan_cleanup(tmp_path, rules, CLOCK), CLOCK)
    assert (tmp_path / "experiments" / "e0" / "seed_0" / "best" / "policy.safetensors").is_file()
    assert not (tmp_path / "experiments" / "e0" / "seed_0" / "checkpoints").exists()


@pytest.mark.parametrize("status", [None, "interrupted", "error"])
def test_checkpoints_of_a_run_that_can_go_on_stay_with_the_newest(tmp_path, status):
    a_run(tmp_path, "stopped", status=status)
    assert gone(tmp_path, CleanupRules(older_than=10, keep=1)) == set()


@pytest.mark.parametrize("name", ["ppo_baseline", "baseline_training", "champion-2026", "Baseline"])
def test_baselines_and_champions_stay(tmp_path, name):
    a_run(tmp_path, name)
    assert gone(tmp_path) == set()
    assert why(tmp_path, f"experiments/{name}") == "a baseline"
    a_run(tmp_path, "baselineless")  # the word alone protects, not the letters
    assert gone(tmp_path) == {"experiments/baselineless"}


def test_a_champion_in_an_experiment_keeps_it(tmp_path):
    run = a_run(tmp_path, "e")
    (run / "champion.json").write_text("{}")
    age(tmp_path / "experiments", 100)
    assert why(tmp_path, "experiments/e") == "a champion"


@pytest.mark.parametrize(
    "text",
    [
        '<a href="../experiments/told/report.html">',
        '{"folder": "results/experiments/told"}',
        "see experiments/told/seed_0.",
        "experiments/told%2Fseed_0",
    ],
)
def test_what_a_report_or_a_page_refers_to_stays(tmp_path, text):
    home, docs = tmp_path / "home", tmp_path / "docs"
    for name in ("told", "told_2", "tol"):
        a_run(home, name)
    docs.mkdir()
    (docs / "page.md").write_text(text)
    assert gone(home, pages=(docs,)) == {"experiments/told_2", "experiments/tol"}
    assert why(home, "experiments/told", (docs,)) == f"{docs / 'page.md'} refers to it"
    (home / "reports").mkdir()
    (home / "reports" / "lander.html").write_text(text)
    assert gone(home) == {"experiments/told_2", "experiments/tol"}


def test_a_night_that_a_baseline_was_made_of_stays(tmp_path):
    a_night(tmp_path, "20260101T000000Z-aa"), a_night(tmp_path, "20260102T000000Z-bb")
    folder = tmp_path / "reports" / "baseline" / "b1"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"run_id": "20260101T000000Z-aa"}))
    assert gone(tmp_path) == {"reports/runs/20260102T000000Z-bb"}


def test_what_a_page_that_cannot_be_read_says_is_not_guessed(tmp_path, monkeypatch):
    a_run(tmp_path, "e")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "page.html").write_text("x")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "not for you")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(DataError, match="cannot be read"):
        plan_cleanup(tmp_path, ALL, CLOCK)


def test_a_run_at_work_stays_by_its_lock_its_process_or_its_youth(tmp_path):
    runs = {name: a_run(tmp_path, name) for name in ("locked", "pid", "dead", "empty")}
    (runs["pid"] / "run.pid").write_text(str(os.getpid()))
    (runs["dead"] / "run.pid").write_text(json.dumps({"pid": 2**22 + 1}))
    (runs["empty"] / "lock").write_text("")
    lock = runs["locked"] / "run.lock"
    lock.write_text("{}")
    for name in runs:
        age(tmp_path / "experiments" / name, 100)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert gone(tmp_path) == {"experiments/dead", "experiments/empty"}
        assert "held" in why(tmp_path, "experiments/locked")
        assert str(os.getpid()) in why(tmp_path, "experiments/pid")
    assert "experiments/locked" in gone(tmp_path)
    a_run(tmp_path, "running", days=0.01)
    assert "experiments/running" not in gone(tmp_path, CleanupRules(older_than=0, keep=0))
    a_run(tmp_path, "rested", days=0.1)
    assert "experiments/rested" in gone(tmp_path, CleanupRules(older_than=0, keep=0))


def test_what_begins_to_work_after_the_plan_is_left(tmp_path):
    run = a_run(tmp_path, "e")
    plan = plan_cleanup(tmp_path, ALL, CLOCK)
    (run / "run.pid").write_text(str(os.getpid()))
    done = carry_out(plan, CLOCK)
    assert done.removed == ()
    assert [item.path for item in done.left] == ["experiments/e"]
    assert run.is_dir()


def test_a_night_under_way_keeps_nights_and_stops_the_removal(tmp_path):
    a_night(tmp_path, "n1"), a_run(tmp_path, "e")
    lock = tmp_path / "nightly.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        plan = plan_cleanup(tmp_path, ALL, CLOCK)
        assert [item.path for item in plan.goes] == ["experiments/e"]
        with pytest.raises(LockHeld):
            carry_out(plan, CLOCK)
    assert (tmp_path / "experiments" / "e").is_dir()


def test_links_are_never_followed(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside"
    a_run(outside, "precious")
    a_run(home, "e")
    (home / "experiments" / "linked").symlink_to(outside / "experiments" / "precious")
    (home / "experiments" / "e" / "inner").symlink_to(outside / "experiments" / "precious")
    (home / "reports").symlink_to(outside)
    age(home / "experiments" / "e", 100)
    plan = plan_cleanup(home, ALL, CLOCK)
    assert [item.path for item in plan.goes] == ["experiments/e"]
    assert plan.goes[0].n_bytes < 3_000
    carry_out(plan, CLOCK)
    assert (outside / "experiments" / "precious" / "seed_0" / "config.json").is_file()
    assert (home / "experiments" / "linked").is_symlink()


def test_a_folder_that_becomes_a_link_after_the_plan_is_left(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside"
    a_run(home, "e")
    plan = plan_cleanup(home, ALL, CLOCK)
    (home / "experiments").rename(outside)
    (home / "experiments").symlink_to(outside)
    assert carry_out(plan, CLOCK).removed == ()
    assert (outside / "e" / "seed_0" / "config.json").is_file()


def test_files_of_others_are_nothing_to_us(tmp_path):
    for name in ("experiments/thesis/draft", "cache/pip", "reports/runs/mine", "videos"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file.txt").write_text("mine")
    (tmp_path / ".bashrc.tmp").write_text("mine")
    age(tmp_path, 999)
    assert gone(tmp_path) == set()


def test_leftovers_and_a_removal_that_was_cut_off_go(tmp_path):
    a_run(tmp_path, "e", days=1)
    half = tmp_path / "experiments" / f".old{GOING}"
    half.mkdir()
    (half / "x").write_text("x")
    file = tmp_path / "experiments" / "e" / ".result.json.abc.tmp"
    file.write_text("x")
    age(half, 20), age(file, 20)
    rules = CleanupRules(older_than=10, keep=5)
    assert gone(tmp_path, rules) == {
        f"experiments/.old{GOING}",
        "experiments/e/.result.json.abc.tmp",
    }
    assert len(carry_out(plan_cleanup(tmp_path, rules, CLOCK), CLOCK).removed) == 2
    assert not half.exists()


def test_videos_and_frozen_code(tmp_path):
    (tmp_path / "videos").mkdir()
    for name in ("lander.mp4", "try.mp4", "notes.doc"):
        (tmp_path / "videos" / name).write_text("x")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "r.html").write_text('<video src="../videos/lander.mp4">')
    pointer = {"schema": "agent_gym.pointer/1", "id": "b2", "manifest_hash": "0"}
    (tmp_path / "reports" / "baseline").mkdir()
    (tmp_path / "reports" / "baseline" / "current.json").write_text(json.dumps(pointer))
    for name in ("b1", "b2"):
        (tmp_path / "cache" / "frozen" / name).mkdir(parents=True)
    age(tmp_path, 100)
    assert gone(tmp_path) == {"videos/try.mp4", "cache/frozen/b1"}


def test_a_home_that_is_not_there_or_no_folder(tmp_path):
    assert plan_cleanup(tmp_path / "none", ALL, CLOCK).goes == ()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="no folder"):
        plan_cleanup(tmp_path / "file", ALL, CLOCK)
