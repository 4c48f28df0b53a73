"""Tolerances that were loosened, figures that are equal by luck, and figures nobody measured."""

import pytest
from gate_samples import (
    MadeUpRerun,
    metric,
    noise,
    of_one,
    only,
    pinned,
    scenario,
    suite,
    words,
)

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.gate import judge
from agent_gym.evaluation.scenarios.metric import Tolerance
from agent_gym.evaluation.scenarios.suite import ScenarioConfig

BASE = 1.0 + noise("base", sd=0.1)
HALF = 0.5 * BASE


def sides(old_metric, new_metric, base, cand, tags=("old", "new")):
    return (
        suite(scenario({old_metric.name: base}, metrics=(old_metric,), tag=tags[0]), run="old"),
        suite(scenario({new_metric.name: cand}, metrics=(new_metric,), tag=tags[1]), run="new"),
    )


def loosened(diff):
    return [notice for notice in diff.notices if notice.kind == "tolerance"]


@pytest.mark.parametrize("wide", [{"rel": 1.0}, {"abs": 5.0}, {"rel": 1.0, "abs": 5.0}])
def test_a_wider_tolerance_hides_no_loss_until_it_is_approved(wide):
    diff = judge(*sides(metric(), metric(**wide), BASE, HALF), None)
    assert only(diff).word == "regression"
    assert only(diff).tolerance_rel == 0.02  # the one that judged
    assert only(diff).tolerance_abs == 0.0
    (notice,) = loosened(diff)
    assert notice.id == "calm/speed"
    assert "rel 0.02" in notice.why  # what it was
    assert f"abs {wide.get('abs', 0):g}" in notice.why  # what it is
    # With the new tolerance in the baseline it is as it was asked for.
    approved = judge(*sides(metric(**wide), metric(**wide), BASE, HALF), None)
    assert only(approved).word != "regression"
    assert not loosened(approved)


def test_the_stricter_tolerance_holds_on_fresh_seeds_too():
    old, new = pinned({"a": -0.1}, sd=0.02, metrics=(metric("a"),))
    wide = (metric("a", rel=1.0, abs=9.0),)
    new = pinned({"a": -0.1}, sd=0.02, metrics=wide)[1]
    assert only(judge(old, new, MadeUpRerun({"a": -0.1}, sd=0.02, metrics=wide))).word == (
        "regression"
    )


def test_a_narrower_tolerance_counts_at_once_and_is_no_news():
    diff = judge(*sides(metric(rel=0.9), metric(rel=0.02), BASE, HALF), None)
    assert only(diff).word == "regression"
    assert not loosened(diff)


def test_a_share_traded_for_an_amount_is_judged_by_what_allows_less():
    # 2 % of about 1 before, 0.5 now: wider. And 60 % before, 0.5 now: narrower.
    wider = judge(*sides(metric(rel=0.02), metric(rel=0.0, abs=0.5), BASE, BASE - 0.1), None)
    assert only(wider).word == "regression"
    assert loosened(wider)
    narrower = judge(*sides(metric(rel=0.6), metric(rel=0.0, abs=0.5), BASE, BASE - 0.55), None)
    assert only(narrower).word == "regression"
    assert not loosened(narrower)


def test_a_wider_tolerance_is_told_even_if_nothing_moved():
    old, new = sides(metric(), metric(rel=0.9), BASE, BASE, tags=("x", "x"))
    diff = judge(old, new, None)
    assert only(diff).word == "unchanged"
    assert len(loosened(diff)) == 1
    assert diff.verdict == "pass"


def test_a_baseline_of_zero_keeps_both_parts():
    zeros = BASE * 0.0
    diff = judge(*sides(metric(abs=0.1), metric(rel=0.9, abs=0.1), zeros, zeros), None)
    assert only(diff).tolerance_rel == 0.02
    assert loosened(diff)


def test_what_must_be_zero_gets_no_room():
    strict, wide = (
        metric(direction="down", must_be_zero=True, rel=0.0, abs=amount) for amount in (0.0, 5.0)
    )
    zeros = [0.0] * 24
    diff = judge(*sides(strict, wide, zeros, [*zeros[1:], 3.0]), None)
    assert only(diff).word == "regression"
    assert only(diff).critical
    assert loosened(diff)


def test_a_suite_may_not_make_the_gate_blind():
    def metrics(**tolerances):
        return ScenarioConfig(
            name="s",
            type="signal_throughput",
            tolerances={name: Tolerance(**given) for name, given in tolerances.items()},
        ).metrics()

    assert metrics(queue_max={"rel": 1.0})
    with pytest.raises(ConfigError) as wide:
        metrics(queue_max={"rel": 1.5})
    assert "queue_max" in str(wide.value)
    assert "abs" in str(wide.value.remedy)
    for given in ({"abs": 5.0}, {"rel": 0.5}, {"abs": 0.0}):
        with pytest.raises(ConfigError) as zero:
            metrics(orphan_orders=given)
        assert "must be zero" in str(zero.value)


def test_equal_by_luck_is_not_unchanged():
    # Rare events: 24 seeds without one say little of the next seed.
    diff = of_one([0.0] * 24, [0.0] * 24, direction="down", rel=0.0, abs=0.001)
    finding = only(diff)
    assert finding.word == "no_difference_seen"
    assert finding.mde is None  # no noise was seen, so nobody knows what would be
    assert "at most 11.7% of seeds" in finding.why  # 1 - 0.05 ** (1 / 24), about 3 / 24
    assert diff.verdict == "pass"
    exact = of_one([0.0] * 24, [0.0] * 24, tags=("x", "x"), direction="down")
    assert only(exact).word == "unchanged"


def test_equal_on_fresh_seeds_after_a_flag_has_no_smallest_loss_either():
    old, new = pinned({"a": -0.1}, sd=0.02)
    finding = only(judge(old, new, MadeUpRerun({"a": 0.0}, sd=0.0)))
    assert finding.word == "no_difference_seen"
    assert finding.stage == "confirm"
    assert finding.mde is None
    assert "64 seeds" in finding.why


def test_never_measured_and_nothing_moved_is_unchanged():
    never = [None] * 24
    diff = of_one(never, never, tags=("x", "x"))
    assert only(diff).word == "unchanged"
    assert only(diff).stage == "exact"
    assert "never measured" in only(diff).why
    # Elsewhere it hides something: other trajectories, one side alone, a promise to be zero.
    assert only(of_one(never, never)).word == "error"
    assert only(of_one(BASE, never, tags=("x", "x"))).word == "error"
    assert only(of_one(never, never, tags=("x", "x"), must_be_zero=True)).word == "error"


def test_measured_on_one_seed_and_nothing_moved_is_unchanged():
    rare = [1.0, *[None] * 23]
    assert only(of_one(rare, rare, tags=("x", "x"))).word == "unchanged"
    assert only(of_one(rare, [2.0, *[None] * 23], tags=("x", "x"))).word == "error"
    assert only(of_one(rare, rare)).word == "error"


def test_a_suite_of_one_seed_is_still_an_error():
    assert only(of_one(BASE[:1], BASE[:1], tags=("x", "x"))).word == "error"


def test_words_of_neighbours_stay():
    never = [None] * 24
    made = [
        scenario({"a": BASE, "b": never}, metrics=(metric("a"), metric("b")), tag="x")
        for _ in range(2)
    ]
    assert words(judge(*(suite(each) for each in made), None)) == {
        "calm/a": "unchanged",
        "calm/b": "unchanged",
    }
