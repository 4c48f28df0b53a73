"""The gate's words: every trap that could make a bad night look green, or a good one red."""

import math

import msgspec
import numpy as np
import pytest
from gate_samples import (
    IDENTITY,
    MadeUpRerun,
    finite,
    judged,
    metric,
    noise,
    of_one,
    only,
    pinned,
    scenario,
    suite,
    words,
)

from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.evaluation.gate import GatePolicy, Sample, judge

BASE = 1.0 + noise("base", sd=0.1)


def test_a_real_loss_is_a_regression_and_its_neighbours_are_not():
    diff = judged({"hurt": -0.06, "fine": 0.0, "gained": 0.06})
    assert words(diff) == {
        "calm/hurt": "regression",
        "calm/fine": "no_difference_seen",
        "calm/gained": "improvement",
    }
    assert diff.verdict == "regressed"
    (found,) = diff.of("regression")
    assert found.stage == "confirm"
    assert found.n == 64
    assert found.loss == pytest.approx(0.06, abs=0.02)
    assert found.ci95[0] < found.loss < found.ci95[1]
    assert found.p <= found.p_holm <= 0.01
    assert found.effect > 0.8
    assert found.mde <= found.required
    # The worst seeds are those of the fresh pairs that decided.
    assert len(found.worst_seeds) == 3
    assert min(found.worst_seeds) >= 1_000


def test_down_is_better_for_a_cost():
    cost = (metric("cost", direction="down"),)
    assert only(judged({"cost": 0.06}, metrics=cost)).word == "regression"
    assert only(judged({"cost": -0.06}, metrics=cost)).word == "improvement"


def test_a_loss_on_the_pinned_seeds_alone_is_not_confirmed():
    old, new = pinned({"lucky": -0.06})
    found = only(judge(old, new, MadeUpRerun({"lucky": 0.0})))
    assert found.word == "no_difference_seen"
    assert found.stage == "confirm"


def test_a_loss_must_hold_on_other_fresh_seeds_too():
    class OnceOnly(MadeUpRerun):
        def __call__(self, scenarios, n_seeds):
            old, new = super().__call__(scenarios, n_seeds)
            same = old.scenarios[0].samples[64:]
            kept = scenario({"x": [0.0]}, samples=(*new.scenarios[0].samples[:64], *same))
            return old, suite(
                msgspec.structs.replace(kept, metrics=new.scenarios[0].metrics), run="new"
            )

    old, new = pinned({"x": -0.06})
    rerun = OnceOnly({"x": -0.06})
    assert only(judge(old, new, rerun)).word == "no_difference_seen"
    assert rerun.calls == [(("calm",), 64), (("calm",), 128)]
    once = GatePolicy(repeat=False)
    assert only(judge(old, new, OnceOnly({"x": -0.06}), once)).word == "regression"


def test_a_loss_within_the_tolerance_is_none():
    small = only(judged({"x": -0.03}, metrics=(metric("x", rel=0.2),)))
    assert small.word == "no_difference_seen"
    assert small.why == "differs, but not beyond both tolerances"
    assert only(judged({"x": 0.0})).why == ""
    assert only(judged({"x": -0.03}, metrics=(metric("x", abs=0.2),))).word == "no_difference_seen"
    # Negative control: the same loss beyond both.
    tight = (metric("x", rel=0.001, abs=0.001),)
    assert only(judged({"x": -0.03}, metrics=tight, sd=0.02)).word == "regression"


def test_noise_beyond_the_required_effect_is_underpowered_and_no_pass():
    diff = judged({"x": 0.0}, sd=0.4)
    assert only(diff).word == "underpowered"
    assert diff.verdict == "underpowered"
    assert only(diff).mde > only(diff).required


def test_a_change_without_noise_is_certain():
    rerun = MadeUpRerun({"speed": -0.05}, sd=0.0)
    diff = of_one(BASE, BASE - 0.05, rerun=rerun)
    assert only(diff).word == "regression"
    assert only(diff).p == 0.0
    assert only(diff).sd == 0.0
    assert len(rerun.calls) == 1
    assert only(of_one(BASE, BASE - 0.05)).word == "regression"
    assert only(of_one(BASE, BASE + 0.05)).word == "improvement"


