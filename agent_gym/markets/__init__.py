"""Room: markets. Where prices come from.

Belongs here: instruments, bars, readers and writers, quality checks and repairs, live sources
(CCXT), causal features and indicators, synthetic generators.
May import: core.
Hands on: ``Bars`` that have been checked, feature tables, generated markets with their truth.
"""

from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.periods import bars_per_year, format_period, parse_period

__all__ = ["Bars", "Instrument", "Provenance", "bars_per_year", "format_period", "parse_period"]
