"""Figures over seeds: right against plain sums, and no seed is dropped in silence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from agent_gym.core.errors import DataError
from agent_gym.evaluation.statistics import iqm
from agent_gym.reporting.rl.curves import (
    binned,
    episode_profile,
    learning_curve,
    reached_curve,
    score_of,
    share_above,
    steps_to,
)
from agent_gym.reporting.rl.runs import read_arms
from agent_gym.training.rl.config import TrainerConfig
from tests.reporting.run_samples import write_arm, write_rows, write_run


def evaluations(path, values, every=10):
    rows = [(every * (at + 1), 7, value, 5) for at, value in enumerate(values)]
    write_rows(path / "evaluations.csv", "step,seed,reward,length", rows)


def test_the_score_is_of_the_rows_and_not_of_a_summary(tmp_path):
    path = write_arm(tmp_path, 5) / "seed_3" / "result.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"final_mean": 999.0}))
    (arm,) = read_arms(tmp_path)
    means = [float(np.mean(run.rewards)) for run in arm.runs]
    score = score_of(arm)
    assert score.iqm == pytest.approx(iqm(means)) == pytest.approx(np.mean(sorted(means)[1:4]))
    assert score.mean == pytest.approx(np.mean(means))
    assert score.low < score.iqm < score.high
    assert score.seeds == 5


def test_one_seed_has_no_interval_and_none_has_no_score(tmp_path):
    write_run(tmp_path / "one", 1)
    write_run(tmp_path / "none", 1, status="error")
    none, one = read_arms(tmp_path)
    assert score_of(one).low is None
    assert score_of(none) is None
    assert share_above(none, 200.0) is None


def test_the_curve_is_the_middle_of_the_seeds(tmp_path):
    for seed, values in ((1, (0.0, 10.0)), (2, (2.0, 20.0)), (3, (4.0, 60.0))):
        evaluations(write_run(tmp_path, seed), values)
    curve = learning_curve(read_arms(tmp_path)[0])
    assert curve.steps.tolist() == [10, 20]
    assert curve.middle.tolist() == [2.0, 30.0]
    assert (curve.low <= curve.middle).all()
    assert (curve.middle <= curve.high).all()
    assert curve.n.tolist() == [3, 3]


def test_who_stopped_early_stays_in_the_curve(tmp_path):
    evaluations(write_run(tmp_path, 1, status="stopped_early"), (100.0,))
    evaluations(write_run(tmp_path, 2), (0.0, 0.0))
    curve = learning_curve(read_arms(tmp_path)[0])
    assert curve.middle.tolist() == [50.0, 50.0]


def test_who_was_killed_counts_as_far_as_it_came(tmp_path):
    evaluations(write_run(tmp_path, 1, status=None), (100.0,))
    evaluations(write_run(tmp_path, 2), (0.0, 0.0))
    curve = learning_curve(read_arms(tmp_path)[0])
    assert curve.middle.tolist() == [50.0, 0.0]
    assert curve.n.tolist() == [2, 1]


def test_bins_keep_the_mean_and_skip_empty_cells(tmp_path):
    path = write_run(tmp_path, 1)
    rows = [(at, "" if at == 1 else float(at % 2)) for at in range(1, 10_001)]
    write_rows(path / "metrics.csv", "step,loss", rows)
    (arm,) = read_arms(tmp_path)
    curve = binned(arm, "metrics", "loss")
    assert curve.steps.size <= 120
    assert np.allclose(curve.middle, 0.5, atol=0.02)
    assert binned(arm, "metrics", "absent") is None


def test_steps_to_a_mark_are_censored(tmp_path):
    for seed, values in ((1, (10.0, 210.0, 10.0)), (2, (10.0, 20.0, 30.0)), (3, (300.0, 0.0, 0.0))):
        evaluations(write_run(tmp_path, seed), values)
    (arm,) = read_arms(tmp_path)
    assert [steps_to(run, 200.0) for run in arm.runs] == [(20, True), (30, False), (10, True)]
    found = reached_curve(arm, 200.0)
    assert (found.n, found.censored) == (3, 1)
    assert found.median().estimate == 20.0


def test_a_profile_needs_equally_many_episodes(tmp_path):
    write_run(tmp_path, 1, finals=100)
    write_run(tmp_path, 2, finals=90)
    with pytest.raises(DataError, match="equally many"):
        episode_profile(read_arms(tmp_path)[0], np.array([0.0, 100.0]))


def test_a_run_without_evaluations_has_no_curve(tmp_path):
    path = write_run(tmp_path, 1, config=TrainerConfig(steps=1000))
    (path / "evaluations.csv").unlink()
    (arm,) = read_arms(tmp_path)
    assert learning_curve(arm).steps.size == 0
    assert steps_to(arm.runs[0], 200.0) is None
    assert reached_curve(arm, 200.0) is None
