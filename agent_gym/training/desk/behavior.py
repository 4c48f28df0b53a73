"""BehaviorReport: what the desk did in a window, how sure that is, and what to look at."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class BehaviorReport:
    """Figures of a window; None where one is not defined.

    Attributes:
        n_signals: Messages that came in, read or not.
        acceptance_rate: Share that was not refused, with Wilson's interval.
        rejections: By code: n, share, wilson_ci, trend_p (corrected over the codes).
        by_strategy: By strategy: n, acceptance_rate, the codes met.
        top_patterns: Traits that meet a code more often than chance, corrected.
        signal_trends: Counts over time and whether they or the acceptance rate move.
        latency: Filter and agents: p50, p95, p99 in milliseconds.
        pnl: Mean net profit of a traded signal over the horizon, with an interval.
        missed_value: By code: what refused signals would have earned.
        drift: What moved between the first and the second half.
        market: By symbol: volatility of an hour's return, spread in basis points.
        recommendations: Each a text and its evidence.
    """

    window: dict[str, float]
    n_signals: int
    acceptance_rate: dict[str, float] | None = None
    rejections: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_strategy: dict[str, dict[str, Any]] = field(default_factory=dict)
    top_patterns: list[dict[str, Any]] = field(default_factory=list)
    signal_trends: dict[str, Any] = field(default_factory=dict)
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    pnl: dict[str, Any] | None = None
    missed_value: dict[str, dict[str, Any]] = field(default_factory=dict)
    drift: list[dict[str, Any]] = field(default_factory=list)
    market: dict[str, dict[str, float | None]] = field(default_factory=dict)
    recommendations: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


def recommendations(report: BehaviorReport) -> list[dict[str, Any]]:
    """Return what a person should look at, each with the figures that say so."""
    found: list[dict[str, Any]] = []
    for code, value in report.missed_value.items():
        if value["verdict"] == "cost":
            text = f"Review {code}: the signals it refused would have earned after costs"
            found.append({"text": text, "evidence": {"code": code} | value})
        elif value["verdict"] == "protected":
            text = f"Keep {code}: the signals it refused would have lost after costs"
            found.append({"text": text, "evidence": {"code": code} | value})
    for pattern in report.top_patterns[:3]:
        text = f"Look at {' and '.join(pattern['antecedent'])}: it meets {pattern['code']} often"
        found.append({"text": text, "evidence": pattern})
    for code, entry in report.rejections.items():
        if code.startswith(("agent.", "ops.")) and entry["wilson_ci"]["low"] > 0.01:
            text = f"Mend {code}: more than one signal in a hundred is lost to it"
            found.append({"text": text, "evidence": {"code": code} | entry})
    if report.drift:
        text = "Train again or wait: the second half of the window differs from the first"
        found.append({"text": text, "evidence": {"moved": [d["name"] for d in report.drift]}})
    if not found:
        text = "Nothing stands out" if report.n_signals else "No signals in this window"
        found.append({"text": text, "evidence": {"n_signals": report.n_signals}})
    return found
