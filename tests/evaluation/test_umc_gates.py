import json

import numpy as np
import pytest

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config, Ref, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision
from agent_gym.evaluation.leakage.umc import TIERS
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.umc import GatesPlan, leaks, run_gates
from agent_gym.evaluation.umc.bounds import BOUNDS, NULLS, Bound
from agent_gym.evaluation.umc.breaks import Break
from agent_gym.evaluation.umc.canary import (
    CANARY,
    PREFIX,
    CanaryJob,
    ReversalJob,
    more_likely_by_chance,
    reversal_figure,
)
from agent_gym.evaluation.umc.invariants import InvariantJob, Invariants
from agent_gym.evaluation.umc.leaks import Leaks, live_figure
from agent_gym.evaluation.umc.plan import COURSES
from agent_gym.markets.known import draw

SHORT = 1_000


class Nothing(Config):
    """No options."""


class Peeker:
    """Decides a whole series and looks one close ahead."""

    name = "test/peeker"
    needs = ("close",)

    def __init__(self, config):
        pass

    def targets(self, start, columns):
        close = columns["close"]
        return np.sign(np.diff(close, append=close[-1:]))

    def reset(self, start):
        self._start = start

    def act(self, obs):
        return Decision(0.0)

    def observe(self, step):
        pass


class Insider:
    """Knows the path from elsewhere, so that no cut of its columns gives it away."""

    name = "test/insider"

    def __init__(self, config):
        pass

    def reset(self, start):
        self._place, self._seeds, self._ahead = start.column("close"), start.seeds, None

    def act(self, obs):
        close = float(obs.features[self._place])
        if self._ahead is None:
            self._ahead = self._find(close)
        return Decision(self._ahead.get(close, 0.0))

    def observe(self, step):
        pass

    def _find(self, first):
        for name in NULLS:
            market = Ref(use=f"known/{name}", params={"n_bars": SHORT})
            close = draw(market, Seeds(self._seeds.root)).bars.close
            if first in close:
                return dict(zip(close.tolist(), np.sign(np.diff(close)).tolist(), strict=False))
        raise LookupError("not a null")


class Whim(UMCAgent):
    """Lets lambda decide where nothing that is done can be observed."""

    def act(self, obs):
        made = super().act(obs)
        odd = obs.ts // HOUR_NS % 7 == 0
        return Decision(0.77) if odd and self.config.lam.lambda_max > 0.4 else made


register("agent", "test/peeker", Nothing)(Peeker)
register("agent", "test/insider", Nothing)(Insider)
register("agent", "test/whim", UMCConfig)(Whim)


def gates(tmp_path, only, agent="umc", jobs=1, seeds=2, **params):
    plan = GatesPlan(agent=Ref(use=agent, params=params), only=tuple(only), seeds=seeds, bars=SHORT)
    return run_gates(plan, Setting(TrialRegistry(tmp_path / "trials.jsonl"), jobs=jobs))


@pytest.mark.parametrize(
    ("rule", "value", "ends", "holds"),
    [
        ("at least", 0.85, (0.0, 1.0), True),
        ("at least", 0.849, (0.0, 1.0), False),
        ("at most", 0.86, (0.0, 1.0), False),
        ("equals", 0.85, (None, None), True),
        ("interval above", 0.9, (0.86, 1.0), True),
        ("interval above", 0.9, (0.85, 1.0), False),
        ("interval above", 0.9, (None, None), False),
        ("interval holds", 0.9, (0.84, 1.0), True),
        ("interval holds", 0.9, (0.86, 1.0), False),
        ("interval holds", 0.8, (0.7, 0.84), False),
        ("shown only", 0.0, (None, None), None),
    ],
)
def test_a_bound_is_held_by_its_own_rule(rule, value, ends, holds):
    assert Bound("", rule, 0.85, "").holds(value, *ends) is holds


