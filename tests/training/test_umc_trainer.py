"""UMC trained fold after fold: warm, causal, told, and the same bytes again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.agents.umc.agent import umc
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.markets.bars import Bars
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.umc import TrainEvent, UMCTrained, UMCTrainer
from tests.training.umc_samples import (
    BARS,
    WALK,
    bars_of,
    config_of,
    contents,
    params,
    trained,
)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> UMCTrained:
    return trained(tmp_path_factory.mktemp("walk"))


def poisoned(bars: Bars, first: int) -> Bars:
    """Return the bars with prices tenfold from a row on."""
    scale = np.where(np.arange(len(bars)) >= first, 10.0, 1.0)
    prices = {name: getattr(bars, name) * scale for name in ("open", "high", "low", "close")}
    return replace(bars, **prices)


def test_later_folds_begin_from_the_one_before(walked: UMCTrained) -> None:
    first, second = (
        {fit.name.partition("/umc/")[2]: fit for fit in fold.fits} for fold in walked.folds[:2]
    )
    model = "model/umc/recurrent"
    assert not first[model].warm
    assert first[model].steps == 24
    assert second[model].warm
    assert second[model].steps == 8
    tiers = [fold.agent.mind.model.report.chosen for fold in walked.folds[:2]]
    assert second["actor"].warm is (tiers[0] == tiers[1])
    assert not first["actor"].warm


def test_a_warm_fit_really_uses_what_came_before(tmp_path: Path, walked: UMCTrained) -> None:
    later = WalkForward(train=480, test=120, purge=2, embargo=8)  # fold 2 of the walk, by itself
    cold = trained(tmp_path, config_of(walk=later)).folds[0]
    assert cold.fold == walked.folds[1].fold
    warm = walked.folds[1].fits[0].looks[0]
    assert warm["held_out_score"] != cold.fits[0].looks[0]["held_out_score"]
    assert cold.fits[0].steps == 24


def test_what_comes_after_a_fold_leaves_it_as_it_is(tmp_path: Path, walked: UMCTrained) -> None:
    first = walked.folds[0].fold
    assert first is not None
    trained(tmp_path, bars=poisoned(bars_of(), first.train.stop))
    one, other = contents(walked.folder), contents(tmp_path)
    weights = "fold_{}/weights.safetensors"
    assert one[weights.format(1)] == other[weights.format(1)]
    assert one[weights.format(2)] != other[weights.format(2)]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, walked: UMCTrained) -> None:
    trained(tmp_path / "same", every_steps=3)
    assert contents(tmp_path / "same") == contents(walked.folder)
    trained(tmp_path / "other", config_of(seed=4))
    assert contents(tmp_path / "other") != contents(walked.folder)


def test_a_second_call_takes_no_step(walked: UMCTrained) -> None:
    before = contents(walked.folder)
    told: list[TrainEvent] = []
    again = trained(walked.folder, tell=told.append)
    assert [event.fit for event in told] == [None] * len(walked.folds)
    assert contents(walked.folder) == before
    assert again.spent == walked.spent


def test_progress_is_told_step_by_step(tmp_path: Path) -> None:
    told: list[TrainEvent] = []
    config = config_of(walk=None, params=params(actor=False))
    made = trained(tmp_path, config, tell=told.append)
    assert told[0] == TrainEvent(1, 1)
    steps = [each.fit for each in told if each.fit is not None]
    first = [fit for fit in steps if fit.fit == made.folds[0].fits[0].name]
    assert [fit.step for fit in first] == list(range(1, 25))
    assert {fit.steps for fit in first} == {24}
    assert [fit.done for fit in first] == [False] * 23 + [True]
    assert first[-1].score == made.folds[0].fits[0].looks[-1]["held_out_score"]


def test_agents_are_kept_and_can_be_used(walked: UMCTrained) -> None:
    for fold in walked.folds:
        again = umc(UMCConfig(folder=fold.folder))
        for name, array in fold.agent.weights().items():
            assert np.array_equal(again.weights()[name], array)
    assert [fold.folder.name for fold in walked.folds] == ["fold_1", "fold_2", "fold_3"]


def test_the_record_says_what_was_chosen_and_why(walked: UMCTrained) -> None:
    record = json.loads((walked.folder / "training.json").read_text())
    for row in record["folds"]:
        assert row["tier"]["why"]
        grown = row["policy"]
        sure = grown["actor_lead"] > 2.0 * grown["actor_lead_error"]
        assert grown["decides"] == ("actor" if sure else "planner")
        assert grown["actor_lead"] == pytest.approx(grown["actor_growth"] - grown["planner_growth"])
        assert all(len(fit["looks"]) >= 2 for fit in row["fits"])
    assert record["manifest"]["data"]["fingerprint"] == bars_of().fingerprint
    timings = json.loads((walked.folder / "timings.json").read_text())
    assert all(fit["cpu_s"] > 0 for fit in timings["fits"].values())


def test_patience_stops_early(tmp_path: Path, walked: UMCTrained) -> None:
    assert not any(fit.as_dict()["stopped_early"] for fit in walked.folds[0].fits)
    # A rate at which nothing gets better: every look after the first is in vain.
    hasty = {"patience_looks": 1, "learning_rate": 1.0, "last_learning_rate": 1.0}
    config = config_of(walk=None, params=params(recurrent=hasty, actor=False))
    fit = trained(tmp_path, config).folds[0].fits[0]
    assert fit.as_dict()["stopped_early"]
    assert fit.steps < 24


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 4},
        {"params": params(actor=False)},
        {"backtest": BacktestConfig(taker_bps=1.0)},
        {"walk": WALK.model_copy(update={"validate_rows": 60})},
    ],
)
def test_every_setting_acts(tmp_path: Path, walked: UMCTrained, changes: dict[str, Any]) -> None:
    trained(tmp_path, config_of(**changes))
    weights = "fold_1/weights.safetensors"
    assert contents(tmp_path)[weights] != contents(walked.folder)[weights]


def test_another_training_in_the_folder_is_refused(walked: UMCTrained) -> None:
    with pytest.raises(ConfigError, match="another training") as caught:
        trained(walked.folder, config_of(seed=4))
    assert caught.value.found == "config.seed: 3 there, 4 here"
    with pytest.raises(ConfigError, match="fingerprint"):
        trained(walked.folder, bars=bars_of(6))


def test_begin_anew_removes_its_own_files_alone(tmp_path: Path) -> None:
    config = config_of(walk=None, params=params(actor=False))
    trained(tmp_path, config)
    (tmp_path / "notes.txt").write_text("mine")
    UMCTrainer(bars_of(), config, tmp_path).begin_anew()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "notes.txt"]


def test_two_at_work_in_one_folder_are_refused(tmp_path: Path) -> None:
    with at_work(tmp_path), pytest.raises(AgentGymError, match="another process"):
        trained(tmp_path)


def test_too_short_a_past_says_in_which_fold(tmp_path: Path) -> None:
    walk = WalkForward(train=20, test=BARS - 20)
    with pytest.raises(AgentGymError) as caught:
        trained(tmp_path, config_of(walk=walk))
    assert "fold 1 of 1" in str(caught.value)
