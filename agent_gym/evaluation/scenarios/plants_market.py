"""Faults of markets, venues and agents' lines that are put in on purpose.

A plant changes one thing behind the scenario's back: the venue that trades (not the one that was
stated), the market that the venue settles by, or the line between agent and venue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import Struct

from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.scenarios.market_line import Wiring
from agent_gym.evaluation.scenarios.plant import Plant
from agent_gym.markets.bars import Bars

TYPES = ("flash_crash", "price_gap", "funding_spike", "feed_outage", "thin_book")
OUTSIZE = 25.0


def _same_config(config: BacktestConfig) -> BacktestConfig:
    return config


def _same_bars(bars: Bars) -> Bars:
    return bars


def _same_wiring(wiring: Wiring) -> Wiring:
    return wiring


class Tampering(Struct, frozen=True):
    """What a plant changes."""

    venue: Callable[[BacktestConfig], BacktestConfig] = _same_config
    market: Callable[[Bars], Bars] = _same_bars
    line: Callable[[Wiring], Wiring] = _same_wiring


def _scaled(name: str, factor: float) -> Callable[[BacktestConfig], BacktestConfig]:
    def change(config: BacktestConfig) -> BacktestConfig:
        value: float | None = getattr(config, name)
        return config.model_copy(update={} if value is None else {name: value * factor})

    return change


def _funding(factor: float) -> Callable[[Bars], Bars]:
    def change(bars: Bars) -> Bars:
        return replace(bars, extra={**bars.extra, "funding": bars.extra["funding"] * factor})

    return change


def _one_bar_late(config: BacktestConfig) -> BacktestConfig:
    return config.model_copy(update={"latency_bars": config.latency_bars + 1})


def _fat_finger(config: BacktestConfig) -> BacktestConfig:
    size, leverage = config.position_size * OUTSIZE, config.max_leverage * OUTSIZE
    return config.model_copy(update={"position_size": size, "max_leverage": leverage})


def _wired(**changes: object) -> Callable[[Wiring], Wiring]:
    def change(wiring: Wiring) -> Wiring:
        told = {name: getattr(wiring, name) for name in wiring.__struct_fields__}
        return Wiring(**{**told, **changes})

    return change


def _everywhere(*metrics: str) -> tuple[str, ...]:
    return tuple(f"{kind}/{metric}" for kind in TYPES for metric in metrics)


_ALL: tuple[tuple[Plant, Tampering], ...] = (
    (
        Plant(
            "market_fee_doubled",
            "the venue charges twice the taker fee",
            "venue",
            _everywhere("costs_paid", "ledger_gap_bp"),
        ),
        Tampering(venue=_scaled("taker_bps", 2.0)),
    ),
    (
        Plant(
            "market_slippage_tripled",
            "every fill slips three times as far",
            "venue",
            _everywhere("costs_paid"),
        ),
        Tampering(venue=_scaled("slippage_bps", 3.0)),
    ),
    (
        Plant(
            "market_impact_tripled",
            "an order moves the price three times as far",
            "venue",
            ("thin_book/costs_paid",),
        ),
        Tampering(venue=_scaled("impact", 3.0)),
    ),
    (
        Plant(
            "market_fills_starved",
            "the venue gives an order a tenth of the volume that it should",
            "venue",
            ("thin_book/wrong_side_share",),
        ),
        Tampering(venue=_scaled("participation", 0.1)),
    ),
    (
        Plant(
            "market_orders_late",
            "decisions reach the venue a bar late",
            "venue",
            _everywhere("wrong_side_share"),
        ),
        Tampering(venue=_one_bar_late),
    ),
    (
        Plant(
            "market_size_too_large",
            "positions are a tenth larger than asked for",
            "venue",
            _everywhere("gross_exposure"),
        ),
        Tampering(venue=_scaled("position_size", 1.1)),
    ),
    (
        Plant(
            "market_fat_finger",
            "positions are 25 times as large as asked for",
            "venue",
            ("flash_crash/liquidations", "flash_crash/gross_exposure"),
        ),
        Tampering(venue=_fat_finger),
    ),
    (
        Plant(
            "market_funding_ignored",
            "no funding is settled",
            "market",
            _everywhere("ledger_gap_bp"),
        ),
        Tampering(market=_funding(0.0)),
    ),
    (
        Plant(
            "market_funding_flipped",
            "those who should receive funding pay it",
            "market",
            _everywhere("ledger_gap_bp"),
        ),
        Tampering(market=_funding(-1.0)),
    ),
    (
        Plant(
            "market_sign_flipped",
            "the account buys what the agent wanted to sell",
            "venue",
            _everywhere("wrong_side_share"),
        ),
        Tampering(line=_wired(sign=-1.0)),
    ),
    (
        Plant(
            "market_future_shown",
            "the agent is shown the prices of the bar that comes next",
            "market",
            _everywhere("causality_breaks"),
        ),
        Tampering(line=_wired(peek=True)),
    ),
    (
        Plant(
            "market_stale_as_fresh",
            "while the feed is down the last row is served as if it were new",
            "market",
            ("feed_outage/trades_in_outage",),
        ),
        Tampering(line=_wired(feed="stale_as_fresh")),
    ),
)
MARKET_PLANTS: Mapping[str, Plant] = {plant.name: plant for plant, _ in _ALL}
_TAMPERINGS: Mapping[str, Tampering] = {plant.name: changes for plant, changes in _ALL}


def tampering_of(plant: str | None) -> Tampering:
    """Return what a plant changes in a market scenario; one of another room changes nothing."""
    return _TAMPERINGS.get(plant or "", Tampering())
