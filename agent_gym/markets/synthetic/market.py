"""Make a market from a preset and a seed: bars for agents, and the truth kept apart from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.periods import parse_period
from agent_gym.markets.synthetic import price_kernel as price
from agent_gym.markets.synthetic.activity import draw_segments
from agent_gym.markets.synthetic.config import GeneratorConfig
from agent_gym.markets.synthetic.tables import flow_trades, walk_prices
from agent_gym.markets.synthetic.truth import MarketTruth, name_regimes


@dataclass(frozen=True, slots=True)
class SyntheticMarket:
    """A generated market: what agents may read, and what only judges may."""

    bars: Bars
    truth: MarketTruth


def generate(config: GeneratorConfig, seeds: Seeds) -> SyntheticMarket:
    """Generate a market; the same config and seeds give the same bits.

    A longer series begins with the shorter one, in every column of bars and of truth but one: the
    regime names are given in hindsight, so that of the last segment may change.

    Example:
        >>> market = generate(GeneratorConfig(n_bars=3), Seeds(1))
        >>> len(market.bars), market.bars.instrument.symbol
        (3, 'BTC/USDT:USDT')
    """
    parameters = config.parameters()
    period_ns = parse_period(parameters.period)
    if config.start_ns % period_ns:
        raise ConfigError(
            "bars must open on multiples of their period",
            where="start_ns",
            found=config.start_ns,
            expected=f"a multiple of {period_ns}",
        )
    most = (np.iinfo(np.int64).max - config.start_ns) // period_ns
    if config.n_bars > most:
        raise ConfigError(
            "so many bars end after the year 2262, which no time in nanoseconds can say",
            where="n_bars",
            found=config.n_bars,
            expected=f"at most {most}",
            remedy="Ask for fewer bars",
        )
    ts = config.start_ns + period_ns * np.arange(config.n_bars, dtype=np.int64)
    key = seeds.child("activity").as_uint64()
    segments = draw_segments(key, ts.size, period_ns / MINUTE_NS, parameters.activity)
    walked, spread = walk_prices(config, parameters, seeds, ts, segments)
    flow = flow_trades(parameters, seeds, ts, walked)
    sigma = np.exp(parameters.volatility.level + walked[price.HEAT])
    planned = any(strength != 0.0 for strength in config.drift)
    bars = Bars(
        instrument=parameters.instrument,
        period_ns=period_ns,
        ts=ts,
        open=walked[price.OPEN].copy(),
        high=walked[price.HIGH].copy(),
        low=walked[price.LOW].copy(),
        close=walked[price.CLOSE].copy(),
        volume=flow["volume"],
        extra={
            "trades": flow["trades"],
            "taker_buy": flow["taker_buy"],
            "spread": spread,
            "funding": walked[price.FUNDING].copy(),
        },
        provenance=_provenance(config, seeds),
    )
    truth = MarketTruth(
        ts=ts,
        activity=segments.activity,
        regime=name_regimes(segments, walked[price.SHOCK], sigma, planned=planned),
        sigma=sigma,
        drift=walked[price.DRIFT].copy(),
        direction=segments.direction,
        jump=walked[price.JUMPED] != 0.0,
    )
    return SyntheticMarket(bars, truth)


def _provenance(config: GeneratorConfig, seeds: Seeds) -> Provenance:
    return Provenance(
        source="synthetic",
        origin=f"synthetic/{config.preset}",
        details={
            "config": config.model_dump(mode="json"),
            "seed": seeds.root,
            "seed_path": list(seeds.path),
        },
    )
