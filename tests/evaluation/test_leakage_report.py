import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    Source,
    Tagged,
    Tags,
    aligned_tags,
    concat,
)
from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.leakage import (
    Part,
    Predictive,
    Trained,
    check_leakage,
    require_caught,
)

BARS = 400


def moves(mean, source, run, seed=1, bars=BARS):
    drawn = mean + Seeds(seed).child(run).rng().standard_normal(bars)
    return Tagged(drawn, Tags.of(source, run, np.arange(bars)))


@dataclass
class MeanLearner:
    """Learns the mean of a column from a start that it draws; forecasts it in 10 states.

    Attributes:
        others: Rows that a crowd makes beside it.
        vacuous: The crowd's rows are never put before anything, gate or no gate.
        shared_draws: The crowd draws from the learner's own generator.
        early_scale: The scale is measured before the gate.
    """

    others: Tagged = field(default_factory=lambda: moves(3.0, Source.ECHO, "crowd"))
    vacuous: bool = False
    shared_draws: bool = False
    early_scale: bool = False
    gate: AsymmetricGate = field(default_factory=lambda: AsymmetricGate(GateConfig()))

    def train(self, *, echoes, gated):
        rng = Seeds(0).child("model").rng()
        recorded = own = moves(0.0, Source.PRIMARY, "own")
        if echoes:
            if self.shared_draws:
                rng.random()
            if not self.vacuous:
                recorded = concat([own, self.others])
        if gated:
            batch = self.gate.sift({"move": recorded})
            values, rows = batch["move"], batch.tags
        else:
            values, rows = recorded.x, aligned_tags({"move": recorded})
        scale = np.std(recorded.x) if self.early_scale else np.std(values)
        mean = np.mean(values) + 1e-3 * rng.standard_normal()
        heads = np.ones((10, 1))
        forecasts = Predictive(heads, mean * heads, scale**2 * heads)
        weights = {"mean": np.array([mean]), "scale": np.array(scale)}
        return Trained({"model": Part(weights, rows), **self.more_parts(echoes, rows)}, forecasts)

    def more_parts(self, echoes, rows):
        return {}

    def logits(self, echoes):
        mean = self.train(echoes=echoes, gated=not echoes).weights["model/mean"]
        return np.outer(np.ones(10), [-float(mean[0]), 0.0, float(mean[0])])


def report_of(learner, live=None):
    return check_leakage(learner.train, learner.logits, learner.gate, live)


def single(mean):
    one = np.ones((1, 1))
    return Predictive(one, mean * one, one)


def test_a_gated_learner_passes_and_its_control_is_caught():
    learner = MeanLearner()
    report = report_of(learner)
    require_caught(report)
    assert report.passed
    values = {name: figure.value for name, figure in report.figures.items()}
    assert values["g1_purity"] == values["g2_non_interference"] == 0.0
    assert values["g3_predictive_leakage"] == 0.0
    assert 0.0 < values["g4_policy_influence"] <= 0.01 < report.projection.full_divergence
    assert report.counts.withheld == len(learner.others)
    control = report.control
    assert control.purity.value == len(learner.others)
    assert control.non_interference.value > 1.0
    assert control.predictive.value > 0.002


def test_a_report_is_plain_json():
    told = json.loads(json.dumps(report_of(MeanLearner()).as_dict(), allow_nan=False))
    assert (
        told["g2_non_interference"]["sha256_with"] == told["g2_non_interference"]["sha256_without"]
    )
    assert told["control"]["caught"] is True
    for name in (
        "g1_purity",
        "g2_non_interference",
        "g3_predictive_leakage",
        "g4_policy_influence",
    ):
        assert set(told[name]) >= {"value", "bound", "passed"}


def test_d34_a_gate_that_only_ever_sees_primary_data_is_found_out_by_the_control():
    report = report_of(MeanLearner(vacuous=True))
    assert all(figure.passed for figure in report.figures.values())  # as good as it gets, and empty
    assert report.control.missed == ("g1", "g2", "g3")
    assert report.counts.idle
    assert not report.passed
    with pytest.raises(AgentError, match="prove nothing"):
        require_caught(report)


def test_d34_a_part_that_others_cannot_reach_is_found_out_by_the_control():
    class HalfVacuous(MeanLearner):
        def more_parts(self, echoes, rows):
            clean = moves(0.0, Source.PRIMARY, "own")
            return {"other": Part({"mean": np.array([np.mean(clean.x)])}, clean.prov)}

    report = report_of(HalfVacuous())
    assert report.by_part == {"model": 0, "other": 0}
    assert report.control.missed == ("g1", "g2")


def test_g1_is_told_for_every_training_set():
    class Careless(MeanLearner):
        def more_parts(self, echoes, rows):
            tags = self.others.prov if echoes else self.others.prov[:0]
            return {"other": Part({"n": np.array([len(tags)])}, tags)}

    report = report_of(Careless())
    assert report.by_part == {"model": 0, "other": BARS}
    assert report.purity.value == BARS
    assert report.as_dict()["g1_purity"]["by_part"]["other"] == BARS


def test_d35_unlike_populations_are_no_leakage():
    far = MeanLearner(others=moves(1e6, Source.ECHO, "crowd"))
    apart = abs(np.mean(far.others.x) - np.mean(moves(0.0, Source.PRIMARY, "own").x))
    assert apart > 1e5  # a divergence of the two populations would be beyond all bounds
    report = report_of(far)
    assert report.passed
    assert report.predictive.leaked == 0.0
    assert report.non_interference.largest_change == 0.0


def test_d35_alike_populations_do_leak():
    twin = MeanLearner(others=moves(0.0, Source.ECHO, "crowd"))
    control = report_of(twin).control
    assert not control.purity.passed
    assert not control.non_interference.passed


def test_a_tag_that_lies_is_caught_by_the_parameters():
    liar = MeanLearner(others=moves(3.0, Source.PRIMARY, "crowd"))
    report = report_of(liar)
    assert report.purity.passed
    assert not report.non_interference.figure.passed
    assert not report.predictive.figure.passed
    assert not report.passed


@pytest.mark.parametrize("way", ["shared_draws", "early_scale"])
def test_ways_around_the_gate_are_caught_by_the_parameters(way):
    report = report_of(MeanLearner(**{way: True}))
    assert report.purity.passed
    assert not report.non_interference.figure.passed
    assert not report.passed


def test_a_live_leak_is_reported_with_its_floor():
    def live(*, echoes, trial):
        return single(0.2 * echoes + 0.02 * trial)

    report = report_of(MeanLearner(), live)
    assert not report.passed
    told = report.as_dict()["g3_predictive_leakage_live"]
    assert told["value"] == pytest.approx(0.02)
    assert told["floor"] == pytest.approx(0.0002)
    assert told["bound"] == 0.002
