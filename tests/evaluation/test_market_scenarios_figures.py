from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.scenarios.market import MarketScenario
from agent_gym.evaluation.scenarios.market_figures import (
    Played,
    _fill_lag_bars,
    _loss_in_shock,
    _recovery_bars,
    _wrong_side_share,
    common_figures,
    new_targets,
)
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.plants_market import MARKET_PLANTS, TYPES
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.shocks import Shock
from agent_gym.exchange.series import FILL
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument

N_SEEDS = 6
HOUR = 3_600 * 10**9


def small_run(config: BacktestConfig, funding: float = 0.001) -> Played:
    price = np.array([100.0, 100.0, 90.0, 95.0, 110.0, 110.0])
    rates = np.array([0.0, 0.0, funding, 0.0, 0.0, 0.0])
    extra = {"funding": rates, "spread": np.zeros(6)}
    ts = np.arange(6) * HOUR
    swap = Instrument(kind="perpetual")
    bars = Bars(swap, HOUR, ts, price, price, price, price, np.full(6, 1e9), extra)
    results = BacktestEngine(config).run(bars, Ref(use="rules/buy-hold"))
    return Played(results, np.ones(5), 0, (Shock(2, 4, -0.1),), bars, config)


PLAIN = BacktestConfig(taker_bps=10.0, slippage_bps=0.0, impact=0.0, capital=1_000.0)


def test_the_figures_of_a_run_done_by_hand() -> None:
    figures = common_figures(small_run(PLAIN))
    units = 1_000.0 / (100.0 * 1.001)
    fee = units * 100.0 * 0.001
    paid = units * 90.0 * 0.001
    assert figures["net_return"] == pytest.approx((units * 10.0 - fee - paid) / 1_000.0)
    assert figures["turnover"] == pytest.approx(units / 10.0)
    assert figures["cost_bp"] == pytest.approx(10.0)
    before = 1_000.0 - fee
    assert figures["loss_in_shock"] == pytest.approx((units * 10.0 + paid) / before)
    assert figures["worst_bar"] == figures["loss_in_shock"]
    assert figures["recovery_bars"] == 2.0
    assert figures["fill_lag_bars"] == 1.0
    assert figures["wrong_side_share"] == 0.0
    assert figures["ledger_gap_bp"] == 0.0


def test_the_ledger_is_held_against_what_was_stated() -> None:
    run = small_run(PLAIN)
    cheaper = replace(run, stated=PLAIN.model_copy(update={"taker_bps": 9.9}))
    assert common_figures(cheaper)["ledger_gap_bp"] == pytest.approx(0.1 / 1.001)
    dearer = replace(run, bars=small_run(PLAIN, funding=0.0011).bars)
    assert common_figures(dearer)["ledger_gap_bp"] == pytest.approx(0.9 / 1.001)


def test_recovery_counts_from_the_shock_to_the_old_equity() -> None:
    shocks = (Shock(2, 4, -1.0), Shock(7, 8, -1.0))
    equity = np.array([10.0, 10, 8, 9, 9, 10, 11, 11, 11, 11])
    assert _recovery_bars(equity, shocks) == (3 + 0) / 2
    never = np.array([10.0, 10, 8, 9, 9, 9, 9, 8, 8, 8])
    assert _recovery_bars(never, shocks) == (5 + 3) / 2  # to the next shock, to the end
    later = np.array([10.0, 10, 10, 10, 9, 10, 10, 10, 10, 10])
    assert _recovery_bars(later, shocks) == 3 / 2
    assert _loss_in_shock(equity, shocks) == pytest.approx(0.2)
    assert _loss_in_shock(np.zeros(10), shocks) == 0.0  # nothing left to lose


def fills(*bars: int) -> Any:
    rows = np.zeros(len(bars), dtype=FILL)
    rows["bar"] = bars
    return rows


