"""Both protocols from end to end: what is registered, held out, judged, and flagged."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Ref
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.forward import ForwardPlan, evaluate_forward
from agent_gym.evaluation.protocol.lockbox import LOCKBOX
from agent_gym.evaluation.protocol.seeded import SeededPlan, evaluate_seeded, with_first_path
from agent_gym.evaluation.protocol.setting import Setting, members
from agent_gym.evaluation.protocol.sheet import evaluation_sheet, regimes_of
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.trials import TrialRegistry
from tests.evaluation.protocol.protocol_samples import NULL, agents
from tests.samples import random_bars

__all__ = ["agents"]
BARS = random_bars(1_500, kind="spot")
WORDS = {"evidence of edge", "promising", "no evidence of edge", "worse than baseline"}
FLAT_COST = BacktestConfig(
    taker_bps=5.0,
    slippage_bps=0.0,
    half_spread_bps=0.0,
    impact=0.0,
    participation=None,
    allow_short=True,
)
DICE = Arm(label="dice", refs=(Ref(use="rules/random", params={"hold_bars": 6}),))
ARMS = (DICE, *reference_arms(allow_short=False))


def plan(**changes):
    walk = WalkForward(train=400, test=200, validate=50, purge=2, embargo=20)
    return ForwardPlan(**({"walk": walk, "lockbox": 240, "draws": 20} | changes))


def setting(folder, **changes):
    return Setting(TrialRegistry(folder / "trials.jsonl"), **changes)


def payload(evaluation):
    return to_json(evaluation.as_dict())


def test_every_configuration_that_was_tried_is_registered_once(tmp_path):
    asked = setting(tmp_path)
    first = evaluate_forward(BARS, ARMS, plan(), asked)
    grid = [each.refs[0].params for each in members(ARMS)]
    trials = asked.registry.trials()
    # SMA(24,120) is a baseline and one of the grid: the same trial.
    assert len(trials) == len(ARMS) + len(grid) - 1
    assert {"fast": 6, "slow": 72} in grid
    again = evaluate_forward(BARS, ARMS, plan(), asked)
    assert payload(again) == payload(first)
    assert len(asked.registry.trials()) == len(trials)
    assert asked.registry.verify()["trials"] == len(trials)


def test_what_an_evaluation_says(tmp_path):
    found = evaluate_forward(BARS, ARMS, plan(), setting(tmp_path))
    (agent,) = found.agents
    assert agent.verdict.word in WORDS
    assert found.protocol["folds"] == len(agent.folds) == 4
    assert found.market["bars"] == 1_260 - (400 + 22 + 50 + 22)
    assert agent.standing.trials == 23
    assert set(agent.versus) == {arm.label for arm in ARMS if arm.baseline}
    assert 0.0 < agent.p_random <= 1.0
    assert agent.net.low <= agent.net.estimate <= agent.net.high
    assert agent.gross.estimate > agent.net.estimate  # dice pay and get nothing for it
    cash = found.arms[1]
    assert (cash.net.estimate, cash.standing.sharpe, cash.verdict) == (0.0, None, None)
    best = found.arms[-1]
    assert all("chosen" in fold for fold in best.folds)
    assert set(found.spa) == {"cash", "buy & hold"}
    assert all(0.0 < p["lower"] <= p["consistent"] <= p["upper"] <= 1.0 for p in found.spa.values())
    held = found.lockbox
    assert (held["rows"], held["openings"], held["peeks"]) == (240, 0, 0)


def test_nothing_in_the_lockbox_is_looked_at(tmp_path):
    found = evaluate_forward(BARS, ARMS, plan(), setting(tmp_path / "a"))
    factor = np.where(np.arange(1_500) >= 1_260, 3.0, 1.0)
    prices = {name: getattr(BARS, name) * factor for name in ("open", "high", "low", "close")}
    other = evaluate_forward(replace(BARS, **prices), ARMS, plan(), setting(tmp_path / "b"))
    assert [arm.as_dict() for arm in other.arms] == [arm.as_dict() for arm in found.arms]


def test_opening_the_lockbox_is_recorded_before_and_refused_again(tmp_path):
    asked = setting(tmp_path)
    found = evaluate_forward(BARS, ARMS, plan(release="1.0", who="ada"), asked)
    assert (found.opening.release, found.opening.who, found.opening.before) == ("1.0", "ada", 0)
    assert found.opening.agents == ("dice",)
    growth = found.agents[0].lockbox_growth
    assert growth is not None
    with pytest.raises(ConfigError, match=r"opened for this release before.*ada"):
        evaluate_forward(BARS, ARMS, plan(release="1.0", who="bob"), asked)
    # Without opening it again the same agent's result is known, and the count with it.
    later = evaluate_forward(BARS, ARMS, plan(), asked)
    assert later.agents[0].lockbox_growth == growth
    assert later.lockbox["openings"] == 1
    newer = evaluate_forward(BARS, ARMS, plan(release="1.1", who="bob"), asked)
    assert newer.opening.before == 1
    kinds = [trial.plan.protocol["name"] for trial in asked.registry.trials()]
    assert kinds.count(LOCKBOX) == 2


def test_who_tests_on_the_lockbox_is_told(tmp_path):
    asked = setting(tmp_path)
    evaluate_forward(BARS, ARMS[:3], plan(lockbox=0), asked)
    found = evaluate_forward(BARS, ARMS[:3], plan(), asked)
    assert found.lockbox["peeks"] == 3
    assert found.agents[0].standing.trials == 6
    with pytest.raises(ConfigError, match="no lockbox"):
        evaluate_forward(BARS, ARMS[:3], plan(lockbox=0, release="x"), asked)
    with pytest.raises(ConfigError, match="leaves nothing"):
        evaluate_forward(BARS, ARMS[:3], plan(lockbox=1_499), asked)


@pytest.mark.usefixtures("agents")
def test_agents_that_learn_or_step_are_walked_too(tmp_path):
    arms = (
        Arm(label="pupil", refs=(Ref(use="test/pupil"),)),
        Arm(label="stepper", refs=(Ref(use="test/stepper"),)),
        *ARMS[1:3],
    )
    found = evaluate_forward(BARS, arms, plan(), setting(tmp_path))
    assert [arm.verdict.word in WORDS for arm in found.agents] == [True, True]


def test_a_sheet_is_made_of_the_same_numbers(tmp_path):
    found = evaluate_forward(BARS, ARMS, plan(), setting(tmp_path))
    sheet = evaluation_sheet(found)
    (agent,) = found.agents
    assert sheet.verdict == (agent.verdict.word, agent.verdict.why)
    assert sheet.subject == "dice"
    assert sheet.figures["dice"]["net_bp_per_bar"] == agent.net.estimate
    assert sheet.figures["dice"]["sharpe"] == agent.run.metrics.sharpe
    assert set(sheet.equity) == {arm.label for arm in found.arms}
    assert {each.baseline: each.interval for each in sheet.versus} == dict(agent.versus)
    assert any("lockbox" in note for note in sheet.notes)


def seeded(market, seeds=8, **changes):
    fields = {"market": market, "seeds": seeds, "config": FLAT_COST, "draws": 5, "embargo": 20}
    return SeededPlan(**(fields | changes))


@pytest.mark.usefixtures("agents")
def test_a_leaking_agent_is_flagged_on_a_null(tmp_path):
    leak = Arm(label="leak", refs=(Ref(use="test/clairvoyant"),))
    found = evaluate_seeded((leak, DICE, *ARMS[1:3]), seeded(NULL), setting(tmp_path))
    gate_a, gate_b = found.arms[0].gates
    assert not gate_a.passed
    assert "looks ahead" in gate_a.why
    assert not gate_b.passed
    assert found.arms[0].verdict.word == "no evidence of edge"
    assert all(gate.passed for arm in found.arms[1:] for gate in arm.gates)
    assert not found.passed


def test_on_a_known_market_shares_of_the_optimum_are_told(tmp_path):
    market = Ref(use="known/m1", params={"n_bars": 6_000, "drift_bp": 12.0})
    oracle = Arm(label="oracle", refs=(Ref(use="oracle/filter", params={"market": market}),))
    arms = (oracle, DICE, *ARMS[1:3])
    asked = seeded(market, draws=40)
    found = evaluate_seeded(arms, asked, setting(tmp_path))
    first, dice, cash, _ = found.arms
    assert first.share.estimate == pytest.approx(1.0, abs=0.02)
    assert first.verdict.word == "evidence of edge"
    assert dice.verdict.word != "evidence of edge"
    assert cash.share.estimate == 0.0
    best = found.attainable
    assert best["cost_bp"] == 5.0
    assert best["on_same_paths_bp_per_bar"] == pytest.approx(best["bp_per_bar"], rel=0.5)
    assert first.standing.returns == 8 * 125
    drawn, truth = with_first_path(found, arms, asked)
    sheet = evaluation_sheet(drawn, regimes_of(drawn, truth))
    assert len(sheet.regimes) > 3
    assert payload(found) == payload(evaluate_seeded(arms, asked, setting(tmp_path)))


def test_a_market_without_a_law_has_no_share(tmp_path):
    market = Ref(use="synthetic/btc-1h", params={"n_bars": 800})
    found = evaluate_seeded(ARMS[:3], seeded(market, 2), setting(tmp_path))
    assert found.attainable is None
    assert {arm.share for arm in found.arms} == {None}
    assert all(arm.gates == () for arm in found.arms)
    with pytest.raises(ConfigError, match="too few bars"):
        evaluate_seeded(ARMS[:3], seeded(market, 2, train=799), setting(tmp_path))
