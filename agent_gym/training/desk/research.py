"""ResearchEngine: reads what the desk remembers and says what is going on, with error bars."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import mean_interval, wilson
from agent_gym.markets.periods import parse_period
from agent_gym.training.desk.arrivals import Arrival, arrivals
from agent_gym.training.desk.behavior import BehaviorReport, recommendations
from agent_gym.training.desk.config import DriftConfig, TrainingConfig
from agent_gym.training.desk.drift import feature_drift
from agent_gym.training.desk.missed_value import missed_value
from agent_gym.training.desk.paper import Market, PaperDesk
from agent_gym.training.desk.patterns import top_patterns
from agent_gym.training.desk.preparation import Preparation, profit_over, stored_features
from agent_gym.training.desk.significance import (
    benjamini_hochberg,
    level_trend_p,
    share_trend_p,
)

BUCKETS = 12
MOST_DRIFT_ROWS = 2000
LEAST_DRIFT_ROWS = 100
DRIFT_ALPHA = 0.01
MOVES_ALWAYS = DriftConfig().ignored


class ResearchEngine:
    """Analyses the behaviour of a desk.

    Args:
        ctx: What the desk remembers.
        market: Bars by symbol (or of one market); without them missed value needs stored outcomes.
        config: How signals are settled on paper.
        seeds: Where the resamples behind intervals come from.
        horizon: Over which profits are counted.
    """

    def __init__(
        self,
        ctx: RecentContext,
        market: Market | None = None,
        config: TrainingConfig | None = None,
        *,
        seeds: Seeds | None = None,
        horizon: str = "24h",
    ) -> None:
        self._ctx = ctx
        self._config = config or TrainingConfig()
        self._paper = PaperDesk(market, self._config.paper)
        self._seeds = seeds or Seeds(0)
        self._horizon_ns = parse_period(horizon)

    def analyze_behavior(
        self, window: float | str | None = None, as_of: float | None = None
    ) -> BehaviorReport:
        """Return what happened in the last ``window`` (seconds, or such as "7d"; None is all).

        Args:
            window: How far back to look.
            as_of: Where the window ends; nothing known later is used. By default the latest time.
        """
        until = self._ctx.latest if as_of is None else as_of
        seconds = parse_period(window) / SECOND_NS if isinstance(window, str) else window
        since = -np.inf if seconds is None else until - seconds
        known = self._ctx.as_of(until)
        found = arrivals(known, since, until)
        begin = found[0].at if seconds is None and found else max(since, 0.0)
        outcomes = {o.signal_id: o for o in known.get_outcomes()}
        report = BehaviorReport(
            window={"since": begin, "until": until},
            n_signals=len(found),
            acceptance_rate=_acceptance(found),
            rejections=_rejections(found),
            by_strategy=_by_strategy(found),
            top_patterns=[pattern.as_dict() for pattern in top_patterns(found)],
            signal_trends=_trends(found, begin, until),
            latency=_latency(known, since),
            pnl=self._pnl(known, since),
            missed_value=missed_value(
                found, outcomes, self._paper, (until, self._horizon_ns), self._seeds
            ),
            drift=self._drift(found),
            market=self._market(begin, until),
        )
        return replace(report, recommendations=recommendations(report))

    def _pnl(self, known: ContextReader, since: float) -> dict[str, Any] | None:
        profits = [
            profit
            for outcome in known.get_outcomes(since=since)
            if not outcome.counterfactual
            and (profit := profit_over(self._horizon_ns, outcome)) is not None
        ]
        if not profits:
            return None
        ci = mean_interval(profits, self._seeds.child("pnl")) if len(profits) >= 2 else None
        return {
            "n": len(profits),
            "mean": float(np.mean(profits)),
            "ci": None if ci is None else ci.as_dict(),
        }

    def _drift(self, found: list[Arrival]) -> list[dict[str, Any]]:
        moved = _code_drift(found)
        read = [a for a in found if a.signal is not None][-MOST_DRIFT_ROWS:]
        if len(read) < LEAST_DRIFT_ROWS:
            return moved
        rows = Preparation(self._ctx, self._paper, self._config)
        kept = stored_features(self._ctx)
        signals = [(a.signal, a.at) for a in read if a.signal is not None]
        found_all = all((signal.signal_id, at) in kept for signal, at in signals)
        # All kept or all rebuilt: where one gives way to the other, nothing in the world moved.
        named = [
            kept[signal.signal_id, at] if found_all else rows.features(signal, at)
            for signal, at in signals
        ]
        names = tuple(sorted({name for row in named for name in row} - {*MOVES_ALWAYS}))
        table = np.array([[row.get(name, np.nan) for name in names] for row in named])
        half = len(table) // 2
        for name, figures in feature_drift(table[:half], table[half:], names).items():
            if figures["ks_p_bh"] < DRIFT_ALPHA:
                moved.append({"name": name, **figures})
        return moved

    def _market(self, since: float, until: float) -> dict[str, dict[str, float | None]]:
        shown: dict[str, dict[str, float | None]] = {}
        for symbol, tape in self._paper.tapes.items():
            bars = tape.bars.between(
                round(since * SECOND_NS), round(until * SECOND_NS) - tape.bars.period_ns
            )
            if len(bars) < 3:
                continue
            hourly = np.sqrt(HOUR_NS / bars.period_ns)
            spread = bars.extra["spread"] / bars.close * 1e4 if "spread" in bars.extra else None
            shown[symbol] = {
                "volatility_1h": float(np.diff(np.log(bars.close)).std() * hourly),
                "spread_bp": None if spread is None else _mean(spread),
            }
        return shown


def _mean(values: Any) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else None


def _acceptance(found: list[Arrival]) -> dict[str, float] | None:
    if not found:
        return None
    return wilson(sum(a.code is None for a in found), len(found)).as_dict()


def _rejections(found: list[Arrival]) -> dict[str, dict[str, Any]]:
    counts = Counter(a.code.value for a in found if a.code is not None)
    times = [a.at for a in found]
    trends = {
        code: share_trend_p(
            times, [float(a.code is not None and a.code.value == code) for a in found]
        )
        for code in counts
    }
    tested = [code for code, p in trends.items() if p is not None]
    adjusted = benjamini_hochberg([trends[code] or 0.0 for code in tested])
    corrected = dict(zip(tested, adjusted.tolist(), strict=True))
    return {
        code: {
            "n": n,
            "share": n / len(found),
            "wilson_ci": wilson(n, len(found)).as_dict(),
            "trend_p": corrected.get(code),
        }
        for code, n in sorted(counts.items())
    }


def _by_strategy(found: list[Arrival]) -> dict[str, dict[str, Any]]:
    groups: defaultdict[str, list[Arrival]] = defaultdict(list)
    for arrival in found:
        groups[arrival.strategy].append(arrival)
    return {
        name: {
            "n": len(group),
            "acceptance_rate": _acceptance(group),
            "codes": dict(sorted(Counter(a.code.value for a in group if a.code).items())),
        }
        for name, group in sorted(groups.items())
    }


def _trends(found: list[Arrival], since: float, until: float) -> dict[str, Any]:
    if len(found) < 2 or until <= since:
        return {"counts": [], "count_trend_p": None, "acceptance_trend_p": None}
    times = np.array([a.at for a in found])
    counts, _ = np.histogram(times, bins=BUCKETS, range=(since, until))
    return {
        "counts": counts.tolist(),
        "count_trend_p": level_trend_p(counts),
        "acceptance_trend_p": share_trend_p(times, [float(a.code is None) for a in found]),
    }


def _latency(known: ContextReader, since: float) -> dict[str, dict[str, float]]:
    took: defaultdict[str, list[float]] = defaultdict(list)
    for result in known.get_filter_results(since=since):
        if result.latency_ms > 0.0:  # 0 is said by filters that do not measure it
            took["filter"].append(result.latency_ms)
    for response in known.get_responses(since=since):
        took[response.agent].append(response.latency_ms)
    return {
        name: {
            "n": len(values),
            **dict(
                zip(
                    ("p50", "p95", "p99"),
                    np.quantile(values, [0.5, 0.95, 0.99]).tolist(),
                    strict=True,
                )
            ),
        }
        for name, values in sorted(took.items())
    }


def _code_drift(found: list[Arrival]) -> list[dict[str, Any]]:
    """Return whether the mix of codes differs between the halves; rare codes go together."""
    if len(found) < LEAST_DRIFT_ROWS:
        return []
    half = len(found) // 2
    mixes = [
        Counter(a.code.value if a.code else "accepted" for a in part)
        for part in _halves(found, half)
    ]
    counts = np.array([[mix[code] for code in sorted({*mixes[0], *mixes[1]})] for mix in mixes])
    common = counts.sum(axis=0) >= 10
    table = np.column_stack([counts[:, common], counts[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2:
        return []
    p = float(chi2_contingency(table).pvalue)
    return [{"name": "rejection codes", "chi2_p": p}] if p < DRIFT_ALPHA else []


def _halves(found: list[Arrival], half: int) -> tuple[list[Arrival], list[Arrival]]:
    return found[:half], found[half:]
