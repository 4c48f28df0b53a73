"""The search for money must find what was planted, and must not take luck for money."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.core import ConfigError, Seeds
from agent_gym.evaluation.realism import ProbeRow, measure, probe, strongest_edge
from agent_gym.evaluation.realism.edge import ROUND_TRIP_BP, Ledger
from agent_gym.evaluation.realism.probe import next_moves, past_features
from agent_gym.evaluation.realism.series import Series
from agent_gym.markets import Bars
from agent_gym.markets.synthetic import GeneratorConfig, generate
from tests.evaluation.realism_samples import DAY, bars_from_returns, made

DAYS = 20


def row(gross_bp: float, error_bp: float, blocks: float = 100.0) -> ProbeRow:
    return ProbeRow(1, 0.1, 1000, blocks, gross_bp, error_bp)


def drifting(seed: int, drift: float) -> Bars:
    config = GeneratorConfig(n_bars=DAYS * DAY, drift=(drift, drift, drift, drift))
    return generate(config, Seeds(seed)).bars


def test_a_planted_echo_is_found() -> None:
    rng = Seeds(1).child("plant").rng()
    planted = []
    for seed in range(3):
        news = rng.normal(0.0, 2e-3, DAYS * DAY)
        returns = news.copy()
        returns[1:] += 0.9 * news[:-1]  # each minute is mostly the echo of the last
        planted.append(bars_from_returns(returns, seed))
    edge = strongest_edge(probe(planted[:2], planted[2:]))
    assert edge.row.horizon_bars == 1
    assert edge.lower_bp > 10.0
    assert edge.row.net_bp > edge.lower_bp


def test_a_planted_drift_is_found() -> None:
    """The direction of each segment is drawn; a trader can only see it from the past moves."""
    markets = [drifting(seed, 0.3) for seed in range(3)]
    edge = strongest_edge(probe(markets[:2], markets[2:]))
    assert edge.proven
    assert edge.row.horizon_bars >= 15


def test_a_steady_rise_is_found() -> None:
    rises = [
        bars_from_returns(Seeds(seed).child("rise").rng().normal(1e-4, 7e-4, DAYS * DAY), seed)
        for seed in range(3)
    ]
    assert strongest_edge(probe(rises[:2], rises[2:])).proven


@pytest.mark.parametrize("first", [1, 11, 21])
def test_a_fair_market_is_not_called_exploitable(first: int) -> None:
    fair = [made(seed, DAYS) for seed in range(first, first + 3)]
    edge = strongest_edge(probe(fair[:2], fair[2:]))
    assert not edge.proven


def test_a_planted_drift_fails_the_gate_of_a_report() -> None:
    """Over the series that are learned from and over those that are traded one at a time."""
    markets = ((seed, drifting(seed, 0.3)) for seed in range(6))
    report = measure(markets, market="planted")
    assert report.exploitable_lower_bp is not None
    assert report.exploitable_bp is not None
    assert report.exploitable_error_bp is not None
    assert 0.0 < report.exploitable_lower_bp < report.exploitable_bp
    assert any("after costs" in miss for miss in report.misses())
    traded = max(entry["blocks"] for entry in report.probe)
    assert traded > DAYS / 2


def test_luck_is_called_money_in_one_of_twenty_at_most() -> None:
    """Eight searches without any money in them: their best result is mostly above zero."""
    rng = Seeds(3).child("luck").rng()
    lucky, called = 0, 0
    for _ in range(1000):
        rows = [row(ROUND_TRIP_BP + 40.0 * z, 40.0) for z in rng.normal(size=8)]
        lucky += max(found.net_bp for found in rows) > 0.0
        called += strongest_edge(rows).proven
    assert lucky > 950
    assert called < 70  # 50 expected at most; three errors are 21


def test_a_large_result_of_few_noisy_trades_proves_nothing() -> None:
    assert not strongest_edge([row(146.0, 129.0)]).proven
    assert strongest_edge([row(146.0, 13.0)]).proven
    assert not strongest_edge([row(146.0, 13.0, blocks=1.2)]).proven


def test_more_searches_need_stronger_evidence() -> None:
    found = row(ROUND_TRIP_BP + 2.0, 1.0)
    idle = row(-50.0, 1.0)
    assert strongest_edge([found]).proven
    assert not strongest_edge([found, *[idle] * 7]).proven


def test_a_search_without_rows_is_refused() -> None:
    with pytest.raises(ConfigError, match="no search"):
        strongest_edge([])


def test_trades_of_one_storm_are_one_bet() -> None:
    """A thousand trades that win and lose together say as much as their few stretches of time."""
    rng = Seeds(5).child("storms").rng()
    means, errors = [], []
    for _ in range(300):
        block = np.repeat(np.arange(20), 50)
        result = np.repeat(rng.normal(0.0, 30.0, 20), 50) + rng.normal(0.0, 5.0, 1000)
        ledger = Ledger()
        ledger.add(result, block, 20)
        found = ledger.row(1, 0.1)
        assert found.blocks == pytest.approx(20.0)
        means.append(found.gross_bp)
        errors.append(found.error_bp)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.12)


def test_a_ledger_adds_series_up() -> None:
    rng = Seeds(6).child("series").rng()
    whole, parts = Ledger(), Ledger()
    result, block = rng.normal(3.0, 10.0, 400), np.arange(400) // 20
    whole.add(result, block, 20)
    parts.add(result[:200], block[:200], 10)
    parts.add(result[200:], block[200:] - 10, 10)
    assert parts.row(5, 0.1) == whole.row(5, 0.1)


def test_no_trade_earns_nothing_and_proves_nothing() -> None:
    ledger = Ledger()
    ledger.add(np.empty(0), np.empty(0, dtype=np.int64), 3)
    found = ledger.row(1, 0.01)
    assert found.trades == 0
    assert not strongest_edge([found]).proven


def test_the_probe_never_sees_the_future() -> None:
    bars = made(4, 4)
    series, cut = Series(bars), 3 * DAY
    before = past_features(Series(bars.rows(0, cut)))
    np.testing.assert_allclose(past_features(series)[: cut - 1], before, rtol=1e-6, atol=1e-9)
    moves = next_moves(series, 5)
    log_close = np.log(bars.close)
    assert moves[1000] == pytest.approx(log_close[1006] - log_close[1001])
    assert np.isnan(moves[-5:]).all()


def test_the_probe_needs_series_to_learn_from_and_to_trade() -> None:
    with pytest.raises(ConfigError, match="learn from"):
        probe([], [made(1, 4)])
