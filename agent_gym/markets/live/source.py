"""An exchange as a market that a config can name: ``use: exchange``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.cache import BarCache
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.loader import MarketDataLoader
from agent_gym.markets.live.wanted import Gaps
from agent_gym.markets.readers import parse_time


class ExchangeMarketConfig(LiveConfig):
    """Which bars of which exchange; with a cache they are fetched once."""

    period: str = Field(default="1h", description="bar period such as 1m")
    start: str = Field(description="first open time, ISO (a date is its midnight UTC)")
    end: str = Field(description="last open time, ISO (a date is its midnight UTC)")
    gaps: Gaps = Field(default="raise", description="whether missing bars are an error")
    cache: Path | None = Field(default=None, description="directory that keeps fetched months")


class ExchangeMarket:
    """Hands out real bars; the seeds change nothing, as the past is what it was."""

    def __init__(self, config: ExchangeMarketConfig) -> None:
        self._config = config

    def bars(self, seeds: Seeds) -> Bars:
        """Return the bars, from the cache or the exchange, or raise DataError."""
        config = self._config
        cache = None if config.cache is None else BarCache(config.cache, sandbox=config.sandbox)
        span = parse_time(config.start), parse_time(config.end)
        with MarketDataLoader(config, cache=cache) as loader:
            return loader.fetch_ohlcv(config.period, *span, gaps=config.gaps)


@register("market", "exchange", ExchangeMarketConfig)
def exchange_market(config: ExchangeMarketConfig) -> ExchangeMarket:
    """Return the market for its config."""
    return ExchangeMarket(config)