def test_equal_hashes_are_unchanged_without_a_test():
    def never(scenarios, n_seeds):
        raise AssertionError("nothing is to be played again")

    old, new = pinned({"a": 0.0, "b": 0.0}, sd=0.0, tags=("x", "x"))
    diff = judge(old, new, never)
    assert set(words(diff).values()) == {"unchanged"}
    assert {finding.stage for finding in diff.findings} == {"exact"}
    assert (diff.verdict, diff.n_tests, diff.n_flagged) == ("pass", 0, 0)
    assert all(finding.p is None for finding in diff.findings)


def test_what_is_the_same_on_every_seed_is_no_test():
    moved = BASE + noise("moved", sd=0.02)
    old = suite(scenario({"a": BASE, "b": BASE}))
    new = suite(scenario({"a": BASE, "b": moved}, tag="new"), run="new")
    diff = judge(old, new, None)
    assert diff.n_tests == 1
    assert words(diff)["calm/a"] == "no_difference_seen"  # its trajectories are others
    assert diff.findings[0].p is None
    # One test alone needs no correction.
    assert diff.findings[1].p_holm == diff.findings[1].p


def test_equal_hashes_with_another_figure_are_another_definition():
    old, new = pinned({"a": -0.5}, sd=0.0, tags=("x", "x"))
    assert only(judge(old, new, None)).word == "incomparable"


def test_empty_hashes_prove_nothing():
    row = {"speed": BASE}
    sides = []
    for _ in range(2):
        made = scenario(row)
        blank = tuple(msgspec.structs.replace(each, trajectory_hash="") for each in made.samples)
        sides.append(suite(msgspec.structs.replace(made, samples=blank)))
    assert only(judge(*sides, None)).stage == "screen"
    assert only(judge(*sides, None)).word == "no_difference_seen"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None, 1e305])
@pytest.mark.parametrize("side", [0, 1])
def test_one_bad_value_never_passes(bad, side):
    rows = [BASE.tolist(), BASE.tolist()]
    rows[side][3] = bad
    diff = of_one(*rows)
    if bad is None and side == 0:
        # The baseline could not measure it: the pair is left out and said to be.
        assert only(diff).n == 23
        assert "1 seeds could not be measured" in only(diff).why
    else:
        assert only(diff).word == "error"
        assert diff.verdict == "error"


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_samples_never_pass(n):
    assert of_one(BASE[:n], BASE[:n]).verdict == "error" if n else True
    one = scenario({"speed": BASE[:1]})
    empty = msgspec.structs.replace(one, samples=one.samples[:n])
    for tags in (("a", "a"), ("a", "b")):
        sides = [suite(msgspec.structs.replace(empty)) for _ in tags]
        assert judge(*sides, None).verdict == "error"


def test_a_metric_that_nobody_ever_measured_is_an_error():
    diff = of_one([None] * 24, [None] * 24)
    assert only(diff).word == "error"


def test_pairs_that_neither_side_can_measure_are_left_out():
    rows = [BASE.tolist(), (BASE + 0.0).tolist()]
    rows[0][5] = rows[1][5] = None
    diff = of_one(*rows)
    assert only(diff).n == 23
    assert only(diff).word == "no_difference_seen"


@pytest.mark.parametrize("status", ["error", "timeout", "crashed", "interrupted", "cancelled"])
@pytest.mark.parametrize("side", [0, 1])
def test_a_failed_seed_is_an_error(status, side):
    sides = list(pinned({"a": 0.0}, sd=0.0, tags=("x", "x")))
    made = sides[side].scenarios[0]
    broken = (*made.samples[:-1], Sample(made.samples[-1].seed, status, error="boom"))
    sides[side] = suite(msgspec.structs.replace(made, samples=broken), run="new")
    diff = judge(*sides, None)
    assert only(diff).word == "error"
    assert only(diff).worst_seeds == (23,)
    assert status in only(diff).why
    assert "boom" in only(diff).why


