"""Signals as a desk gets them: good ones, and bad ones of which it is known what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.scenarios.desk_market import START_NS, seconds

_C = RejectCode
SPACING_NS = 12 * SECOND_NS  # good signals of one kind keep this distance, so none is a near copy

SIGNAL_FLAWS: dict[str, RejectCode] = {
    "missing_field": _C.SCHEMA_MISSING_FIELD,
    "bad_type": _C.SCHEMA_BAD_TYPE,
    "out_of_range": _C.SCHEMA_OUT_OF_RANGE,
    "unknown_symbol": _C.SCHEMA_UNKNOWN_SYMBOL,
    "unknown_strategy": _C.SCHEMA_UNKNOWN_STRATEGY,
    "other_version": _C.SCHEMA_VERSION_UNSUPPORTED,
    "future": _C.TIME_FUTURE_TIMESTAMP,
    "near_duplicate": _C.DUP_NEAR_DUPLICATE,
    "oversized": _C.RISK_EXPOSURE_LIMIT,
    "dust": _C.RISK_MIN_NOTIONAL,
}
VIEW_FLAWS: dict[str, RejectCode] = {
    "risk_too_high": _C.RISK_VAR_LIMIT,
    "deep_drawdown": _C.RISK_DRAWDOWN_BREAKER,
    "wide_spread": _C.MARKET_SPREAD_TOO_WIDE,
    "wild_market": _C.MARKET_VOLATILITY_HALT,
    "thin_market": _C.MARKET_NO_LIQUIDITY,
    "old_price": _C.MARKET_DATA_STALE,
    "closed_market": _C.MARKET_MARKET_CLOSED,
    "kill_switch": _C.OPS_KILL_SWITCH,
    "maintenance": _C.OPS_MAINTENANCE,
}
FLAWS = SIGNAL_FLAWS | VIEW_FLAWS
FIELD_FLAWS: dict[str, dict[str, Any]] = {
    "unknown_strategy": {"strategy": "astrology"},
    "other_version": {"schema_version": 99},
}
PARAM_FLAWS: dict[str, dict[str, Any]] = {
    "missing_field": {"amount": None},
    "bad_type": {"amount": "a lot"},
    "unknown_symbol": {"base": "TULIP"},
}
FACTORS = {"out_of_range": -1.0, "oversized": 4_000.0, "dust": 1e-6}
RISK_FLAWS = (
    "oversized",
    "risk_too_high",
    "deep_drawdown",
)  # only what opens a position breaks them
NEAR_S = 6.0
SLOWEST_S = 0.8  # a signal is on its way to the desk for up to this long
FLOOD = "flood"
FLOOD_ALLOWED, FLOOD_SIZE, FLOOD_STEP_NS = 60, 72, 3 * SECOND_NS // 4


class Arrival(NamedTuple):
    """One signal at the desk's door.

    ``expected`` is the code it must be refused with, None if it must be accepted. ``flaw`` names
    what is wrong; those of VIEW_FLAWS lie in the market or the account, not in the signal.
    """

    time_ns: int
    row: int
    raw: dict[str, Any]
    expected: RejectCode | None
    flaw: str = ""


class Mixture(NamedTuple):
    """How many signals come, and which shares of them are bad; see the scenario's parameters."""

    hours: float
    rate_per_hour: float
    burst_factor: float
    burst_prob: float
    invalid_share: float
    dup_share: float
    stale_share: float
    strategies: Mapping[str, float]
    floods: int


