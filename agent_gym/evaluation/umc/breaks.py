"""Gate D: what is lost when the edge ends, in days of the edge that was.

After the break the market is a fair game: whatever is held earns nothing on average, and what is
lost is what was paid. So costs are the expected loss, without the luck that is many times as large;
the gate stands on them, and on the gross gain of all paths, whose interval must hold 0. The plain
loss is shown beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from typing_extensions import override

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import configure
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.protocol.failures import failed_row, failure_of, placed
from agent_gym.evaluation.protocol.pnl import BP, bar_pnl
from agent_gym.evaluation.protocol.seed_job import SeedJob
from agent_gym.evaluation.statistics import Interval, seeds_interval
from agent_gym.evaluation.umc.courses import seed_job
from agent_gym.evaluation.umc.figure import GateFigure, failed, measured, ratio
from agent_gym.evaluation.umc.plan import COURSES, GatesPlan, Judged, Letter
from agent_gym.markets.known.config import BreakConfig
from agent_gym.rollouts.jobs import Job

B1 = "b1"
WINDOWS = (10, 30, 60)  # days after the break, between which the exposure is told


class BreakJob(SeedJob):
    """One path of a market whose drift ends in the middle of the test."""

    @override
    def run(self) -> dict[str, Any]:
        """Trade the path and tell what came before the break and after it."""
        _, bars = self.drawn()
        ledger, (arm, *_) = self.ledger(bars), self.arms
        row = {"status": "ok", "seed": self.seed, "fingerprint": bars.fingerprint}
        try:
            pnl = bar_pnl(ledger.trade(arm.label, ledger.decide(arm)))
        except AgentError as error:
            return row | failed_row(placed(error, f"seed {self.seed}"))
        market = configure(BreakConfig, self.market.params, where=self.market.use)
        # Row i of what bars brought is that of the bar after row ``first + i``.
        cut = max(0, market.break_bar - ledger.first - 1)
        size = np.abs(pnl.exposure[cut:])
        per_day = DAY_NS // bars.period_ns
        edges = [0, *(days * per_day for days in WINDOWS), size.size]
        return row | {
            "bars_per_day": per_day,
            "bars_before": cut,
            "bars_after": int(size.size),
            "net_bp_before": float(BP * pnl.net[:cut].mean()),
            "net_bp_after": float(BP * pnl.net[cut:].sum()),
            "paid_bp_after": float(BP * (pnl.gross - pnl.net)[cut:].sum()),
            "exposure_before": float(np.abs(pnl.exposure[:cut]).mean()),
            "exposure_after": [
                float(part.mean()) if part.size else None
                for part in (size[a:b] for a, b in pairwise(edges))
            ],
        }


class Break:
    """Gate D."""

    letters: tuple[Letter, ...] = ("D",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return every path."""
        course = COURSES[B1]
        return {
            f"{B1}, seed {seed}": BreakJob(**dict(seed_job(plan, course, seed)))
            for seed in plan.numbers(course.times)
        }

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Hold the loss against the edge before it."""
        names = ("D.costs", "D.net_loss", "D.gross")
        why = next((error for error in map(failure_of, rows) if error is not None), None)
        details = {B1: {key: [row.get(key) for row in rows] for key in rows[0]}}
        if why is not None:
            return Judged({name: failed(name, len(rows), str(why)) for name in names}, details)
        edge = _column(rows, "net_bp_before")
        per_day = float(rows[0]["bars_per_day"])
        seeds = Seeds(plan.first_seed).child("gates", B1)
        if not edge.mean() > 0.0:
            words = f"there was no edge before the break: {edge.mean():.3f} bp a bar"
            return Judged({name: failed(name, len(rows), words) for name in names}, details)
        paid, lost = _column(rows, "paid_bp_after"), -_column(rows, "net_bp_after")
        words = f"{paid.mean():.1f} bp paid after the break, {edge.mean():.3f} bp a bar before it"
        figures: dict[str, GateFigure] = {
            "D.costs": ratio("D.costs", (paid / per_day, edge), seeds.child("paid"), words),
            "D.net_loss": ratio(
                "D.net_loss", (lost / per_day, edge), seeds.child("lost"), held(rows)
            ),
            "D.gross": measured("D.gross", _gross(rows, seeds.child("gross")), len(rows)),
        }
        return Judged(figures, details)


def _gross(rows: Sequence[dict[str, Any]], seeds: Seeds) -> Interval:
    """Return what a bar after the break brought before costs, bp, over paths."""
    gained = _column(rows, "net_bp_after") + _column(rows, "paid_bp_after")
    return seeds_interval(gained / _column(rows, "bars_after"), seeds)


def held(rows: Sequence[dict[str, Any]]) -> str:
    """Return how much was held before the break and how soon less was held after it, in words."""
    later = [row["exposure_after"] for row in rows if None not in row["exposure_after"]]
    before = f"mean size held {_column(rows, 'exposure_before').mean():.2f} before the break"
    if not later:
        return before
    spans = [*(f"to day {day}" for day in WINDOWS), "later"]
    after = (f"{size:.2f} {span}" for size, span in zip(np.mean(later, axis=0), spans, strict=True))
    return f"{before}; after it {', '.join(after)}"


def _column(rows: Sequence[dict[str, Any]], name: str) -> FloatArray:
    return np.array([row[name] for row in rows], dtype=np.float64)