def test_the_bounds_are_those_of_the_design():
    found = {name: (bound.rule, bound.value) for name, bound in BOUNDS.items()}
    assert found["A.n3.timing"] == ("interval holds", 0.0)
    assert found["B.n1.net"] == ("at least", -0.3)
    assert found["C.m1.share"] == ("at least", 0.85)
    assert found["C.m1.share_low"] == ("at least", 0.7)
    assert found["C.m1.over_sma"] == ("interval above", 0.0)
    shares = [found[f"C.{m}.share"][1] for m in ("m2", "m3", "m3_at_5bp", "m4")]
    assert shares == [0.7, 0.5, 0.5, 0.5]
    assert found["D.costs"] == ("at most", 10.0)
    assert found["D.gross"] == ("interval holds", 0.0)
    assert found["E.time_reversal"] == ("at least", 0.01)
    assert found["F.g3_replay"] == found["F.g3_live"] == ("at most", 0.002)
    assert found["F.g4_policy"] == ("at most", 0.01)
    assert {found[f"G.{n}"] for n in ("lambda", "prefix", "poison", "doors", "same_seed")} == {
        ("equals", 0.0)
    }


def test_who_knows_the_path_fails_on_every_null(tmp_path):
    found = gates(tmp_path, "AB", "test/insider", seeds=5)
    for name in NULLS:
        assert found.figures[f"A.{name}.timing"].passed is False
        assert found.figures[f"A.{name}.timing"].low > 1.0
        assert found.figures[f"B.{name}.lucky"].passed is False
    assert not found.passed


def test_who_looks_ahead_in_its_columns_fails_by_name(tmp_path):
    found = gates(tmp_path, "AG", "test/peeker")
    for name in NULLS:
        figure = found.figures[f"A.{name}.timing"]
        assert figure.value is None
        assert figure.passed is False
        assert "after it" in figure.words
    assert found.figures["G.poison"].passed is False
    assert found.figures["G.doors"].passed is False
    assert found.figures["G.control"].passed is True


def test_who_trades_at_random_fails_for_what_it_pays_and_takes_nothing(tmp_path):
    nulls = gates(tmp_path, "B", "rules/random", seeds=4, hold_bars=1)
    assert {f"B.{name}.net" for name in NULLS} <= set(nulls.failed)
    found = gates(tmp_path, "C", "rules/random", hold_bars=2)
    shares = {f"C.{name}.share" for name in ("m1", "m3", "m3_at_5bp", "m4")}
    assert shares | {"C.m1.share_low", "C.m1.over_sma"} <= set(found.failed)


def test_who_is_held_against_the_largest_gain_is_told_to_want_it():
    plan, course = GatesPlan(agent=Ref(use="umc")), COURSES["m3_at_5bp"]
    assert plan.agent_for(course).params["kelly_fraction"] == 10.0
    assert "kelly_fraction" not in plan.agent_for(COURSES["m1"]).params
    own = GatesPlan(agent=Ref(use="umc", params={"kelly_fraction": 0.5}))
    assert own.agent_for(course).params["kelly_fraction"] == 0.5
    assert not GatesPlan(agent=Ref(use="rules/random")).agent_for(course).params


def test_gate_f_is_for_umc_alone(tmp_path):
    with pytest.raises(ConfigError, match="UMC"):
        gates(tmp_path, "F", "rules/random")


def test_umc_decides_alike_whatever_it_is_shown_later_and_whichever_door(tmp_path):
    found = gates(tmp_path, "G")
    assert found.passed
    assert found.figures["G.control"].value == 2.0
    assert all(len(row["targets"]) > 1 for row in found.details["invariants"])


def test_f3_a_lambda_that_decides_on_a_replay_is_found_out():
    row = InvariantJob(agent=Ref(use="test/whim"), seed=1, train_bars=400, test_bars=60).run()
    assert row["lambda"] > 0
    judged = Invariants().judge(GatesPlan(seeds=2), [row]).figures
    assert judged["G.lambda"].passed is False
    assert judged["G.same_seed"].passed is True


