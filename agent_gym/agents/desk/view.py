"""What the desk knows at one moment: prices, holdings and whether it may trade at all."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Quote(Struct, frozen=True):
    """The market of one symbol; ``volatility`` is the standard deviation of an hour's return."""

    timestamp: float
    bid: float
    ask: float
    volume_per_hour: float
    volatility: float
    is_open: bool = True

    @property
    def mid(self) -> float:
        """Return the price between bid and ask."""
        return 0.5 * (self.bid + self.ask)

    @property
    def spread_bp(self) -> float:
        """Return ask over bid, in basis points of the mid."""
        return 1e4 * (self.ask - self.bid) / self.mid


class Holdings(Struct, frozen=True):
    """The account: ``positions`` in units by symbol (short is negative); drawdown from the peak.

    ``value_at_risk`` is the share of equity lost in one of a hundred days.
    """

    equity: float
    cash: float
    positions: Mapping[str, float]
    exposure: float
    drawdown: float
    value_at_risk: float = 0.0


class DeskView(Struct, frozen=True):
    """All that a decision may rest on; ``now`` is epoch seconds.

    ``correlations`` holds, by symbol and other symbol, the correlation of their returns; a pair
    that is not there (either way round) is not judged.
    """

    now: float
    quotes: Mapping[str, Quote]
    holdings: Holdings
    kill_switch: bool = False
    maintenance: bool = False
    correlations: Mapping[str, Mapping[str, float]] = {}


def is_closing(held: float, traded: float) -> bool:
    """Return whether a trade only closes what is held (signed units both).

    Example:
        >>> is_closing(1.0, -1.0), is_closing(1.0, -1.5), is_closing(-5e-324, 5e-324)
        (True, False, True)
    """
    return (0.0 < -traded <= held) or (0.0 < traded <= -held)
