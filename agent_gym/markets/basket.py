"""Several markets as one: an index that begins at 100 and gives each the same weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.instrument import Instrument

START = 100.0


def basket(markets: Sequence[Bars]) -> Bars:
    """Return the index of markets over the same times; a single one is returned as it is.

    Highs and lows are those of the parts, so the index may not have been there. Its volume is the
    worth of what was traded, in units of the index.

    Example:
        >>> one = Bars(Instrument(), 1, np.arange(2), *[np.array([2.0, 4.0])] * 5)
        >>> two = Bars(Instrument(), 1, np.arange(2), *[np.array([5.0, 5.0])] * 5)
        >>> basket([one, two]).close.tolist()
        [100.0, 150.0]
    """
    first = markets[0]
    if len(markets) == 1:
        return first
    columns = {
        name: np.mean([START * getattr(bars, name) / bars.open[0] for bars in markets], axis=0)
        for name in ("open", "high", "low", "close")
    }
    worth = np.sum([bars.volume * bars.close for bars in markets], axis=0)
    names = [bars.instrument.symbol for bars in markets]
    return Bars(
        Instrument(symbol=f"BASKET/{first.instrument.quote}", exchange=first.instrument.exchange),
        first.period_ns,
        first.ts,
        volume=worth / columns["close"],
        provenance=Provenance(origin=" + ".join(names), details={"basket": names}),
        **columns,
    )