def test_a_planted_leak_sets_off_both_alarms_and_nothing_else_does():
    row = CanaryJob(agent=Ref(use="umc"), seed=0, bars=400).run()
    assert {name: alarm["fired"] for name, alarm in row["with"].items()} == {
        PREFIX: True,
        CANARY: True,
    }
    assert not any(alarm["fired"] for alarm in row["without"].values())


def test_an_agent_that_looks_ahead_sets_off_an_alarm_without_a_leak():
    row = CanaryJob(agent=Ref(use="test/peeker"), seed=0, bars=200).run()
    assert row["with"] == {}
    assert row["without"][PREFIX]["fired"]


def test_time_turned_round_must_not_pay():
    noise = Seeds(3).rng().standard_normal(200)
    real = {"source": "file", "origin": "btc.parquet"}
    same = {"data": real, "forward": noise.tolist(), "reverse": noise.tolist()}
    assert reversal_figure(same).value == pytest.approx(0.5)
    assert reversal_figure(same).words.startswith("on btc.parquet: net ")
    better = same | {"reverse": (noise + 1.0).tolist()}
    assert reversal_figure(better).passed is False
    assert more_likely_by_chance(noise, noise + 1.0) > 0.99


def test_generated_bars_are_not_taken_for_real_ones():
    market = Ref(use="synthetic/btc-1h", params={"n_bars": 1_200})
    row = ReversalJob(agent=Ref(use="rules/flat"), market=market, seed=0).run()
    assert reversal_figure(row).words.startswith("on generated bars synthetic/btc-1h: net 0.000")


def broken(edge, paid, net):
    return {
        "seed": 0,
        "bars_per_day": 24,
        "bars_after": 1_000,
        "net_bp_before": edge,
        "paid_bp_after": paid,
        "net_bp_after": net,
        "exposure_before": 0.9,
        "exposure_after": [0.8, 0.4, 0.2, 0.0],
    }


def test_the_loss_after_a_break_is_counted_in_days_of_the_edge_before_it():
    rows = [broken(1.0, 120.0, -500.0), broken(3.0, 360.0, 1_000.0)]
    found = Break().judge(GatesPlan(seeds=2), rows).figures
    assert found["D.costs"].value == pytest.approx(240.0 / (24.0 * 2.0))
    assert found["D.costs"].passed
    assert found["D.net_loss"].value == pytest.approx(-250.0 / 48.0)
    assert found["D.net_loss"].passed is True
    assert found["D.gross"].value == pytest.approx(0.49)
    assert found["D.gross"].passed
    always = Break().judge(GatesPlan(seeds=2), [broken(1.0, 120.0, 500.0)] * 2).figures
    assert always["D.gross"].passed is False  # a gain on every path is no luck
    assert "0.90 before" in found["D.net_loss"].words
    assert "0.40 to day 30" in found["D.net_loss"].words
    dear = Break().judge(GatesPlan(seeds=2), [broken(0.1, 120.0, 0.0)] * 2).figures
    assert dear["D.costs"].passed is False
    nothing = Break().judge(GatesPlan(seeds=2), [broken(-0.1, 1.0, 0.0)] * 2).figures
    assert nothing["D.costs"].passed is False
    assert "no edge" in nothing["D.costs"].words


def live(value, floor=0.0):
    return {"value": value, "floor": floor, "bound": max(0.002, 1.2 * floor)}


