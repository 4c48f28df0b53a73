"""The rows behind tables, charts, CSV and JSON: costs, round trips, where the side changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import HOUR_NS
from agent_gym.evaluation.tearsheet.sheet import Number, Sheet
from agent_gym.evaluation.tearsheet.thinning import Places

BPS, PERCENT = 1e4, 100.0
COST_PARTS = ("fees", "slippage", "funding")
DUST = 1e-9  # sums of quantities are not exact


@dataclass(frozen=True, slots=True)
class Cost:
    """One part of what trading cost, in money, of the value traded and of the gross profit."""

    name: str
    amount: float
    bps_of_traded: float | None
    share_of_gross: float | None


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run made before costs, what each part took and what was left."""

    before: float
    parts: tuple[Cost, ...]
    after: float


class Trip(NamedTuple):
    """A closed round trip as tables show it; ``net_pct`` is of the value at entry."""

    entry_ns: int
    exit_ns: int
    side: str
    qty: float
    entry_price: float
    exit_price: float
    hours: float
    gross: float
    fees: float
    net: float
    net_pct: float | None


def costs_of(sheet: Sheet) -> Costs | None:
    """Return the subject's costs; None if its figures do not tell them."""
    figures = sheet.figures[sheet.subject]
    amounts = [figures.get(name) for name in COST_PARTS]
    if any(amount is None for amount in amounts):
        return None
    paid = {name: float(amount or 0.0) for name, amount in zip(COST_PARTS, amounts, strict=True)}
    total, after = sum(paid.values()), float(sheet.curve[-1] - sheet.curve[0])
    traded = None
    if sheet.fills is not None:
        traded = float(np.sum(np.abs(sheet.fills["qty"]) * sheet.fills["price"]))
    share = figures.get("cost_share")
    # The share is the metric's own; each part has its part of it, so table and figure agree.
    parts = tuple(
        Cost(
            name,
            amount,
            BPS * amount / traded if traded else None,
            share * amount / total if share is not None and total else None,
        )
        for name, amount in (*paid.items(), ("all costs", total))
    )
    return Costs(after + total, parts, after)


def trips_of(sheet: Sheet) -> list[Trip]:
    """Return the closed round trips of the subject in the order in which they closed."""
    if sheet.trips is None:
        return []
    rows = sheet.trips
    value = rows["qty"] * rows["entry_price"]
    percent = PERCENT * np.divide(
        rows["net_pnl"], value, out=np.full(value.shape, np.nan), where=value > 0.0
    )
    columns = (
        rows["entry_ts"].tolist(),
        rows["exit_ts"].tolist(),
        np.where(rows["side"] > 0, "long", "short").tolist(),
        *(rows[name].tolist() for name in ("qty", "entry_price", "exit_price")),
        ((rows["exit_ts"] - rows["entry_ts"]) / HOUR_NS).tolist(),
        *(rows[name].tolist() for name in ("gross_pnl", "fees", "net_pnl")),
        [each if np.isfinite(each) else None for each in percent.tolist()],
    )
    return [Trip(*row) for row in zip(*columns, strict=True)]


def turns(fills: NDArray[Any]) -> Places:
    """Return the fills that open, close or turn the position."""
    held = np.cumsum(fills["qty"])
    held[np.abs(held) <= DUST * np.abs(fills["qty"]).max(initial=0.0)] = 0.0
    return np.flatnonzero(np.diff(np.sign(held), prepend=0.0))


def exposure_pct(sheet: Sheet) -> NDArray[np.float64] | None:
    """Return the signed position in percent of equity at each mark; None if it is not known."""
    if sheet.position is None or sheet.bars is None or len(sheet.bars) != sheet.ts.size:
        return None
    value = sheet.position * sheet.bars.close
    out = np.zeros_like(value)
    held: NDArray[np.float64] = np.divide(value, sheet.curve, out=out, where=sheet.curve > 0.0)
    return PERCENT * held


def figure_rows(sheet: Sheet) -> list[tuple[str, dict[str, Number]]]:
    """Return name and value by arm of each figure that an arm has, in the order of the sheet."""
    names = dict.fromkeys(each.name for each in sheet.shown)  # once, if it is listed twice
    held = [name for name in names if any(name in known for known in sheet.figures.values())]
    return [(name, {arm: known.get(name) for arm, known in sheet.figures.items()}) for name in held]
