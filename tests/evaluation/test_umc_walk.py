"""UMC walked forward: the trace is of those who traded, causal, and honest about lambda."""

import numpy as np
import pytest

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.umc.lam import LambdaConfig
from agent_gym.agents.umc.telling import bar_energy
from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.umc_walk import (
    believed,
    break_even,
    fold_agents,
    follow_echoes,
    lambda_path,
    row_of,
    trace_of,
)
from agent_gym.evaluation.umc_walk.run import account_cost_bp
from agent_gym.evaluation.umc_walk.trace import follow
from tests.evaluation.umc_walk_samples import FLAT_COST, WALK, known_bars, small_plan, small_run


def ledger(config: BacktestConfig = FLAT_COST) -> Ledger:
    return Ledger(known_bars(), WALK, config, 0)


def test_the_trace_has_a_row_for_every_tested_close():
    run = small_run()
    assert len(run.trace) == len(run.results.ts) == 1 + run.evaluation.market["bars"]
    assert set(run.trace.fold.tolist()) == {1, 2}
    assert run.results.target[:-1].tolist() == run.trace.columns["wish"][:-1].tolist()
    assert np.count_nonzero(np.diff(run.results.target)) > 3, (
        "a walk that never trades shows little"
    )


def test_f1_the_agents_traced_must_be_those_that_traded():
    run = small_run()
    other = fold_agents(ledger(), small_plan(kelly_fraction=0.05).ref)
    with pytest.raises(AgentError, match="not those that were traded"):
        trace_of(ledger(), run.results, other)


def test_f3_lambda_changes_no_trade_on_recorded_bars():
    wishes = []
    for value in (0.1, 0.46):
        lam = LambdaConfig.fixed(value).model_dump(mode="json")
        each = fold_agents(ledger(), small_plan(lam=lam).ref)[0]
        told = follow(ledger(), each)
        assert set(told.lam.tolist()) == {value}
        wishes.append(told.target)
    assert wishes[0].tobytes() == wishes[1].tobytes()


def test_d37_no_belief_depends_on_later_bars():
    each, bars = small_run().folds[0], known_bars()
    actions = FLAT_COST.bounds(bars.instrument)
    columns = columns_for(bars, each.agent.needs)
    whole = believed(each.agent, columns, actions)
    poisoned = {name: column.copy() for name, column in columns.items()}
    poisoned["close"][1_000:] *= 3.0
    other = believed(each.agent, poisoned, actions)
    for name in ("target", "energy", "planned", "lam", "information"):
        assert (getattr(whole, name)[:1_000] == getattr(other, name)[:1_000]).all(), name
    assert (whole.target[1_000:] != other.target[1_000:]).any(), "the poison has teeth"


def test_the_free_energy_of_many_bars_is_that_of_each():
    each, own = small_run().folds[0], ledger()
    told = follow(own, each)
    for row in (300, 700, 1_000):
        held = int(np.searchsorted(told.levels, told.held[row]))
        one = bar_energy(
            each.agent.config, row_of(told.trace, row), told.levels, held, float(told.lam[row])
        )
        np.testing.assert_allclose(told.energy[row], one.total, rtol=1e-7)
        apart = told.energy[row] - told.energy[row][held]
        np.testing.assert_allclose(apart, one.total - one.total[held], rtol=1e-6, atol=1e-9)
    assert np.ptp(told.energy, axis=1).min() > 0.0, "levels differ"


def test_d49_a_lambda_at_its_bounds_is_counted():
    count = 400
    silent = lambda_path(LambdaConfig(), np.zeros(count), np.ones(count))
    learning = lambda_path(LambdaConfig(), np.full(count, 0.5), np.ones(count))
    assert silent.share_at_bounds is not None
    assert silent.share_at_bounds > 0.9
    assert learning.share_at_bounds == 0.0
    assert set(learning.values.tolist()) == {LambdaConfig().lambda_base}
    fixed = lambda_path(LambdaConfig.fixed(0.2), np.zeros(count), np.ones(count))
    assert fixed.share_at_bounds is None


def test_d48_information_and_coherence_are_measured():
    columns = small_run().trace.columns
    for name in ("information_gain", "coherence", "free_energy", "surprise", "lambda"):
        assert np.isfinite(columns[name]).all(), name
    assert np.ptp(columns["information_gain"]) > 0.0
    assert np.ptp(columns["surprise"]) > 0.0


def test_d44_the_break_even_sheet_counts_moves_against_costs():
    steps = Seeds(3).rng().standard_normal(20_000) * 0.006
    close = 100.0 * np.exp(np.cumsum(steps))
    first, second, *_ = break_even(close, DAY_NS // 24, 10.0)
    assert first.move_bp == pytest.approx(60.0 * np.sqrt(2.0 / np.pi), rel=0.02)
    assert second.move_bp == pytest.approx(first.move_bp * np.sqrt(6.0), rel=0.05)
    assert first.skill == pytest.approx(20.0 / first.move_bp)
    assert (first.trades_per_day, second.trades_per_day) == (24.0, 4.0)
    assert break_even(close[:10], DAY_NS, 10.0)[-1].bars == 1


def test_the_agent_reckons_with_the_costs_of_the_account():
    dear = BacktestConfig(taker_bps=8.0, slippage_bps=3.0, half_spread_bps=1.5)
    assert account_cost_bp(dear) == 12.5
    assert small_plan(dear).ref.params["cost_bp"] == 12.5
    assert small_run().folds[0].agent.config.cost_bp == 5.0


def test_d33_echoes_are_renewed_and_move_nothing():
    bars = known_bars()
    before = bars.fingerprint
    config = EchoConfig(size=16, evolve_every_bars=200, window_bars=200, candidates=4)
    found = follow_echoes(bars, config, 0)
    assert found is not None
    assert max(row.number for row in found.generations) >= 5
    assert bars.fingerprint == before
    assert follow_echoes(bars, EchoConfig(size=0), 0) is None


def test_the_crowd_changes_nothing_that_umc_does():
    run = small_run()
    alone = fold_agents(ledger(), small_plan().ref)
    assert trace_of(ledger(), run.results, alone).columns["wish"].tobytes() == (
        run.trace.columns["wish"].tobytes()
    )
    assert run.leakage is not None
    assert run.leakage.passed


def test_d45_risk_parts_hold_a_walk_back():
    braked = FLAT_COST.model_copy(update={"max_drawdown": 0.02})
    own, plan = ledger(braked), small_plan(braked)
    run = own.trade("umc", own.decide(Arm(label="umc", refs=(plan.ref,))))
    agents = fold_agents(own, plan.ref)
    assert agents[0].begin == max(0, agents[0].first - 1_000)
    trace = trace_of(own, run, agents)
    assert run.caps["bound"]["drawdown"] > 0
    assert (np.abs(run.target) < np.abs(trace.columns["wish"])).any()
    assert run.metrics.max_drawdown < small_run().results.metrics.max_drawdown
