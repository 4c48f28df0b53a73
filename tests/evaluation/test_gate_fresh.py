"""What must be zero, and what the gate believes of a rerun: nothing unchecked."""

import math

import msgspec
import numpy as np
import pytest
from gate_samples import (
    IDENTITY,
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

from agent_gym.evaluation.gate import Sample, judge

BASE = 1.0 + noise("base", sd=0.1)


class TestMustBeZero:
    def judged(self, base, cand, **more):
        return of_one(base, cand, must_be_zero=True, direction="down", **more)

    def test_the_first_event_fails(self):
        cand = np.zeros(24)
        cand[7] = 1.0
        diff = self.judged(np.zeros(24), cand)
        assert only(diff).word == "regression"
        assert only(diff).critical
        assert only(diff).worst_seeds == (7,)
        assert diff.verdict == "regressed"

    def test_it_fails_whatever_the_baseline_did(self):
        rows = np.zeros(24)
        rows[7] = 1.0
        for tags in (("x", "y"), ("x", "x")):
            found = only(self.judged(rows, rows, tags=tags))
            assert found.word == "regression"
            assert found.critical
            assert "the baseline had it on 1" in found.why

    def test_no_event_is_unchanged_and_none_any_more_an_improvement(self):
        rows = np.zeros(24)
        assert only(self.judged(rows, rows)).word == "unchanged"
        assert only(self.judged(rows + 1.0, rows)).word == "improvement"

    def test_the_absolute_tolerance_is_no_event(self):
        assert only(self.judged(np.zeros(24), np.full(24, 1e-10), abs=1e-9)).word == "unchanged"
        assert only(self.judged(np.zeros(24), np.full(24, 1e-8), abs=1e-9)).word == "regression"

    def test_it_needs_no_baseline(self):
        fine = scenario({"speed": BASE}, tag="x")
        bad = scenario(
            {"double": np.ones(3)},
            name="new",
            metrics=(metric("double", direction="down", must_be_zero=True),),
        )
        diff = judge(suite(fine), suite(fine, bad), None)
        assert words(diff)["new/double"] == "regression"
        assert diff.of("regression")[0].worst_seeds == (0, 1, 2)
        assert diff.verdict == "regressed"

    def test_an_event_on_a_fresh_seed_counts(self):
        metrics = (metric("a"), metric("double", direction="down", must_be_zero=True))
        old, new = pinned({"a": -0.06, "double": 0.0}, metrics=metrics)
        zero = {"a": -0.06, "double": 0.0}

        def quiet(sides, fault=None):
            made = []
            for name, side in zip(("old", "new"), sides, strict=True):
                samples = tuple(
                    msgspec.structs.replace(
                        each,
                        metrics={
                            "a": each.metrics["a"],
                            "double": float(name == "new" and each.seed == fault),
                        },
                    )
                    for each in side.scenarios[0].samples
                )
                made.append(
                    suite(msgspec.structs.replace(side.scenarios[0], samples=samples), run=name)
                )
            return tuple(made)

        old, new = quiet((old, new))
        fine = MadeUpRerun(zero, metrics=metrics, spoil=quiet)
        assert words(judge(old, new, fine))["calm/double"] == "unchanged"
        bad = MadeUpRerun(zero, metrics=metrics, spoil=lambda sides: quiet(sides, fault=1_003))
        diff = judge(old, new, bad)
        assert words(diff)["calm/double"] == "regression"
        assert diff.of("regression")[-1].worst_seeds == (1_003,)


class TestRerun:
    def spoiled(self, spoil):
        old, new = pinned({"a": -0.06})
        return judge(old, new, MadeUpRerun({"a": -0.06}, spoil=spoil))

    def one(self, sides, index, **changes):
        made = list(sides)
        changed = msgspec.structs.replace(made[index].scenarios[0], **changes)
        made[index] = suite(changed, run=made[index].run_id)
        return tuple(made)

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda self, s: (s[0], suite(run="new")),
            lambda self, s: self.one(s, 1, name="other"),
            lambda self, s: self.one(s, 1, samples=s[1].scenarios[0].samples[1:]),
            lambda self, s: self.one(
                self.one(s, 0, samples=s[0].scenarios[0].samples[1:]),
                1,
                samples=s[1].scenarios[0].samples[1:],
            ),
            lambda self, s: self.one(s, 1, identity={**IDENTITY, "data_hash": "other"}),
            lambda self, s: self.one(
                s, 1, samples=(*s[1].scenarios[0].samples[1:], Sample(1_000, "crashed"))
            ),
            lambda self, s: self.one(
                s,
                1,
                samples=(*s[1].scenarios[0].samples[1:], Sample(1_000, "ok", {"a": math.nan})),
            ),
        ],
        ids=["nothing", "other scenario", "other seeds", "too few", "identity", "crash", "nan"],
    )
    def test_a_wrong_rerun_is_an_error(self, spoil):
        diff = self.spoiled(lambda sides: spoil(self, sides))
        assert only(diff).word == "error"
        assert diff.verdict == "error"

    def test_pinned_seeds_are_not_fresh(self):
        def stale(sides):
            made = []
            for side in sides:
                samples = tuple(
                    msgspec.structs.replace(each, seed=each.seed - 1_000)
                    for each in side.scenarios[0].samples
                )
                made.append(suite(msgspec.structs.replace(side.scenarios[0], samples=samples)))
            return tuple(made)

        assert only(self.spoiled(stale)).word == "error"

    def test_different_seeds_are_named(self):
        diff = self.spoiled(lambda s: self.one(s, 1, samples=s[1].scenarios[0].samples[1:]))
        assert "different seeds on the two sides" in only(diff).why

    def test_an_honest_one_is_not(self):
        assert only(self.spoiled(lambda sides: sides)).word == "regression"