def leak(tier="exact", **changes):
    row = {
        "tier": tier,
        "echoes": {"size": 100, "generations": 7},
        "g1_purity": {"value": 0.0},
        "g2_non_interference": {"sha256_with": "a", "sha256_without": "a"},
        "g3_predictive_leakage": {"value": 0.0},
        "g3_predictive_leakage_live": live(0.001),
        "g4_policy_influence": {"value": 0.01},
        "gate": {"withheld": 5},
        "control": {"caught": True},
    }
    return row | changes


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, None),
        ({"g1_purity": {"value": 1.0}}, "F.g1_purity"),
        ({"g2_non_interference": {"sha256_with": "a", "sha256_without": "b"}}, "F.g2_hashes"),
        ({"g3_predictive_leakage": {"value": 0.0021}}, "F.g3_replay"),
        ({"g3_predictive_leakage_live": live(0.0021)}, "F.g3_live"),
        ({"g3_predictive_leakage_live": live(0.0021, floor=0.0017)}, "F.g3_live"),
        ({"g3_predictive_leakage_live": live(0.0021, floor=0.002)}, None),
        ({"g4_policy_influence": {"value": 0.0101}}, "F.g4_policy"),
        ({"control": {"caught": False}}, "F.control"),
        ({"gate": {"withheld": 0}}, "F.control"),
    ],
)
def test_d34_one_leaky_seed_fails_gate_f(changes, missed):
    for tier, end in (("exact", ""), ("kalman", ".kalman"), ("recurrent", ".recurrent")):
        rows = [leak(each) for each in TIERS] + [leak(tier, **changes)]
        found = Leaks().judge(GatesPlan(seeds=2), rows).figures
        wrong = [name for name, figure in found.items() if not figure.passed]
        assert wrong == ([] if missed is None else [missed + end])


def test_the_seed_nearest_to_its_own_limit_is_shown():
    near, far = live(0.0019), live(0.004, floor=0.01)
    found = live_figure("F.g3_live", [far, near])
    assert (found.value, found.bound.value, found.high) == (0.0019, 0.002, 0.004)
    assert "0 to 0.01 nats" in found.words


def test_where_torch_is_missing_the_recurrent_tier_is_not_called_tight(monkeypatch):
    monkeypatch.setattr(leaks, "find_spec", lambda name: None)
    jobs = Leaks().jobs(GatesPlan(seeds=4))
    assert {job.tier for job in jobs.values()} == {"exact", "kalman"}
    found = Leaks().judge(GatesPlan(seeds=2), [leak(), leak("kalman")]).figures
    own = {name: figure for name, figure in found.items() if name.endswith(".recurrent")}
    assert len(own) == 6
    assert all(figure.passed is None and "torch" in figure.words for figure in own.values())


def test_every_tier_has_its_seeds_and_its_rows():
    pytest.importorskip("torch")
    jobs = Leaks().jobs(GatesPlan(seeds=20)).values()
    counts = {tier: sum(job.tier == tier for job in jobs) for tier in TIERS}
    assert counts == {"exact": 20, "kalman": 20, "recurrent": 3}
    assert all(job.config.tier == TIERS[job.tier] for job in jobs)
    rows = [leak(tier) for tier in TIERS]
    figures = Leaks().judge(GatesPlan(seeds=2), rows).figures
    assert set(figures) == {name for name in BOUNDS if name.startswith("F.")}
    assert "1 seeds" in figures["F.g3_replay.recurrent"].words


def test_the_file_says_all(tmp_path):
    read = json.loads(to_json(gates(tmp_path, "BD").as_dict()))
    assert set(read) == {
        "schema_version",
        "passed",
        "failed",
        "gates",
        "by_letter",
        "seeds",
        "plan",
        "per_seed",
        "manifest",
    }
    assert set(read["by_letter"]) == {"B", "D"}
    fields = {"value", "low", "high", "bound", "passed", "rule", "unit", "what", "seeds"}
    for name, found in read["gates"].items():
        assert name in BOUNDS
        assert fields | {"interval", "words"} == set(found)
    assert len(read["per_seed"]["n1"]["arms"]["agent"]["net_bp"]) == 2
    assert read["manifest"]["seeds"] == read["seeds"] == [0, 1]
    assert not (tmp_path / "trials.jsonl").exists()


def test_the_bytes_do_not_hang_on_the_number_of_processes(tmp_path):
    one, two = (
        to_json(gates(tmp_path, "D", "rules/sma-cross", jobs=jobs).as_dict()) for jobs in (1, 2)
    )
    assert one == two