def test_the_lag_is_that_of_the_first_fill_of_each_target() -> None:
    asked = np.array([0.0, 1, 1, 1, 0, 0, 0, 0])
    assert _fill_lag_bars(asked, fills(2, 5)) == 1.0
    assert _fill_lag_bars(asked, fills(3, 4, 6)) == 2.0
    assert _fill_lag_bars(asked, fills()) is None
    assert _fill_lag_bars(np.zeros(8), fills()) is None
    assert new_targets(asked, np.array([1, 1, 0, 0, 0, 0, 0, 0], dtype=bool)) == 1.0


def test_the_side_is_compared_with_the_decision_that_has_arrived() -> None:
    asked = np.array([1.0, 1, -1, -1])
    held: Any = SimpleNamespace(position=np.array([0.0, 2, 2, -2, -2]))
    played = Played(held, asked, 0, (), None, PLAIN)  # type: ignore[arg-type]
    assert _wrong_side_share(played) == 0.0
    late = SimpleNamespace(position=np.array([0.0, 0, 2, 2, -2]))
    assert _wrong_side_share(replace(played, results=late)) == 0.5
    slow = PLAIN.model_copy(update={"latency_bars": 1})
    assert _wrong_side_share(replace(played, results=late, stated=slow)) == 0.0


def loss(metric: Metric, base: list[Any], cand: list[Any]) -> tuple[float, float]:
    """Return the mean loss and how many standard errors that is."""
    lost = -metric.sign * np.array(
        [after[metric.name] - before[metric.name] for before, after in zip(base, cand, strict=True)]
    )
    error = lost.std(ddof=1) / np.sqrt(len(lost))
    return float(lost.mean()), float(lost.mean() / max(error, 1e-12))


def played(kind: str, plant: str | None) -> tuple[MarketScenario[Any], list[Any]]:
    made = make("scenario", Ref(use=kind))
    assert isinstance(made, MarketScenario)
    return made, [made.play(Seeds(s), Subject(plant=plant)).metrics for s in range(N_SEEDS)]


@pytest.fixture(scope="module")
def healthy() -> dict[str, list[Any]]:
    return {kind: played(kind, None)[1] for kind in TYPES}


@pytest.mark.parametrize("name", MARKET_PLANTS)
def test_each_plant_moves_what_it_is_blamed_for(name: str, healthy: dict[str, list[Any]]) -> None:
    plant = MARKET_PLANTS[name]
    assert plant.blamed
    for kind in sorted({blamed.split("/")[0] for blamed in plant.blamed}):
        made, cand = played(kind, name)
        metrics = {metric.name: metric for metric in made.figures() if metric.gates}
        for blamed in plant.blamed:
            if not blamed.startswith(f"{kind}/"):
                continue
            metric = metrics[blamed.removeprefix(f"{kind}/")]
            lost, errors = loss(metric, healthy[kind], cand)
            usual = abs(np.mean([row[metric.name] for row in healthy[kind]]))
            share = metric.tolerance.rel * usual if usual > metric.floor else 0.0
            if metric.must_be_zero:
                assert not any(row[metric.name] for row in healthy[kind]), blamed
                assert any(row[metric.name] for row in cand), blamed
            else:
                assert lost > max(metric.tolerance.abs, share), blamed
                assert errors > 3.0, blamed


def test_a_plant_of_another_room_changes_nothing() -> None:
    made = make("scenario", Ref(use="flash_crash"))
    assert isinstance(made, MarketScenario)
    usual = made.play(Seeds(1), Subject())
    assert made.play(Seeds(1), Subject(plant="dedupe_skipped")).trajectory_hash == (
        usual.trajectory_hash
    )


def test_a_ruined_account_still_has_finite_figures() -> None:
    _, rows = played("flash_crash", "market_fat_finger")
    assert sum(row["ruin"] for row in rows) > 0
    assert all(np.isfinite(value) for row in rows for value in row.values() if value is not None)
