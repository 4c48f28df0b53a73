"""What the gate remembers: change points, the anchor against slow drift, and quarantine."""

import json
import math

import msgspec
import numpy as np
import pytest
from gate_samples import IDENTITY, metric, noise, of_one, only, pinned, scenario, suite, words
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.clock import DAY_NS, ManualClock
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import (
    GatePolicy,
    History,
    Night,
    Quarantine,
    QuarantineEntry,
    anchor_drift,
    change_points,
    entries_for,
    judge,
    night_of,
    proposals,
)
from agent_gym.evaluation.gate.history import identity_of
from agent_gym.evaluation.gate.mde import Hurdle, smallest_seen

ROOT = Seeds(21).child("nights")
BASE = 1.0 + noise("base", sd=0.1)


def found_share(step, after, *, runs=400, spike=0.0, **options):
    """Return how often anything is found in 60 nights whose level moved ``after`` nights ago."""
    rng = ROOT.child("step", str(step), after, str(options)).rng()
    hits = 0
    for _ in range(runs):
        series = rng.standard_normal(60)
        if after:
            series[-after:] += step
        series[-1] += spike
        hits += bool(change_points(series.tolist(), **options))
    return hits / runs


class TestChangePoints:
    @pytest.mark.parametrize(
        ("step", "after", "low", "high"),
        [
            (3.0, 5, 0.94, 1.0),
            (3.0, 7, 0.985, 1.0),
            (2.0, 7, 0.70, 0.86),
            (2.0, 14, 0.965, 1.0),
            (1.0, 14, 0.15, 0.33),
        ],
    )
    def test_steps_are_found_as_often_as_they_can_be(self, step, after, low, high):
        assert low <= found_share(step, after) <= high

    def test_quiet_nights_and_single_spikes_are_quiet(self):
        assert found_share(0.0, 0, runs=2_000) <= 0.004
        assert found_share(0.0, 0, spike=6.0) <= 0.03
        # Negative control: without a least segment a spike is a new level.
        assert found_share(0.0, 0, spike=6.0, min_segment=2) > 0.08

    def test_the_error_rate_is_of_the_whole_series(self):
        assert 0.02 <= found_share(0.0, 0, runs=1_500, alpha=0.05, superiority=0.5) <= 0.06

    def test_it_names_the_night_and_the_levels(self):
        rng = ROOT.child("named").rng()
        series = np.concatenate([rng.normal(10, 1, 30), rng.normal(20, 1, 20)])
        (point,) = change_points(series)
        assert point.index == 30
        assert (point.before, point.after) == pytest.approx((10.0, 20.0), abs=0.8)
        assert point.superiority == 1.0
        assert point.p < 1e-9

    def test_several_levels(self):
        rng = ROOT.child("several").rng()
        series = np.concatenate([rng.normal(level, 0.3, 15) for level in (0, 5, 2, 8)])
        assert [point.index for point in change_points(series)] == [15, 30, 45]

    def test_a_series_that_jumps_between_two_values_is_no_change(self):
        # Two values all along, one of them more often later: significant, and not apart.
        series = [0.0, 0.0, 0.0, 1.0] * 10 + [1.0, 1.0, 0.0, 1.0] * 10
        loud = change_points(series, superiority=0.5)
        assert loud
        assert all(0.3 < point.superiority < 0.8 for point in loud)
        assert change_points(series) == ()

    def test_a_step_without_noise_is_certain(self):
        (point,) = change_points([0.1] * 20 + [0.1 + 1e-6] * 20)
        assert point.index == 20
        assert point.p == 0.0

    @pytest.mark.parametrize("series", [[], [1.0], [3.0] * 60, [0.0] * 60, [1.0, 2.0] * 4])
    def test_nothing_to_find(self, series):
        assert change_points(series) == ()

    def test_a_broken_series_is_refused(self):
        with pytest.raises(DataError):
            change_points([1.0, math.nan] * 10)

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=60), st.sampled_from([0.5, 8.0]))
    def test_same_answer_always_and_in_any_unit(self, series, unit):
        first = [point.index for point in change_points(series)]
        assert first == [point.index for point in change_points(list(series))]
        assert first == [point.index for point in change_points([unit * x for x in series])]


def nights(values, *, name="calm/speed", **more):
    return History(
        tuple(
            Night(run_id=f"r{index}", created_at=f"{index:03d}", values={name: value}, **more)
            for index, value in enumerate(values)
        )
    )


def tonight(history, level=1.0, identity=IDENTITY):
    rows = [suite(scenario({"speed": BASE * 0 + level}, tag="x", identity=identity), run="new")] * 2
    return judge(*rows, None, history=history)


