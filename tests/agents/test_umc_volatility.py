"""Volatility as a mixture: right shares, no look ahead, pieces as the whole."""

from __future__ import annotations

import numpy as np
import pytest

from agent_gym.agents.umc.series import HALF_LIVES, SeriesReader
from agent_gym.agents.umc.volatility import Volatility
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.known import draw


def closes(market: str, seed: int = 0, bars: int = 6_000) -> FloatArray:
    return draw(Ref(use=market, params={"n_bars": bars}), Seeds(seed)).bars.close


def surprise(volatility: Volatility, close: FloatArray) -> float:
    """Return the mean minus log density of a Gaussian with the expected deviation."""
    rows = volatility.read(close, volatility.begin())[200:]
    return float(np.mean(0.5 * (rows[:, 0] / rows[:, 1]) ** 2 + np.log(rows[:, 1])))


@pytest.mark.parametrize("market", ["known/n1", "known/n2", "known/m5"])
def test_fitted_shares_foretell_better_than_any_single_average(market: str) -> None:
    past, later = closes(market, 1), closes(market, 2)
    mixed = Volatility(HALF_LIVES)
    mixed.fit(past)
    singles = []
    for half_life in HALF_LIVES:
        single = Volatility((half_life,))
        single.restore(np.ones(1))
        singles.append(surprise(single, later))
    assert surprise(mixed, later) < min(singles) + 0.005
    equal = Volatility(HALF_LIVES)
    assert surprise(mixed, past) < surprise(equal, past)


def test_a_calm_market_asks_for_a_long_memory_and_a_wild_one_for_a_short() -> None:
    calm, wild = Volatility(HALF_LIVES), Volatility(HALF_LIVES)
    calm.fit(closes("known/n1"))
    wild.fit(closes("known/n2"))
    assert calm.shares[:2].sum() < 0.3 < wild.shares[:2].sum()
    assert calm.shares.sum() == pytest.approx(1.0, abs=0.1)


def test_later_bars_change_nothing_and_pieces_are_the_whole() -> None:
    close = closes("known/n2", bars=800)
    reader = SeriesReader(())
    reader.fit({"close": close[:500]})
    whole = reader.read({"close": close}, reader.begin())
    memory, parts = reader.begin(), []
    for first, last in ((0, 1), (1, 300), (300, 800)):
        parts.append(reader.read({"close": close[first:last]}, memory))
    for name in ("returns", "expected_sigma", "sigma"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tobytes() == getattr(whole, name).tobytes()
    poisoned = close.copy()
    poisoned[400:] *= 7.0
    early = reader.read({"close": poisoned}, reader.begin())
    assert early.sigma[:400].tobytes() == whole.sigma[:400].tobytes()


def test_d24_the_level_of_the_price_does_not_matter() -> None:
    close = closes("known/n2", bars=500)
    one, other = Volatility(HALF_LIVES), Volatility(HALF_LIVES)
    one.fit(close)
    other.fit(close * 1_024.0)
    assert one.shares == pytest.approx(other.shares, abs=1e-9)


def test_d25_an_unknown_input_is_unknown_and_not_zero() -> None:
    reader = SeriesReader(("funding_z",))
    columns = {
        "close": np.array([1.0, 2.0, 3.0]),
        "funding_z": np.array([0.0, 5.0, 0.0]),
        "funding_z_known": np.array([0.0, 1.0, 1.0]),
    }
    found = reader.read(columns, reader.begin()).inputs[:, 0]
    assert np.isnan(found[0])
    assert found[1:].tolist() == [5.0, 0.0]


def test_what_is_no_market_is_refused() -> None:
    with pytest.raises(DataError, match="stands still"):
        Volatility(HALF_LIVES).fit(np.full(400, 5.0))
    with pytest.raises(DataError, match="other averages"):
        Volatility(HALF_LIVES).restore(np.ones(2))
    reader = SeriesReader(())
    with pytest.raises(AgentError, match="not a price"):
        reader.read({"close": np.array([1.0, -1.0])}, reader.begin())
