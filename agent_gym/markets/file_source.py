"""A file as a market that a config can name: ``use: file``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument, InstrumentKind
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT


class FileMarketConfig(ReadRequest):
    """Which bars of which file, how it is to be understood and what may be repaired.

    A file seldom says what it holds; ``symbol``, ``exchange`` and ``kind`` say it for the file, but
    cannot contradict it.
    """

    path: Path = Field(description="CSV, Parquet or Feather file of bars")
    symbol: str | None = Field(default=None, description="what is traded, such as BTC/USDT")
    exchange: str | None = Field(default=None, description="where it is traded")
    kind: InstrumentKind | None = Field(default=None, description="what sort of instrument it is")

    def request(self) -> ReadRequest:
        """Return what the reader is asked for."""
        return ReadRequest(**{name: getattr(self, name) for name in ReadRequest.model_fields})


class FileMarket:
    """Hands out the bars of a file; the seeds change nothing, as the past is what it was."""

    def __init__(self, config: FileMarketConfig) -> None:
        self._config = config

    def bars(self, seeds: Seeds) -> Bars:
        """Return the bars, checked, or raise; a file or span that is not there is a ConfigError."""
        return _named(read_bars(self._config.path, request=self._config.request()), self._config)


def _named(bars: Bars, config: FileMarketConfig) -> Bars:
    said: dict[str, Any] = {
        name: getattr(config, name)
        for name in ("symbol", "exchange", "kind")
        if getattr(config, name) is not None
    }
    known = bars.instrument
    wrong = {name: value for name, value in said.items() if getattr(known, name) != value}
    if not wrong:
        return bars
    if known != UNKNOWN_INSTRUMENT:
        raise ConfigError(
            "the file says that it holds something else",
            where=str(config.path),
            found=", ".join(f"{name} {getattr(known, name)}" for name in wrong),
            expected=", ".join(f"{name} {value}" for name, value in wrong.items()),
            remedy="Leave these out to take what the file says",
        )
    return replace(bars, instrument=Instrument(**(known.model_dump() | said)))


@register("market", "file", FileMarketConfig)
def file_market(config: FileMarketConfig) -> FileMarket:
    """Return the bars of a file of your own."""
    return FileMarket(config)
