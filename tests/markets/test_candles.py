"""Candles at a moment: nothing of later bars, and the same as bars that were made longer."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.markets.basket import basket
from agent_gym.markets.candles import Moment, candles, prints
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.resample import resample
from tests.samples import START_NS, random_bars

BARS = random_bars(200, kind="spot")


def moment(last=120, bars=BARS):
    return Moment(bars, last, float(bars.open[last + 1]))


def test_later_bars_are_not_looked_at():
    later = np.arange(200) > 120
    other = replace(
        BARS,
        high=np.where(later, 1e9, BARS.high),
        close=np.where(later, 5.0, BARS.close),
        volume=np.where(later, 7.0, BARS.volume),
        open=np.where(np.arange(200) > 121, 3.0, BARS.open),
    )
    for period in (HOUR_NS, 4 * HOUR_NS, DAY_NS):
        assert candles(moment(), period, 50) == candles(moment(bars=other), period, 50)


@pytest.mark.parametrize("hours", [1, 4, 12, 24])
def test_candles_that_are_over_are_the_longer_bars(hours):
    longer = resample(BARS.rows(0, 121), hours * HOUR_NS)
    found = candles(moment(), hours * HOUR_NS, 10)
    over = {one.open_ns: one for one in found if one.close_ns <= int(BARS.ts[121])}
    assert over
    for ts, one in over.items():
        row = int(np.flatnonzero(longer.ts == ts)[0])
        made = (one.open, one.high, one.low, one.close)
        wanted = tuple(getattr(longer, name)[row] for name in ("open", "high", "low", "close"))
        assert made == wanted
        assert one.volume == pytest.approx(longer.volume[row])


def test_the_newest_one_has_only_opened():
    newest = candles(moment(), HOUR_NS, 2)[-1]
    assert newest.open == newest.high == newest.low == newest.close == BARS.open[121]
    assert newest.volume == newest.trades == 0
    assert newest.open_ns == BARS.ts[121]


def test_start_gives_the_first_and_no_start_the_last():
    start = int(BARS.ts[10])
    first = candles(moment(), HOUR_NS, 3, start)
    assert [one.open_ns for one in first] == BARS.ts[10:13].tolist()
    assert [one.open_ns for one in candles(moment(), HOUR_NS, 3, start + 1)] == BARS.ts[
        11:14
    ].tolist()
    until = candles(moment(), HOUR_NS, 3, None, int(BARS.ts[20]))
    assert [one.open_ns for one in until] == BARS.ts[18:21].tolist()
    assert len(candles(moment(), HOUR_NS, 1000)) == 122
    assert candles(moment(), HOUR_NS, 5, int(BARS.ts[150])) == []
    some = candles(moment(), 4 * HOUR_NS, 2, START_NS + 2 * HOUR_NS)
    assert [one.open_ns for one in some] == [START_NS + 4 * HOUR_NS, START_NS + 8 * HOUR_NS]


def test_at_the_end_no_candle_is_open():
    last = len(BARS) - 1
    found = candles(Moment(BARS, last, float(BARS.close[-1])), HOUR_NS, 2)
    assert found[-1].close == BARS.close[-1]
    assert found[-1].volume > 0


def test_prints_go_through_the_whole_bar():
    for bar in range(20):
        found = prints(BARS, bar)
        prices = [one.price for one in found]
        assert prices[0] == BARS.open[bar]
        assert prices[-1] == BARS.close[bar]
        assert max(prices) == BARS.high[bar]
        assert min(prices) == BARS.low[bar]
        assert sum(one.qty for one in found) == pytest.approx(BARS.volume[bar])
        assert all(BARS.ts[bar] <= one.ts < BARS.ts[bar] + HOUR_NS for one in found)


def test_a_basket_moves_as_its_parts_do():
    other = replace(random_bars(200, 5, kind="spot"), instrument=Instrument(symbol="ETH/USDT"))
    both = basket([BARS, other])
    growth = 0.5 * (BARS.close / BARS.open[0] + other.close / other.open[0])
    assert both.close == pytest.approx(100.0 * growth)
    assert both.instrument.symbol == "BASKET/USDT"
    assert (both.high >= both.close).all()
    assert (both.low <= both.close).all()
    assert basket([BARS]) is BARS


def test_shifted_bars_say_so():
    moved = BARS.shifted(5 * HOUR_NS)
    assert (moved.ts - BARS.ts == 5 * HOUR_NS).all()
    assert moved.provenance.details["shifted_ns"] == 5 * HOUR_NS


@pytest.mark.parametrize("price", [0.00002, 0.7, 3.0, 180.0, 64_000.0])
def test_a_grid_is_fine_enough_for_its_price(price):
    made = Instrument().with_grid(price)
    assert 1e-8 <= made.tick <= 1e-3 * price
    assert made.lot * price <= 1.0
    given = Instrument(tick=0.5, lot=2.0).with_grid(price)
    assert (given.tick, given.lot) == (0.5, 2.0)
