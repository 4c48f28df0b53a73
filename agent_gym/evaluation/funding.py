"""Which funding a run was charged: facts for its manifest, and the same in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent_gym.exchange.costs import Costs
from agent_gym.exchange.tape import funding_rates
from agent_gym.markets.bars import Bars


def funding_facts(bars: Bars, costs: Costs) -> dict[str, Any]:
    """Return whether funding falls due, where its rates come from and what stood in for others.

    ``rates`` is the file that the rates were read from, ``bars`` if the series came with them, and
    None where none are known. ``bars_as_zero`` counts the bars that trade without funding because
    their rate is not known.
    """
    if bars.instrument.kind != "perpetual":
        return {"due": False}
    unknown = int(np.count_nonzero(~np.isfinite(funding_rates(bars))))
    origin = bars.provenance.details.get("funding", {}).get("origin", "bars")
    return {
        "due": True,
        "rates": None if unknown == len(bars) else origin,
        "missing_funding": costs.missing_funding,
        "bars_as_zero": unknown,
    }


def funding_words(facts: Mapping[str, Any], n_bars: int) -> str:
    """Return the facts as a person reads them.

    Example:
        >>> funding_words({"due": True, "rates": None, "bars_as_zero": 9}, 9)
        'none charged: no rates are known, and zero was asked for'
    """
    if not facts["due"]:
        return "none is due"
    if facts["rates"] is None:
        return "none charged: no rates are known, and zero was asked for"
    source = "the bars" if facts["rates"] == "bars" else facts["rates"]
    lacking = facts["bars_as_zero"]
    if not lacking:
        return f"charged at the rates of {source}"
    return f"charged at the rates of {source}, and zero for {lacking:,} of {n_bars:,} bars"