class TestHistory:
    def series(self, *levels, n=12):
        rng = ROOT.child("history").rng()
        return [level + 0.01 * rng.standard_normal() for level in levels for _ in range(n)]

    def test_a_change_point_warns_and_fails_nothing(self):
        diff = tonight(nights(self.series(2.0, 1.0)))
        (notice,) = diff.notices
        assert (notice.kind, notice.id) == ("change_point", "calm/speed")
        assert "worse since r12" in notice.why
        assert diff.verdict == "pass"

    def test_an_old_one_is_not_told_again(self):
        assert tonight(nights(self.series(2.0, 1.0, 1.0))).notices == ()

    def test_only_the_last_sixty_nights_count(self):
        rng = ROOT.child("window").rng()
        series = [2.0] * 50 + (1.0 + 0.01 * rng.standard_normal(70)).tolist()
        assert tonight(nights(series)).notices == ()

    def test_another_situation_begins_a_new_series(self):
        other = {"calm": "something else"}
        changed = nights(self.series(2.0, n=12), identities=other).nights
        same = nights(self.series(1.0, n=12), identities={"calm": identity_of(IDENTITY)}).nights
        assert tonight(History((*changed, *same))).notices == ()
        alike = nights(self.series(2.0), identities={"calm": identity_of(IDENTITY)}).nights
        assert tonight(History((*alike, *same))).notices != ()

    def test_a_night_remembers_what_later_nights_need(self):
        old, new = pinned({"a": -0.2, "b": 0.0}, sd=0.02)
        diff = judge(old, new, None)
        night = night_of(new, diff, "2026-01-01T00:00:00Z", same_code=True)
        assert night.false_alarms == ("calm/a",)
        assert night_of(new, diff, "x").false_alarms == ()
        assert set(night.noise) == set(night.values) == {"calm/a", "calm/b"}
        again = msgspec.convert(json.loads(msgspec.json.encode(night)), Night)
        assert again == night

    def test_noise_of_the_past_plans_the_fresh_seeds(self):
        calls = []

        def rerun(names, n_seeds):
            calls.append(n_seeds)
            return suite(run="old"), suite(run="new")

        cand = BASE - 0.06 + noise("planned", sd=0.05)
        rows = [
            suite(scenario({"speed": row}, tag=str(tag))) for tag, row in enumerate((BASE, cand))
        ]
        judge(*rows, rerun)
        judge(*rows, rerun, history=nights([1.0] * 6, noise={"calm/speed": 0.5}))
        assert calls == [64, 256]


class TestAnchor:
    def drifted(self, total, sd=0.01):
        gains = noise("drift", sd=sd)
        gains = gains - gains.mean()
        return suite(scenario({"speed": BASE * (1.0 - total) + gains}, tag=f"{total}"), run="new")

    def test_slow_drift_that_every_night_approves_is_told_in_time(self):
        policy, anchor = GatePolicy(), suite(scenario({"speed": BASE}, tag="a"), run="v1")
        one = np.ones(1)
        hurdle = Hurdle(np.array([24]), one * policy.alpha, decides=True)
        seen = smallest_seen(one * 0.01, one * 0.02, [hurdle], policy)[0]
        baseline, told, total = self.drifted(0.0), None, 0.0
        for night in range(1, 25):
            total = 0.005 * night
            candidate = self.drifted(total)
            diff = judge(baseline, candidate, None, policy, anchor=anchor)
            assert only(diff).word != "regression"
            if diff.notices and told is None:
                told = total
            baseline = candidate
        assert told is not None
        assert 0.02 < told <= 0.02 + seen + 0.005

    def test_without_drift_it_is_silent(self):
        anchor = suite(scenario({"speed": BASE}, tag="a"), run="v1")
        assert anchor_drift(anchor, self.drifted(0.0), GatePolicy()) == ()
        assert anchor_drift(anchor, self.drifted(-0.2), GatePolicy()) == ()
        (notice,) = anchor_drift(anchor, self.drifted(0.2), GatePolicy())
        assert (notice.kind, notice.id) == ("anchor_drift", "calm/speed")
        assert "v1" in notice.why

    def test_what_it_cannot_hold_against_the_anchor_is_said(self):
        anchor = suite(scenario({"speed": BASE}, identity={**IDENTITY, "version": "0"}), run="v1")
        (notice,) = anchor_drift(anchor, self.drifted(0.0), GatePolicy())
        assert "cannot be held against" in notice.why


def entry(name="calm/a", since=0, days=14):
    return QuarantineEntry(
        id=name, reason="flaky", owner="desk", since_ns=since, until_ns=since + days * DAY_NS
    )