def test_a_seed_that_was_not_played_is_an_error():
    old, new = pinned({"a": 0.0}, sd=0.0, tags=("x", "x"))
    made = new.scenarios[0]
    short = suite(msgspec.structs.replace(made, samples=made.samples[:-1]))
    assert only(judge(old, short, None)).word == "error"
    # More seeds than the baseline has are no fault.
    assert only(judge(short, old, None)).word == "unchanged"


def test_an_empty_suite_is_an_error():
    assert judge(suite(), suite(), None).verdict == "error"


def test_missing_on_either_side():
    both, old_only, new_only = (
        scenario({"speed": BASE}, name=name, tag="x") for name in ("both", "gone", "added")
    )
    diff = judge(suite(both, old_only), suite(both, new_only), None)
    assert words(diff) == {
        "added/speed": "missing_in_baseline",
        "both/speed": "unchanged",
        "gone/speed": "missing_in_new",
    }
    assert diff.verdict == "error"
    assert judge(suite(both), suite(both, new_only), None).verdict == "pass"
    assert judge(suite(old_only), suite(old_only, both), None).verdict == "pass"
    # A baseline that knows nothing of the suite is no green light.
    assert judge(suite(), suite(new_only), None).verdict == "incomparable"


def test_a_missing_metric_of_a_known_scenario():
    two, one = scenario({"a": BASE, "b": BASE}, tag="x"), scenario({"a": BASE}, tag="x")
    assert words(judge(suite(two), suite(one), None))["calm/b"] == "missing_in_new"
    assert words(judge(suite(one), suite(two), None))["calm/b"] == "missing_in_baseline"
    assert judge(suite(two), suite(one), None).verdict == "error"


def test_a_new_scenario_that_crashed_is_an_error():
    broken = scenario({"speed": BASE}, name="new", samples=(Sample(0, "crashed"),))
    fine = scenario({"speed": BASE}, tag="x")
    assert judge(suite(fine), suite(fine, broken), None).verdict == "error"


@pytest.mark.parametrize("key", [*IDENTITY, "metrics_hash"])
def test_another_situation_is_incomparable_and_never_a_regression(key):
    old = scenario({"speed": BASE})
    new = scenario({"speed": BASE - 0.5}, tag="new", identity={**IDENTITY, key: "other"})
    diff = judge(suite(old), suite(new), None)
    assert only(diff).word == "incomparable"
    assert key in only(diff).why
    assert diff.verdict == "incomparable"


@pytest.mark.parametrize("change", [{"unit": "1/s"}, {"direction": "down"}, {"must_be_zero": True}])
def test_another_definition_is_incomparable(change):
    old = scenario({"speed": BASE}, metrics=(metric(),))
    new = scenario({"speed": BASE * 0.5}, metrics=(metric(**change),), tag="new")
    assert only(judge(suite(old), suite(new), None)).word == "incomparable"


def test_another_suite_is_incomparable_but_another_tolerance_is_not():
    old, new = scenario({"speed": BASE}), scenario({"speed": BASE - 0.5}, tag="new")
    assert judge(suite(old), suite(new, version=2), None).verdict == "incomparable"
    loose = scenario({"speed": BASE - 0.5}, tag="new", metrics=(metric(rel=0.9),))
    assert only(judge(suite(old), suite(loose), None)).word == "regression"  # not yet approved
    wide = scenario({"speed": BASE}, metrics=(metric(rel=0.9),))
    assert only(judge(suite(wide), suite(loose), None)).word == "no_difference_seen"


