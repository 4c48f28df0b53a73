"""What protection_health measures."""

from __future__ import annotations

from collections.abc import Mapping

from agent_gym.evaluation.scenarios.figures import mean, metric, quantile, share, zero
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.protection_watch import ProtectionWatch
from agent_gym.evaluation.scenarios.recorded import RECORDED_METRICS

GUARDS = ("sl_created", "tp_created", "auto_fix_sl", "auto_fix_tp")
VAR_RATE = 0.01

METRICS: tuple[Metric, ...] = (
    metric(
        "protected_time_share",
        "share",
        "up",
        "position-seconds under a live stop, a stop for a part counted as that part",
        (0.001, 0.0005),
    ),
    metric(
        "unprotected_gap_p99_s",
        "s",
        "down",
        "99 % quantile of the times in which a position was not wholly under a stop",
        (0.10, 1.0),
    ),
    metric("unprotected_gap_max_s", "s", "down", "the longest of these times", (0.10, 1.0)),
    metric(
        "stop_trigger_recall",
        "share",
        "up",
        "bars that passed the stop level of a position and made it smaller",
        (0.0, 0.001),
    ),
    metric(
        "stop_false_trigger_rate",
        "share",
        "down",
        "stops that traded though the price had not passed the level",
        (0.10, 0.002),
    ),
    metric(
        "stop_overshoot_bp_p95",
        "bp",
        "down",
        "95 % quantile of the fill of a stop against its price, positive where it cost",
        (0.10, 1.0),
    ),
    metric("max_drawdown", "share", "down", "largest loss from a peak of equity", (0.05, 0.002)),
    metric(
        "breaker_latency_bars",
        "bars",
        "down",
        "bars from the drawdown limit to the first order that closes, 0 with nothing to close",
        (0.0, 0.0),
    ),
    metric(
        "stale_protection_count",
        "n",
        "down",
        "times that stops did not add up to the position for four bars without a trade",
        (0.0, 0.0),
    ),
    metric(
        "var_exceedance_gap",
        "share",
        "down",
        "distance from 1 % of the bars that lost more than the value at risk",
        (0.2, 0.002),
    ),
    metric(
        "entry_rate", "share", "up", "wishes to open or change a position that were let through",
        (0.05, 0.01),
    ),
    zero("bare_positions", "n", "positions not wholly under a stop for four bars without a trade"),
    zero("losing_take_profits", "n", "profit targets that traded at a loss"),
    zero("blind_entries", "n", "entries let through while the price feed was silent"),
    zero("orphan_guards", "n", "orders left at the venue when everything is closed"),
    zero("position_mismatches", "n", "positions that the desk held for others for four bars"),
    *(m for m in RECORDED_METRICS["protection_health"] if m.name in GUARDS),
)  # fmt: skip


def measure(
    watch: ProtectionWatch, guards: Mapping[str, int], orphans: int
) -> dict[str, float | None]:
    """Return the figures of an episode that has come to its end."""
    counts = watch.counts
    rate = share(counts["exceedances"], counts["risk_bars"])
    return {
        "protected_time_share": share(watch.covered_s, watch.held_s),
        "unprotected_gap_p99_s": quantile(watch.gaps_s, 0.99),
        "unprotected_gap_max_s": max(watch.gaps_s, default=None),
        "stop_trigger_recall": share(counts["fired"], counts["must_fire"]),
        "stop_false_trigger_rate": share(counts["false_fires"], counts["stops_fired"]),
        "stop_overshoot_bp_p95": quantile(watch.overshoots_bp, 0.95),
        "max_drawdown": watch.max_drawdown,
        "breaker_latency_bars": mean(watch.breaker_bars),
        "stale_protection_count": float(counts["stale"]),
        "var_exceedance_gap": None if rate is None else abs(rate - VAR_RATE),
        "entry_rate": share(counts["accepted"], counts["entries"]),
        "bare_positions": float(counts["bare"]),
        "losing_take_profits": float(counts["losing_targets"]),
        "blind_entries": float(counts["blind"]),
        "orphan_guards": float(orphans),
        "position_mismatches": float(counts["mismatches"]),
        **{name: float(guards.get(name, 0)) for name in GUARDS},
    }