class TestQuarantine:
    def judged(self, clock, *, entries=None, changes=None, metrics=None):
        changes = changes or {"a": -0.2, **{f"b{i}": 0.0 for i in range(10)}}
        old, new = pinned(changes, sd=0.01, metrics=metrics)
        held = Quarantine([entry()] if entries is None else entries, clock)
        return judge(old, new, None, quarantine=held)

    def test_it_is_shown_and_does_not_gate_until_it_ends(self):
        clock = ManualClock()
        diff = self.judged(clock)
        assert words(diff)["calm/a"] == "quarantined"
        assert diff.verdict == "pass"
        assert diff.findings[0].loss == pytest.approx(0.2, abs=0.02)
        clock.advance_ns(14 * DAY_NS - 1)
        assert words(self.judged(clock))["calm/a"] == "quarantined"
        clock.advance_ns(1)
        ended = self.judged(clock)
        assert words(ended)["calm/a"] == "regression"
        assert [notice.kind for notice in ended.notices] == ["quarantine"]

    def test_one_that_begins_later_does_not_hold_yet(self):
        assert words(self.judged(ManualClock(), entries=[entry(since=5)]))["calm/a"] == "regression"

    def test_more_than_a_tenth_is_degraded(self):
        held = [entry(), entry("calm/b1")]
        assert self.judged(ManualClock(), entries=held).verdict == "degraded"

    def test_what_must_be_zero_is_never_held(self):
        metrics = (metric("a", must_be_zero=True, direction="down"),)
        diff = self.judged(ManualClock(), changes={"a": 1.0}, metrics=metrics)
        assert only(diff).word == "regression"
        assert "in spite of its quarantine" in diff.notices[0].why

    def test_it_does_not_hide_an_error(self):
        rows = BASE.tolist()
        bad = [*rows[:-1], math.inf]
        held = Quarantine([entry("calm/speed")], ManualClock())
        sides = [suite(scenario({"speed": row})) for row in (rows, bad)]
        diff = judge(*sides, None, quarantine=held)
        assert only(diff).word == "error"
        assert diff.verdict == "error"

    def test_two_false_alarms_in_twenty_nights_propose_it(self):
        finding = only(of_one(BASE, BASE + noise("calm", sd=0.01)))
        alarm = Night(run_id="r", created_at="", values={}, false_alarms=(finding.id,))
        quiet = Night(run_id="r", created_at="", values={})
        policy = GatePolicy()
        assert proposals([finding], History((alarm, *[quiet] * 19)), policy) == ()
        ((name, reason),) = proposals([finding], History((alarm, *[quiet] * 18, alarm)), policy)
        assert name == finding.id
        assert "2 false alarms" in reason
        assert proposals([finding], History((alarm, *[quiet] * 19, alarm)), policy) == ()
        zero = msgspec.structs.replace(finding, must_be_zero=True)
        assert proposals([zero], History((alarm, alarm)), policy) == ()

    def test_noise_that_tripled_and_lost_determinism_propose_it(self):
        finding = only(of_one(BASE, BASE + noise("calm", sd=0.03)))
        calm = nights([1.0] * 14, noise={finding.id: finding.sd / 3.1})
        usual = nights([1.0] * 14, noise={finding.id: finding.sd / 2.9})
        few = nights([1.0] * 4, noise={finding.id: finding.sd / 30})
        policy = GatePolicy()
        assert "noise" in proposals([finding], calm, policy)[0][1]
        assert proposals([finding], usual, policy) == proposals([finding], few, policy) == ()
        shaky = msgspec.structs.replace(finding, word="nondeterministic")
        assert "cannot be repeated" in proposals([shaky], History(), policy)[0][1]

    def test_entries_end_after_fourteen_days_and_survive_a_file(self):
        clock = ManualClock(1_000)
        made = entries_for([("calm/a", "flaky")], "desk", clock, GatePolicy())
        assert made[0].until_ns - made[0].since_ns == 14 * DAY_NS
        held = Quarantine([], clock).with_entries(made)
        again = Quarantine.from_document(json.loads(json.dumps(held.document())), clock)
        assert again.entries == held.entries
        assert again.holding("calm/a") == made[0]
        assert again.holding("calm/b") is None

    @pytest.mark.parametrize(
        "document",
        [
            {},
            {"entries": [{"id": "a"}]},
            {"entries": "a"},
            {"entries": [{**msgspec.to_builtins(entry()), "more": 1}]},
            {"entries": [{**msgspec.to_builtins(entry()), "owner": ""}]},
            {"entries": [{**msgspec.to_builtins(entry()), "until_ns": 0}]},
        ],
    )
    def test_a_broken_file_is_refused(self, document):
        with pytest.raises(DataError):
            Quarantine.from_document(document, ManualClock())
