"""The gate's error rates on suites of known truth; the full study is in docs/results."""

import json
from pathlib import Path

import numpy as np
import pytest
from gate_samples import metric, scenario, suite
from scipy import stats

from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import GatePolicy, judge, study
from agent_gym.evaluation.gate.paired import Table
from agent_gym.evaluation.gate.power import clopper_pearson, main, power_study, upper_bound
from agent_gym.evaluation.gate.shapes import HARDER, SHAPES, shaped
from agent_gym.evaluation.gate.stages import decide
from agent_gym.evaluation.gate.study import (
    CONTROLS,
    METRICS,
    Arm,
    SimulatedSeeds,
    SimulatedSuite,
    ask,
    ask_controls,
)

ROOT = Seeds(77).child("gate tests")
RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "gate_power.json"


def made(seeds, shape, metrics, n, correlated=False):
    hidden = seeds.rng().standard_normal((n, metrics + 1))
    return shaped(hidden, shape, np.arange(metrics), correlated=correlated)


@pytest.mark.parametrize("shape", [*SHAPES, *HARDER])
def test_shapes_have_mean_0_deviation_1_and_the_correlation_they_say(shape):
    for correlated in (False, True):
        values = made(ROOT.child(shape), shape, 4, 200_000, correlated)
        assert abs(values.mean()) < 0.02
        # The fourth moment of t3 is infinite, so its deviation converges slowly.
        assert values.std() == pytest.approx(1.0, abs=0.08 if shape == "t3" else 0.03)
        middle = np.corrcoef(values)[np.triu_indices(4, 1)]
        wide = 0.06 if shape in ("t3", "lognormal") else 0.02
        assert middle.mean() == pytest.approx(0.7 if correlated else 0.0, abs=wide)


def test_shapes_are_what_their_names_say():
    values = {name: made(ROOT.child("names"), name, 1, 100_000)[0] for name in SHAPES}
    assert np.mean(values["zeros80"] == 0.0) == pytest.approx(0.8, abs=0.01)
    assert stats.skew(values["right_skew"]) == pytest.approx(2.0, abs=0.15)
    assert stats.skew(values["left_skew"]) == pytest.approx(-2.0, abs=0.15)
    fits = stats.kstest(values["t3"] * np.sqrt(3.0), stats.t(3).cdf)
    assert fits.pvalue > 0.001
    assert stats.kstest(values["normal"], stats.norm.cdf).pvalue > 0.001


def test_fewer_seeds_and_metrics_are_part_of_more():
    for shape in SHAPES:
        simulated = SimulatedSuite(Arm(shape, correlated=True), ROOT)
        few, more = simulated.play("fresh", 10), simulated.play("fresh", 30)
        assert (more.cand[:, :10] == few.cand).all()
        some = simulated.play("fresh", 10, np.array([3, 1]))
        assert (some.cand == few.cand[[3, 1]]).all()
        assert (some.base == few.base[[3, 1]]).all()
        assert (simulated.play("pinned", 10).base != few.base).all()


def test_suites_in_one_table_do_not_touch_each_other(monkeypatch):
    arm, seeds = Arm("right_skew", loss=0.03, tolerance=0.0), ROOT.child("together")
    many = ask(arm, seeds, 12)
    monkeypatch.setattr(study, "TOGETHER", 1)
    assert ask(arm, seeds, 12) == many
    assert 0 < many.found < 12


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_does_not_cry_wolf_and_does_not_sleep(shape, correlated):
    arm = Arm(shape, correlated)
    seeds = ROOT.child("small", shape, str(correlated))
    quiet = ask(arm, seeds.child("quiet"), 40)
    hurt = ask(Arm(shape, correlated, loss=0.05), seeds.child("hurt"), 40)
    assert quiet.alarms == 0
    assert quiet.praised == 0
    # 36 or fewer of 40 would happen less than once in a hundred times at a power of 0.984.
    assert hurt.found >= 37
    assert hurt.wrongly_blamed == 0


def test_bad_gates_fail_where_this_one_holds():
    alarms = ask_controls(Arm("right_skew"), ROOT.child("controls"), 60)
    assert alarms[CONTROLS[0]].alarms >= 58
    assert alarms[CONTROLS[1]].alarms >= 58
    assert alarms[CONTROLS[2]].alarms >= 8
    assert ask(Arm("right_skew"), ROOT.child("controls"), 60).alarms == 0


