"""Planted truths: what is there is found, what is not there is not, what changes is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.agents.desk import RecentContext
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk.config import DriftConfig, PromotionConfig
from agent_gym.training.desk.drift import DriftMonitor, binned_errors, feature_drift, psi
from agent_gym.training.desk.online import prequential
from agent_gym.training.desk.planted import PlantedLaw, draw, planted_dataset
from agent_gym.training.desk.promotion import PromotionRule
from agent_gym.training.desk.study import (
    LASTING,
    drift_delay,
    false_alarms,
    null_ruling,
    shuffled_ruling,
    truth,
)
from agent_gym.training.desk.training import TrainingModule


@pytest.mark.parametrize("seed", [0, 1])
def test_a_known_law_is_learned_nearly_as_well_as_it_can_be(seed):
    found = truth(seed, n=9000, judged=30_000)
    assert found["bayes_auc"] > 0.75
    assert found["bayes_auc"] - found["auc"] < 0.02
    assert found["ece"] < 0.03
    assert found["utility_share"] >= 0.90


def test_nothing_is_promoted_where_nothing_tells_anything():
    # Passing on the test part is only the first half of a promotion, so this bounds it.
    passed = sum(null_ruling(seed, n=400).passed for seed in range(40))
    assert passed <= 2


def test_who_only_stops_trading_in_a_losing_market_is_not_promoted():
    data = planted_dataset(draw(PlantedLaw.null(0.3), 900, Seeds(5)), LASTING)
    result = TrainingModule(RecentContext(), config=LASTING).train_model(data)
    ruling = PromotionRule(PromotionConfig(brier_slack=1.0), LASTING, Seeds(0)).judge(
        result.model, None, result.test
    )
    assert ruling.evidence["gains"]["accept_all"]["low"] > 0.0
    assert not ruling.passed
    assert "accept_none" in " ".join(ruling.reasons)


def test_shuffled_labels_are_not_promoted():
    assert sum(shuffled_ruling(seed, n=400).passed for seed in range(8)) == 0


def test_the_rule_lets_a_real_edge_pass_and_names_what_is_missing():
    data = planted_dataset(draw(PlantedLaw(), 2500, Seeds(3)), LASTING)
    result = TrainingModule(RecentContext(), config=LASTING).train_model(data)
    rule = PromotionRule(PromotionConfig(), LASTING, Seeds(0))
    assert rule.judge(result.model, None, result.test).passed
    again = rule.judge(result.model, result.model, result.test)
    assert again.reasons == ("decides as champion does",)
    strict = PromotionRule(PromotionConfig(slice_loss=0.0), LASTING, Seeds(0))
    worse = TrainingModule(RecentContext(), config=LASTING).train_model(
        planted_dataset(draw(PlantedLaw().turned(), 2500, Seeds(4)), LASTING)
    )
    said = " ".join(strict.judge(worse.model, result.model, result.test).reasons)
    assert "gain over champion is not sure" in said
    assert "Brier score" in said
    assert "loses in carry, momentum, reversal" in said


def test_a_shadow_needs_both_signals_and_days():
    rule = PromotionRule(PromotionConfig(), LASTING, Seeds(0))
    many = planted_dataset(draw(PlantedLaw(), 700, Seeds(0)), LASTING)  # 15 minutes apart
    assert "200 of 200" in rule.shadowed(many.take(slice(0, 200)))
    assert "673 of 200 labelled signals, 7.0 of 7 days" not in rule.shadowed(many)
    assert rule.shadowed(many) == ""
    assert "199 of 200" in rule.shadowed(many.take(slice(0, 199)))


@pytest.mark.parametrize("seed", range(4))
def test_drift_is_noticed_within_150_signals(seed):
    found = drift_delay(seed)
    assert found["before"] == 0
    assert found["delay"] is not None
    assert found["delay"] <= 150


def test_hardly_any_alarm_where_nothing_changes():
    alarms = [name for seed in (0, 1) for name in false_alarms(seed)["alarms"]]
    assert len(alarms) <= 2


def test_moved_features_are_noticed_without_any_change_in_the_law():
    data = planted_dataset(draw(PlantedLaw(), 2000, Seeds(1)), LASTING)
    model = TrainingModule(RecentContext(), config=LASTING).train_model(data).model
    later = draw(PlantedLaw(), 400, Seeds(2))
    later.X[:, 4:] += 1.0  # two decoys: the losses stay as they are
    alarms = DriftMonitor(model, data.feature_names).follow(planted_dataset(later, LASTING))
    assert {"psi", "ks"} <= {alarm.sensor for alarm in alarms}
    assert "loss" not in {alarm.sensor for alarm in alarms}
    moved = next(alarm for alarm in alarms if alarm.sensor == "psi").detail
    assert {*moved} == {"x4", "x5"}
    deaf = DriftConfig(ignored=("x4", "x5"))
    alarms = DriftMonitor(model, data.feature_names, deaf).follow(planted_dataset(later, LASTING))
    assert {"psi", "ks"} & {alarm.sensor for alarm in alarms} == set()


def test_probabilities_that_lie_are_noticed():
    data = planted_dataset(draw(PlantedLaw(), 2000, Seeds(1)), LASTING)
    model = TrainingModule(RecentContext(), config=LASTING).train_model(data).model
    worse = planted_dataset(draw(PlantedLaw(offset=-1.2), 500, Seeds(2)), LASTING)
    assert "ece" in {a.sensor for a in DriftMonitor(model, data.feature_names).follow(worse)}
    p = np.full(400, 0.5)
    assert binned_errors(p, np.ones((1, 400)))[0] == pytest.approx(0.5)


def test_indices_of_moved_distributions():
    rng = Seeds(0).rng()
    old, new = rng.normal(size=(1000, 2)), rng.normal(size=(200, 2))
    calm = feature_drift(old, new, ("a", "b"))
    assert all(entry["psi"] < 0.15 and entry["ks_p_bh"] > 0.01 for entry in calm.values())
    new[:, 1] += 1.0
    moved = feature_drift(old, new, ("a", "b"))
    assert moved["b"]["psi"] > 0.2 > moved["a"]["psi"]
    assert moved["b"]["ks_p_bh"] < 1e-6
    assert psi(np.zeros(100), np.ones(50)) > 1.0  # a constant that changes


def test_the_companion_learns_as_it_goes():
    known = prequential(planted_dataset(draw(PlantedLaw(), 3000, Seeds(0)), LASTING))
    blind = prequential(planted_dataset(draw(PlantedLaw.null(), 3000, Seeds(0)), LASTING))
    assert known["auc"]["estimate"] > 0.72
    assert blind["auc"]["low"] < 0.5
    assert known["log_loss"] < 0.62
