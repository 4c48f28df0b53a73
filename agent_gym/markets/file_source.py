"""A file as a market that a config can name: ``use: file``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument, InstrumentKind
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers import ReadRequest, read_bars, read_raw
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
        config = self._config
        if not config.path.is_file():
            found = "a directory" if config.path.is_dir() else "no such file"
            raise ConfigError("there is no market file here", where=str(config.path), found=found)
        try:
            bars = read_bars(config.path, request=config.request())
        except DataError as error:
            _check_span(config, error)
            raise
        return _named(bars, config)


def _check_span(config: FileMarketConfig, error: DataError) -> None:
    """Raise ConfigError if the file was refused because it has no bar in the asked span."""
    span = config.expected()
    if span.start_ns is None and span.end_ns is None:
        return
    anything = config.request().model_copy(update={"start": None, "end": None})
    bars = read_raw(config.path, request=anything).bars
    first, last = int(bars.ts.min()), int(bars.ts.max())
    early = span.end_ns is not None and span.end_ns < first
    if early or (span.start_ns is not None and span.start_ns > last):
        raise ConfigError(
            "no bar of the file lies in the asked span",
            where=str(config.path),
            found=f"bars from {format_time(first)} to {format_time(last)}",
            remedy="Ask for a start and an end within the file",
        ) from error


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
        )
    return replace(bars, instrument=Instrument(**(known.model_dump() | said)))


@register("market", "file", FileMarketConfig)
def file_market(config: FileMarketConfig) -> FileMarket:
    """Return the bars of a file of your own."""
    return FileMarket(config)
