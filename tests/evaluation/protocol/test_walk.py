"""A walk through all folds: nobody learns from what comes later, one account trades it all."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.decisions import decided_of, row_of
from agent_gym.evaluation.protocol.pnl import bar_pnl, daily_means, trial_returns
from agent_gym.evaluation.protocol.splits import WalkForward
from tests.evaluation.protocol.protocol_samples import Pupil, Stepper, agents
from tests.samples import random_bars

__all__ = ["agents"]
BARS = random_bars(600, kind="spot")
WALK = WalkForward(train=200, test=100, purge=2, embargo=8)
CROSS = Ref(use="rules/sma-cross", params={"fast": 3, "slow": 8})
GRID = Arm(
    label="grid",
    refs=tuple(Ref(use="rules/sma-cross", params={"fast": f, "slow": 9}) for f in (2, 4, 6)),
)


def ledger(bars=BARS, walk=WALK, **config):
    return Ledger(bars, walk, BacktestConfig(**config), 3)


def arm(use, **params):
    return Arm(label=use, refs=(Ref(use=use, params=params),))


def traded(made, which):
    return made.trade(which.label, made.decide(which))


def test_a_rule_is_traded_from_the_first_test_on():
    made = ledger()
    run = traded(made, Arm(label="x", refs=(CROSS,)))
    whole = BacktestEngine(BacktestConfig()).run(BARS, CROSS, 3)
    assert (made.first, len(run.bars), run.equity[0]) == (209, 391, 10_000.0)
    # It has seen all the past: its targets are those of a run over everything.
    assert np.array_equal(run.target, whole.target[209:])
    assert np.array_equal(run.bars.close, BARS.close[209:])
    assert run.metrics.bars == 391
    assert run.fills["bar"].min() >= 1


@pytest.mark.usefixtures("agents")
def test_an_agent_that_decides_bar_by_bar_is_shown_the_past_and_sits_out_there():
    made = ledger()
    run = traded(made, arm("test/stepper"))
    (own,) = [each for each in Stepper.made if each.seen]
    assert own.seen == BARS.close[:-1].tolist()
    rising = np.diff(BARS.close, prepend=np.inf) > 0
    assert np.array_equal(run.target[:-1], rising[209:-1].astype(float))
    assert own.steps[100].decision.action == 0.0
    assert run.equity[0] == 10_000.0


@pytest.mark.usefixtures("agents")
def test_a_learner_is_made_anew_and_learns_from_its_own_train_alone():
    made = ledger()
    run = traded(made, arm("test/pupil"))
    taught = [each for each in Pupil.made if each.fitted]
    assert len(taught) == len(made.folds) == 4
    for pupil, fold in zip(taught, made.folds, strict=True):
        (past,) = pupil.fitted
        assert np.array_equal(past, BARS.close[fold.train.rows])
        rows = slice(fold.test.start - 1 - made.first, fold.test.stop - 1 - made.first)
        assert set(run.target[rows]) == {float(past[-1] > past[0])}
    assert len({each.seeds[0] for each in taught}) == 4


@pytest.mark.usefixtures("agents")
def test_a_tuned_learner_is_also_shown_the_validation_rows_and_nothing_after():
    made = ledger(walk=WALK.model_copy(update={"validate_rows": 40}))
    traded(made, arm("test/tuner"))
    taught = [each for each in Pupil.made if each.fitted]
    for tuner, fold in zip(taught, made.folds, strict=True):
        assert np.array_equal(tuner.fitted[0], BARS.close[fold.validate.rows])
        assert fold.train.stop < fold.validate.start < fold.validate.stop < fold.test.start
        learned, tuned = tuner.seeds
        assert learned != tuned


@pytest.mark.usefixtures("agents")
def test_without_validation_rows_nobody_is_tuned():
    traded(ledger(), arm("test/tuner"))
    assert {len(each.seeds) for each in Pupil.made if each.fitted} == {1}


@pytest.mark.usefixtures("agents")
def test_rolling_trains_forget():
    made = ledger(walk=WALK.model_copy(update={"expanding": False}))
    traded(made, arm("test/pupil"))
    assert {len(each.fitted[0]) for each in Pupil.made if each.fitted} == {200}


def test_what_is_chosen_for_a_fold_does_not_depend_on_what_comes_after_its_train():
    walk = WalkForward(train=60, test=60, purge=2, embargo=8, expanding=False)
    made = ledger(walk=walk)
    chosen = made.decide(GRID).chosen
    for number, fold in enumerate(made.folds):
        rng = np.random.Generator(np.random.PCG64(number))
        factor = np.ones(len(BARS))
        factor[fold.train.stop :] = np.exp(np.cumsum(rng.normal(0, 0.05, factor.size)))[
            fold.train.stop :
        ]
        prices = {name: getattr(BARS, name) * factor for name in ("open", "high", "low", "close")}
        other = ledger(replace(BARS, **prices), walk).decide(GRID).chosen
        assert other[: number + 1] == chosen[: number + 1]
    assert len(set(map(str, chosen))) > 1  # else this test could not fail


def test_the_best_on_train_is_the_best_on_train():
    made = ledger()
    chosen = made.decide(GRID).chosen
    for fold, picked in zip(made.folds, chosen, strict=True):
        ratios = {}
        for ref in GRID.refs:
            run = BacktestEngine(BacktestConfig()).run(BARS, ref, 3)
            rows = (np.diff(run.equity) / run.equity[:-1])[: fold.train.stop - 1]
            ratios[ref.params["fast"]] = rows.mean() / rows.std()
        assert picked.params["fast"] == max(ratios, key=ratios.get)


@pytest.mark.usefixtures("agents")
def test_a_learner_takes_no_grid():
    both = Arm(label="x", refs=(Ref(use="test/pupil"), Ref(use="test/pupil")))
    with pytest.raises(ConfigError, match="do not learn"):
        ledger().decide(both)


def test_targets_survive_the_way_through_json():
    made = ledger()
    decided = made.decide(GRID)
    again = decided_of(row_of(decided))
    assert np.array_equal(again.targets, decided.targets)
    assert (again.equity_hash, again.chosen) == (decided.equity_hash, decided.chosen)
    assert made.trade("x", again).equity_hash == decided.equity_hash


def test_gross_less_costs_is_net():
    run = traded(ledger(taker_bps=20.0), Arm(label="x", refs=(CROSS,)))
    pnl = bar_pnl(run)
    paid = (pnl.gross - pnl.net) * run.equity[:-1]
    assert paid.min() > -1e-9
    assert paid.sum() == pytest.approx(run.metrics.fees + run.metrics.slippage, rel=1e-9)
    assert np.allclose(np.prod(1 + pnl.net), run.equity[-1] / run.equity[0])
    assert pnl.mean_bp("net", "growth") == pytest.approx(run.metrics.growth_bps_per_bar)


def test_without_costs_gross_is_net():
    free = {"taker_bps": 0.0, "slippage_bps": 0.0, "half_spread_bps": 0.0, "impact": 0.0}
    pnl = bar_pnl(traded(ledger(**free), Arm(label="x", refs=(CROSS,))))
    assert np.allclose(pnl.gross, pnl.net, atol=1e-12)


def test_days_are_days():
    ts = np.array([0, 1, 23, 24, 47, 72]) * 3_600 * 10**9
    values = np.array([1.0, 2.0, 3.0, 10.0, 20.0, 7.0])
    assert daily_means(ts, values).tolist() == [2.0, 15.0, 7.0]


def test_a_ruined_account_lost_everything():
    run = traded(ledger(), Arm(label="x", refs=(CROSS,)))
    returns, _ = trial_returns(run)
    assert returns.size == 16
    half = run.equity.size // 2
    gone = replace(run, equity=np.where(np.arange(run.equity.size) < half, run.equity, -1.0))
    lost, _ = trial_returns(gone)
    end = int(np.argmin(lost))
    assert lost.size == returns.size  # trials of a bench are laid side by side
    assert (lost[end], lost[end + 1 :].tolist()) == (-1.0, [0.0] * (returns.size - end - 1))
    assert lost[:end].tolist() == returns[:end].tolist()
    assert 0 < end < returns.size - 1