def test_a_trajectory_that_cannot_be_repeated_has_its_own_word():
    old, new = pinned({"a": 0.0}, sd=0.0, tags=("x", "x"))
    shaky = suite(msgspec.structs.replace(new.scenarios[0], repeated={3: "other"}), run="new")
    for sides in ((old, shaky), (shaky, old)):
        diff = judge(*sides, None)
        assert only(diff).word == "nondeterministic"
        assert "seed 3" in only(diff).why
        assert only(diff).worst_seeds == (3,)
        assert diff.verdict == "degraded"
    steady = suite(msgspec.structs.replace(new.scenarios[0], repeated={3: "x3"}), run="new")
    assert only(judge(old, steady, None)).word == "unchanged"


def test_what_cannot_be_repeated_can_still_get_worse():
    old, new = pinned({"a": -0.1}, sd=0.02)
    shaky = suite(msgspec.structs.replace(new.scenarios[0], repeated={3: "other"}), run="new")
    assert only(judge(old, shaky, MadeUpRerun({"a": -0.1}, sd=0.02))).word == "regression"


def test_repeats_of_a_seed_are_one_draw():
    one = scenario({"speed": BASE})
    again = tuple(
        msgspec.structs.replace(each, metrics={"speed": each.metrics["speed"] + 0.02})
        for each in one.samples
    )
    twice = msgspec.structs.replace(one, samples=(*again, *one.samples))
    diff = judge(suite(one), suite(twice), None)
    assert only(diff).n == 24
    assert only(diff).delta_abs == pytest.approx(0.01)


def test_a_baseline_of_zero_has_absolute_tolerances_only():
    zero = np.zeros(24)
    up = 0.01 + np.abs(noise("zero", sd=0.001))
    assert only(of_one(zero, up, direction="down", rel=0.5, abs=0.1)).word == "no_difference_seen"
    found = only(of_one(zero, up, direction="down", rel=0.5, abs=0.001))
    assert found.word == "regression"
    assert found.delta_rel is None


def test_a_baseline_near_zero_is_judged_in_absolute_units():
    base = noise("sharpe", sd=1e-4)
    cand = base - 0.01 + noise("sharpe 2", sd=1e-3)
    inside = only(of_one(base, cand, rel=0.02, abs=0.05, floor=0.1))
    assert inside.word == "no_difference_seen"
    assert inside.delta_rel is None
    assert only(of_one(base, cand, rel=0.02, abs=0.005, floor=0.1)).word == "regression"


def test_binary_events_are_tested_exactly():
    base, cand = np.zeros(24), np.zeros(24)
    cand[:3] = 1.0
    few = of_one(base, cand, direction="down", abs=0.01)
    assert only(few).p == pytest.approx(1 / 8)
    cand[:16] = 1.0
    many = of_one(base, cand, direction="down", abs=0.01)
    assert only(many).p == pytest.approx(2.0**-16)
    assert only(many).word == "regression"


def test_every_figure_is_finite_and_every_metric_is_there_once():
    old, new = pinned({"a": -0.06, "b": 0.0})
    flat = scenario({"a": np.zeros(24)}, name="flat")
    moved = scenario({"a": np.full(24, 2.0)}, name="flat", tag="new")
    gone = scenario({"a": BASE}, name="gone")
    diff = judge(suite(*old.scenarios, flat, gone), suite(*new.scenarios, moved), None)
    plain = msgspec.to_builtins(diff)
    assert finite(plain)
    assert to_json(plain)
    ids = [each.id for each in diff.findings]
    assert ids == sorted(set(ids)) == ["calm/a", "calm/b", "flat/a", "gone/a"]


def test_what_does_not_gate_is_not_judged():
    metrics = (metric("a"), metric("info", gates=False))
    old, new = pinned({"a": 0.0, "info": -0.9}, metrics=metrics)
    assert set(words(judge(old, new, None))) == {"calm/a"}


def test_a_name_that_stands_for_two_is_refused():
    one = scenario({"speed": BASE})
    with pytest.raises(DataError, match="same name"):
        judge(suite(one, one), suite(one), None)
    twice = msgspec.structs.replace(one, metrics=(metric(), metric()))
    with pytest.raises(DataError, match="same name"):
        judge(suite(one), suite(twice), None)
