"""What signal_throughput measures, and the tally it is measured from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agent_gym.agents.desk.core_agent import Handled
from agent_gym.agents.desk.flow_states import FlowState
from agent_gym.core.clock import SECOND_NS
from agent_gym.evaluation.scenarios.counterparties import ExecutionCounterparty
from agent_gym.evaluation.scenarios.figures import mean, metric, quantile, share, zero
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.recorded import RECORDED_METRICS
from agent_gym.evaluation.scenarios.signal_replay import UNJUDGED
from agent_gym.evaluation.scenarios.signal_stream import Arrival

MS_NS = SECOND_NS // 1_000
ROUNDING = 1e-9
_INPUT = ("signals_total", "unique_symbols", "avg_confidence")

METRICS: tuple[Metric, ...] = (
    metric(
        "signals_processed_per_hour",
        "1/h",
        "up",
        "signals answered within the deadline, by simulated hour",
        (0.05, 1.0),
    ),
    metric(
        "acceptance_rate_valid",
        "share",
        "up",
        "truly valid signals that were accepted and traded, whole or in part",
        (0.02, 0.01),
    ),
    metric(
        "false_reject_rate",
        "share",
        "down",
        "truly valid signals that the filter or the rule table refused",
        (0.10, 0.005),
    ),
    metric(
        "false_accept_rate", "share", "down", "truly bad signals that were accepted", (0.10, 0.001)
    ),
    metric(
        "reason_accuracy",
        "share",
        "up",
        "truly bad signals that were refused with the code of what is wrong with them",
        (0.01, 0.005),
    ),
    metric(
        "latency_p50_ms",
        "ms",
        "down",
        "median simulated time from arrival to the end, of signals that were sent to agents",
        (0.10, 5.0),
    ),
    metric("latency_p95_ms", "ms", "down", "95 % quantile of the same", (0.10, 5.0)),
    metric("latency_p99_ms", "ms", "down", "99 % quantile of the same", (0.10, 5.0)),
    metric("wait_p95_ms", "ms", "down", "95 % quantile of the time in the queue", (0.10, 5.0)),
    metric("queue_max", "n", "down", "most signals that waited at once", (0.20, 2.0)),
    metric(
        "deadline_miss_rate",
        "share",
        "down",
        "signals that ended after the deadline",
        (0.10, 0.005),
    ),
    metric(
        "completion_rate",
        "share",
        "up",
        "accepted signals that ended filled, whole or in part",
        (0.01, 0.005),
    ),
    metric(
        "agent_calls_per_signal",
        "n",
        "down",
        "questions to agents for each accepted signal",
        (0.05, 0.02),
    ),
    zero("dropped_signals", "n", "signals that got no answer, or found the queue full"),
    zero("duplicate_executions", "n", "orders carried out beyond the first of a signal"),
    zero("wrong_executions", "n", "orders of the wrong side, or larger than was asked for"),
    zero("orphan_orders", "n", "rests of orders still standing when all is over"),
    zero("fill_mismatches", "n", "signals whose fill the desk believes is not what was traded"),
    *(m for m in RECORDED_METRICS["signal_throughput"] if m.name in _INPUT),
)


class Taken(NamedTuple):
    """One signal and what came of it."""

    arrival: Arrival
    handled: Handled
    start_ns: int
    done_ns: int
    queued: int

    @property
    def accepted(self) -> bool:
        """Say whether the desk wanted to trade it."""
        decision = self.handled.decision
        wanted = decision is not None and decision.action in ("execute", "reduce")
        return self.handled.filter_result.accepted and wanted

    @property
    def traded(self) -> bool:
        """Say whether something of it was traded."""
        flow = self.handled.flow
        return flow is not None and flow.state in (FlowState.FILLED, FlowState.PARTIAL)

    def is_late(self, deadline_ms: float) -> bool:
        """Say whether it ended after the deadline."""
        return self.done_ns - self.arrival.time_ns > deadline_ms * MS_NS


@dataclass(slots=True)
class Tally:
    """All signals of an episode; the figures are made from it at the end."""

    signals: list[Taken] = field(default_factory=list)
    turned_away: list[Arrival] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    hours: float = 1.0

    def take(self, taken: Taken) -> None:
        """Take in one signal that was handled."""
        self.signals.append(taken)

    def turn_away(self, arrival: Arrival) -> None:
        """Take in one signal that found the queue full."""
        self.turned_away.append(arrival)

    def finish(self, execution: ExecutionCounterparty, hours: float) -> None:
        """Compare what the desk believes with what the execution agent really did."""
        self.hours = hours
        silent = sum(t.handled.code is None and t.handled.flow is None for t in self.signals)
        # A signal that comes twice was asked for once: the first one says what was wanted.
        first: dict[str, Taken] = {}
        for taken in self.signals:
            first.setdefault(str(taken.arrival.raw.get("signal_id")), taken)
        self.faults = {
            "dropped_signals": len(self.turned_away) + silent,
            "duplicate_executions": sum(len(done) - 1 for done in execution.book.values()),
            "wrong_executions": sum(
                _is_wrong(first[name].arrival, sum(each.quantity for each in done))
                for name, done in execution.book.items()
            ),
            "orphan_orders": len(execution.resting),
            "fill_mismatches": sum(_differs(taken, execution) for taken in first.values()),
        }
        self.calls = sum(
            len(taken.handled.flow.responses) for taken in self.signals if taken.handled.flow
        )

    def metrics(self, deadline_ms: float) -> dict[str, float | None]:
        """Return the figures."""
        signals = self.signals
        judged = [t for t in signals if t.arrival.flaw != UNJUDGED]
        good = [t for t in judged if t.arrival.expected is None]
        bad = [t for t in judged if t.arrival.expected is not None]
        accepted = [t for t in signals if t.accepted]
        times = [(t.done_ns - t.arrival.time_ns) / MS_NS for t in accepted]
        waits = [(t.start_ns - t.arrival.time_ns) / MS_NS for t in signals]
        late = sum(t.is_late(deadline_ms) for t in signals)
        right = sum(not t.accepted and t.handled.code == t.arrival.expected for t in bad)
        arrivals = [*(t.arrival for t in signals), *self.turned_away]
        return {
            "signals_processed_per_hour": (len(signals) - late) / self.hours,
            "acceptance_rate_valid": share(sum(t.accepted and t.traded for t in good), len(good)),
            "false_reject_rate": share(sum(not t.accepted for t in good), len(good)),
            "false_accept_rate": share(sum(t.accepted for t in bad), len(bad)),
            "reason_accuracy": share(right, len(bad)),
            "latency_p50_ms": quantile(times, 0.50),
            "latency_p95_ms": quantile(times, 0.95),
            "latency_p99_ms": quantile(times, 0.99),
            "wait_p95_ms": quantile(waits, 0.95),
            "queue_max": float(max((t.queued for t in signals), default=0)),
            "deadline_miss_rate": share(late, len(signals)),
            "completion_rate": share(sum(t.traded for t in accepted), len(accepted)),
            "agent_calls_per_signal": share(self.calls, len(accepted)),
            **{name: float(count) for name, count in self.faults.items()},
            "signals_total": float(len(arrivals)),
            "unique_symbols": float(len({_symbol(arrival) for arrival in arrivals})),
            "avg_confidence": mean(
                [c for a in arrivals if (c := _params(a).get("confidence")) is not None]
            ),
        }


def _params(arrival: Arrival) -> Mapping[str, Any]:
    """Return what the signal asks for; a log may hold signals that ask for nothing."""
    params = arrival.raw.get("params")
    return params if isinstance(params, Mapping) else {}


def _symbol(arrival: Arrival) -> str:
    params = _params(arrival)
    return f"{params.get('base', 'BTC')}/{params.get('quote', 'USDT')}"


def _is_wrong(arrival: Arrival, traded: float) -> bool:
    params = _params(arrival)
    asked: float = params["amount"] if params.get("side", "buy") == "buy" else -params["amount"]
    return traded * asked < 0.0 or abs(traded) > abs(asked) * (1.0 + ROUNDING)


def _differs(taken: Taken, execution: ExecutionCounterparty) -> bool:
    flow = taken.handled.flow
    name = taken.handled.filter_result.signal_id
    really = sum(abs(done.quantity) for done in execution.book.get(name, []))
    believed = 0.0 if flow is None else flow.filled
    return abs(really - believed) > ROUNDING * max(1.0, really)