def test_a_second_confirmation_is_what_holds_skewed_metrics_without_a_tolerance():
    once = GatePolicy(repeat=False)
    seeds = ROOT.child("twice")
    assert ask(Arm("lognormal", tolerance=0.0, policy=once), seeds, 60).alarms >= 6
    assert ask(Arm("lognormal", tolerance=0.0), seeds, 60).alarms <= 5


def test_at_the_tolerance_only_the_stricter_null_is_quiet():
    seeds = ROOT.child("edge")
    arm = Arm("normal", loss=0.02, everywhere=True)
    assert ask(arm, seeds, 30).alarms >= 28
    strict = GatePolicy(null="tolerance")
    assert ask(Arm("normal", loss=0.02, everywhere=True, policy=strict), seeds, 30).alarms == 0


@pytest.mark.parametrize("shape", ["normal", "right_skew"])
def test_the_study_asks_what_a_nightly_asks(shape):
    """The same numbers as samples of a suite, through ``judge``, give the same words."""
    arm = Arm(shape, loss=0.05)
    bounds = arm.bounds()
    names = [f"m{index:02d}" for index in range(METRICS)]
    metrics = {
        name: metric(name, rel=arm.tolerance, direction="up" if sign > 0 else "down")
        for name, sign in zip(names, bounds.sign, strict=True)
    }

    def sides(played: Table, wanted, first_seed, tag):
        both = []
        for rows, side in ((played.base, "old"), (played.cand, "new")):
            scenarios = [
                scenario(
                    {name: rows[names.index(name)]},
                    name=name,
                    metrics=(metrics[name],),
                    tag=side + tag,
                    first_seed=first_seed,
                )
                for name in wanted
            ]
            both.append(suite(*scenarios, run=side))
        return tuple(both)

    seen = set()
    for index in range(6):
        simulated = SimulatedSuite(arm, ROOT.child("judge", shape, index))
        pinned = simulated.play("pinned", 24)
        ruling = decide(pinned, bounds, SimulatedSeeds([simulated]), arm.policy)

        def rerun(wanted, n_seeds, simulated=simulated):
            return sides(simulated.play("fresh", n_seeds), wanted, 1_000, "fresh")

        diff = judge(*sides(pinned, names, 0, "pinned"), rerun, arm.policy)
        assert diff.n_flagged == ruling.flagged.sum()
        for place, finding in enumerate(diff.findings):
            seen.add(finding.word)
            assert (finding.word == "regression") == ruling.worse[place]
            assert (finding.word == "improvement") == ruling.better[place]
            assert finding.p == pytest.approx(ruling.p[place], rel=1e-6)
            assert finding.mde == pytest.approx(ruling.mde[place])
    assert {"regression", "no_difference_seen"} <= seen


def test_exact_bounds_are_those_of_scipy():
    for hits, n in ((0, 100), (3, 100), (100, 100), (11, 2_000)):
        known = stats.binomtest(hits, n).proportion_ci(0.95, "exact")
        assert clopper_pearson(hits, n) == pytest.approx((known.low, known.high))
    one_sided = stats.binomtest(11, 2_000, alternative="less").proportion_ci(0.95, "exact")
    assert upper_bound(11, 2_000) == pytest.approx(one_sided.high)
    assert upper_bound(11, 2_000) < 0.01


def test_the_study_says_the_same_for_the_same_seed_and_misses_with_a_bad_gate(tmp_path):
    first = power_study(4, 1, clock=ManualClock())
    assert first == power_study(4, 1, clock=ManualClock())
    assert first != power_study(4, 2, clock=ManualClock())
    # Four suites prove nothing, and the study says so.
    assert not first["meets_target"]
    assert main(["--suites", "1", "--out", str(tmp_path / "power.json")]) == 1
    written = json.loads((tmp_path / "power.json").read_text(encoding="utf-8"))
    assert set(written["shapes"]) == set(first["shapes"])
    with pytest.raises(ConfigError):
        power_study(0)


def test_the_published_figures_are_of_the_shipped_gate_and_meet_the_target():
    published = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert published["policy"] == GatePolicy().model_dump(mode="json")
    assert published["meets_target"]
    assert len(published["shapes"]) == 2 * len(SHAPES)
    for figures in published["shapes"].values():
        assert figures["suites"] >= 3_000
        assert figures["false_alarm_upper95"] <= 0.01
        assert figures["power"] >= 0.95
    for control in published["controls"].values():
        assert max(figures["false_alarm_upper95"] for figures in control.values()) > 0.01
