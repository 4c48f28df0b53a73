"""Run folders are read as they are: what is broken is named, what is unfinished does not count."""

from __future__ import annotations

import json
import shutil

import pytest

from agent_gym.core.errors import DataError
from agent_gym.reporting.rl.runs import Run, read_arms
from agent_gym.training.rl.config import TrainerConfig
from tests.reporting.run_samples import write_arm, write_rows, write_run


def test_an_arm_is_the_folder_above_its_seeds(tmp_path):
    for name in ("b", "a"):
        write_arm(tmp_path / name, 2)
    arms = read_arms(tmp_path)
    assert [arm.name for arm in arms] == ["a", "b"]
    assert [run.seed for run in arms[0].runs] == [1, 2]
    assert (arms[0].algo, arms[0].env, arms[0].steps) == ("ppo", "LunarLander-v3", 250_000)
    assert [arm.name for arm in read_arms(tmp_path / "a")] == ["a"]
    assert len(read_arms(tmp_path / "a" / "seed_2")[0].runs) == 1


def test_seeds_are_in_the_order_of_numbers(tmp_path):
    for seed in (10, 9, 2):
        write_run(tmp_path, seed)
    assert [run.seed for run in read_arms(tmp_path)[0].runs] == [2, 9, 10]


def test_models_and_trials_are_no_runs(tmp_path):
    path = write_run(tmp_path / "arm", 1)
    for name in ("best", "last"):
        (path / name).mkdir()
        (path / name / "config.json").write_text("{}")
    shutil.copytree(path, tmp_path / "search" / "trial_0" / "seed_1")
    (arm,) = read_arms(tmp_path)
    assert len(arm.runs) == 1


def test_what_is_not_done_does_not_count(tmp_path):
    write_run(tmp_path, 1)
    write_run(tmp_path, 2, status="error", error={"what": "a loss is not a number"})
    write_run(tmp_path, 3, status=None)
    empty = write_run(tmp_path, 4)
    (empty / "final_episodes.csv").unlink()
    (arm,) = read_arms(tmp_path)
    assert [run.seed for run in arm.finished] == [1]
    assert [run.status for run in arm.runs] == ["done", "error", "unfinished", "not evaluated"]


def test_seeds_of_different_configs_are_refused(tmp_path):
    write_run(tmp_path, 1)
    write_run(tmp_path, 2, config=TrainerConfig(agent={"gamma": 0.9}))
    with pytest.raises(DataError, match="one config") as caught:
        read_arms(tmp_path)
    assert "seed_2" in str(caught.value.where)


@pytest.mark.parametrize(
    ("head", "rows", "what"),
    [
        ("step,seed,reward", [(1, 2, 3.0)], "lack a column"),
        ("step,seed,reward,length", [(1, 2, "nan", 4)], "lacks a number"),
        ("step,seed,reward,length", [(1, 2, "inf", 4)], "lacks a number"),
        ("step,seed,reward,length", [(1, 2, "", 4)], "lacks a number"),
        ("step,seed,reward,length", [(1, 2, "high", 4)], "made of numbers"),
        ("step,seed,reward,length", [(1, 2, 3.0, 4, 5, 6)], "no table"),
    ],
)
def test_a_broken_table_is_named(tmp_path, head, rows, what):
    run = Run(write_run(tmp_path, 1))
    write_rows(run.files.final_episodes, head, rows)
    with pytest.raises(DataError, match=what) as caught:
        _ = Run(run.path).final_episodes
    assert "final_episodes.csv" in str(caught.value.where)


def test_a_broken_result_is_named(tmp_path):
    path = write_run(tmp_path, 1)
    told = json.loads((path / "result.json").read_text())
    (path / "result.json").write_text(json.dumps(told | {"status": "splendid"}))
    with pytest.raises(DataError, match="no result of training") as caught:
        read_arms(tmp_path)
    assert "result.json: status" in str(caught.value.where)
    (path / "result.json").write_text("{")
    with pytest.raises(DataError, match="no JSON"):
        read_arms(tmp_path)


def test_an_empty_folder_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match="no training run"):
        read_arms(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        read_arms(tmp_path / "absent")