class SignalStream:
    """Draws the arrivals of one episode.

    Args:
        mixture: What comes.
        prices: Price of each symbol for each minute. The last symbol is kept free of good signals,
            so that whatever is sent for it would open a position.
        equity: What sizes are a share of.
        seeds: Where it is drawn from.
    """

    def __init__(
        self, mixture: Mixture, prices: Mapping[str, FloatArray], equity: float, seeds: Seeds
    ) -> None:
        self._mixture = mixture
        self._prices = {symbol: price.tolist() for symbol, price in prices.items()}
        self._symbols, self._reserved = tuple(prices)[:-1], tuple(prices)[-1:]
        self._equity = equity
        self._seeds = seeds
        self._last: dict[tuple[str, str, str], int] = {}
        self._good: list[Arrival] = []
        self._stamps: dict[tuple[str, str, str], list[float]] = {}

    def draw(self) -> list[Arrival]:
        """Return all arrivals by time."""
        times = self._times()
        # One row of numbers a signal, so that a signal draws alike whatever came before it.
        draws = self._seeds.child("signals").rng().random((len(times), 9)).tolist()
        arrivals = [self._arrival(i, times[i], draws[i]) for i in range(len(times))]
        arrivals += self._floods(len(times))
        return sorted(arrivals, key=lambda arrival: (arrival.time_ns, arrival.row))

    def _times(self) -> list[int]:
        mixture, rng = self._mixture, self._seeds.child("arrivals").rng()
        minutes = max(1, round(60 * mixture.hours))
        rate = np.full(minutes, mixture.rate_per_hour / 60.0)
        rate[rng.random(minutes) < mixture.burst_prob] *= mixture.burst_factor
        counts = rng.poisson(rate)
        within = rng.integers(0, MINUTE_NS, int(counts.sum()))
        starts = np.repeat(START_NS + MINUTE_NS * np.arange(minutes, dtype=np.int64), counts)
        times: list[int] = np.sort(starts + within).tolist()
        return times

    def _arrival(self, row: int, time_ns: int, draws: list[float]) -> Arrival:
        mixture, kind = self._mixture, draws[0]
        if kind < mixture.dup_share and self._good:
            first = self._good[-1]
            again_ns = first.time_ns + round((1.0 + 19.0 * draws[1]) * SECOND_NS)
            return Arrival(again_ns, row, first.raw, _C.DUP_DUPLICATE_ID, "duplicate")
        kind -= mixture.dup_share
        invalid = 0.0 <= kind - mixture.stale_share < mixture.invalid_share
        flaw = tuple(FLAWS)[int(draws[1] * len(FLAWS))] if invalid else ""
        symbols = self._reserved if flaw in RISK_FLAWS else self._symbols
        key = self._key(time_ns, symbols, draws[2:5])
        raw = self._signal(row, time_ns, key, draws[5:8])
        if 0.0 <= kind < mixture.stale_share:
            raw["timestamp"] -= self._age_s(key, raw["timestamp"], draws[1])
            return Arrival(time_ns, row, raw, _C.TIME_STALE, "stale")
        if invalid:
            return self._flawed(Arrival(time_ns, row, raw, FLAWS[flaw], flaw), draws[8])
        good = Arrival(time_ns, row, raw, None)
        self._good.append(good)
        self._stamps.setdefault(key, []).append(raw["timestamp"])
        return good

    def _age_s(self, key: tuple[str, str, str], stamp: float, draw: float) -> float:
        """Return how old a stale signal is, so that it is not by chance a near copy of another."""
        ages = [40.0 + 260.0 * ((draw + 0.1 * turn) % 1.0) for turn in range(10)]
        recent = [other for other in self._stamps.get(key, []) if stamp - other < 310.0]
        clear = (a for a in ages if all(abs(stamp - a - other) > NEAR_S for other in recent))
        return next(clear, ages[0])

    def _floods(self, row: int) -> list[Arrival]:
        """Return bursts of one strategy that go over its rate; what is over must be refused.

        Sides and symbols take turns, so that no signal is a near copy of another.
        """
        rng = self._seeds.child("floods").rng()
        last_ns = max(0, round(60 * self._mixture.hours) - 2) * MINUTE_NS
        turns = [(symbol, side) for side in ("buy", "sell") for symbol in self._symbols]
        arrivals = []
        for start in rng.integers(0, last_ns + 1, self._mixture.floods).tolist():
            draws = rng.random((FLOOD_SIZE, 3)).tolist()
            for i in range(FLOOD_SIZE):
                time_ns = START_NS + start + i * FLOOD_STEP_NS
                raw = self._signal(row, time_ns, (FLOOD, *turns[i % len(turns)]), draws[i])
                expected = None if i < FLOOD_ALLOWED else _C.DUP_RATE_LIMITED
                arrivals.append(Arrival(time_ns, row, raw, expected, FLOOD if expected else ""))
                row += 1
        return arrivals

    def _signal(
        self, row: int, time_ns: int, key: tuple[str, str, str], draws: list[float]
    ) -> dict[str, Any]:
        strategy, symbol, side = key
        minute = min((time_ns - START_NS) // MINUTE_NS, len(self._prices[symbol]) - 1)
        price = self._prices[symbol][minute]
        base, _, quote = symbol.partition("/")
        return {
            "signal_id": f"s{row:06d}",
            "strategy": strategy,
            "params": {
                "amount": self._equity * (0.0005 + 0.0035 * draws[0]) / price,
                "base": base,
                "quote": quote,
                "side": side,
                "confidence": 0.55 + 0.4 * draws[1],
            },
            "timestamp": seconds(time_ns) - SLOWEST_S * draws[2],
        }

    def _key(
        self, time_ns: int, symbols: tuple[str, ...], draws: list[float]
    ) -> tuple[str, str, str]:
        """Return strategy, symbol and side that have not been used for a while."""
        shares, left = self._mixture.strategies, draws[0]
        total = sum(shares.values())
        names = tuple(shares)
        strategy = names[-1]
        for name in names:
            left -= shares[name] / total
            if left < 0.0:
                strategy = name
                break
        sides = ("buy", "sell") if draws[2] < 0.5 else ("sell", "buy")
        first = int(draws[1] * len(symbols))
        turned = symbols[first:] + symbols[:first]
        begin = names.index(strategy)
        keys = (
            (name, symbol, side)
            for name in names[begin:] + names[:begin]
            for side in sides
            for symbol in turned
        )
        key = next(
            (k for k in keys if time_ns - self._last.get(k, -SPACING_NS) >= SPACING_NS),
            (strategy, turned[0], sides[0]),
        )
        self._last[key] = time_ns
        return key

    def _flawed(self, arrival: Arrival, draw: float) -> Arrival:
        if arrival.flaw == "near_duplicate":
            return self._near(arrival, draw)
        raw = arrival.raw
        if arrival.flaw in FACTORS:
            raw["params"]["amount"] *= FACTORS[arrival.flaw]
        elif arrival.flaw in PARAM_FLAWS:
            raw["params"].update(PARAM_FLAWS[arrival.flaw])
        elif arrival.flaw in FIELD_FLAWS:
            raw.update(FIELD_FLAWS[arrival.flaw])
        elif arrival.flaw == "future":
            raw["timestamp"] += 5.0 + 55.0 * draw
        return arrival

    def _near(self, arrival: Arrival, draw: float) -> Arrival:
        """Return a signal just behind a good one and just like it, under another id."""
        if not self._good:
            return arrival._replace(expected=None, flaw="")
        first = self._good[-1]
        time_ns = first.time_ns + round((0.5 + 3.0 * draw) * SECOND_NS)
        raw = {**arrival.raw, "strategy": first.raw["strategy"], "timestamp": seconds(time_ns)}
        raw["params"] = {**first.raw["params"], "amount": arrival.raw["params"]["amount"]}
        return arrival._replace(time_ns=time_ns, raw=raw)
