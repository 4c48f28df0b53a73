"""Does the desk take the right signals, refuse the wrong ones for the right reason, and in time?

Signals come in bursts and wait for one of the desk's hands. A signal is judged by what is known
when a hand takes it, so a slow desk refuses good signals because they have gone stale meanwhile.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field

from msgspec import structs
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.core_agent import CoreAgent, Handled
from agent_gym.agents.desk.view import DeskView, Quote
from agent_gym.core.clock import MINUTE_NS, ManualClock, SystemClock
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.counterparties import (
    AGENTS,
    AgentLatency,
    Chances,
    Counterparty,
    ExecutionCounterparty,
)
from agent_gym.evaluation.scenarios.desk_account import Conditions, DeskAccount
from agent_gym.evaluation.scenarios.desk_market import SYMBOLS, Course, draw_bars
from agent_gym.evaluation.scenarios.desk_subject import open_desk, sabotage_of
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.evaluation.scenarios.recorded import (
    RecordedLog,
    RecordedSource,
    read_log,
    recorded_metrics,
    with_recorded,
)
from agent_gym.evaluation.scenarios.sabotage import Sabotage
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.signal_figures import METRICS, Taken, Tally
from agent_gym.evaluation.scenarios.signal_replay import (
    first_prices,
    log_names,
    recorded_arrivals,
    refusal_notes,
    replay_hours,
)
from agent_gym.evaluation.scenarios.signal_stream import FLOOD, Arrival, Mixture, SignalStream
from agent_gym.evaluation.scenarios.trace import Trace

TYPE = "signal_throughput"
EQUITY = 1_000_000.0
VOLATILITY = 0.0025  # of an hour
CALM = Conditions(spread_bp=4.0, volume_per_hour=100_000.0, volatility=VOLATILITY)
FEE_RATE = 5e-4
DEFAULT_STRATEGIES = {"momentum": 0.4, "mean_reversion": 0.3, "breakout": 0.2, "carry": 0.1}


class SignalThroughputConfig(Config):
    """How many signals come, how many of them are bad, and how fast the desk's agents are."""

    hours: float = Field(
        default=24.0,
        gt=0.0,
        le=744.0,
        description="simulated time; of a log: its last hours, by default all",
    )
    rate_per_hour: float = Field(default=60.0, gt=0.0, le=20_000.0, description="signals, calm")
    burst_factor: float = Field(default=5.0, ge=1.0, le=100.0, description="rate in a burst")
    burst_prob: float = Field(default=0.05, ge=0.0, le=1.0, description="share of burst minutes")
    invalid_share: float = Field(default=0.1, ge=0.0, le=1.0, description="of 19 flaws alike")
    dup_share: float = Field(default=0.05, ge=0.0, le=1.0, description="sent a second time")
    stale_share: float = Field(default=0.03, ge=0.0, le=1.0, description="40 to 300 s old")
    floods: int = Field(default=1, ge=0, le=100, description="times a strategy exceeds its rate")
    strategies: dict[str, float] = Field(
        default=DEFAULT_STRATEGIES, min_length=1, description="share of signals by strategy"
    )
    agent_latency_ms: AgentLatency = Field(
        default=AgentLatency(), description="median and sigma of an agent's answer"
    )
    agent_failure_share: float = Field(
        default=0.02, ge=0.0, le=1.0, description="answers that fail or never come"
    )
    partial_share: float = Field(default=0.05, ge=0.0, le=1.0, description="orders half filled")
    capacity: int = Field(default=2, ge=1, le=1_000, description="signals worked on at once")
    queue_limit: int = Field(default=5_000, ge=1, description="signals that may wait")
    deadline_ms: float = Field(default=5_000.0, gt=0.0, description="later is counted as missed")
    source: RecordedSource | None = Field(
        default=None, description="a recorded log whose signals are played instead"
    )


@register("scenario", TYPE, SignalThroughputConfig)
class SignalThroughput(Scenario):
    """Plays signals through the desk's whole pipeline, with a queue, on simulated time."""

    version = 1
    metrics = METRICS

    def __init__(self, config: SignalThroughputConfig) -> None:
        self.config = config

    @override
    def figures(self) -> tuple[Metric, ...]:
        return METRICS if self.config.source is None else with_recorded(TYPE, METRICS)

    @override
    def data_hash(self) -> str:
        return self._log().data_hash if self.config.source is not None else ""

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        begun_s = SystemClock().monotonic_s()
        log = None if self.config.source is None else self._log()
        tally, trace = self._played(seeds, subject, log)
        metrics = tally.metrics(self.config.deadline_ms)
        wall_s = SystemClock().monotonic_s() - begun_s
        notes: tuple[str, ...] = ()
        if log is not None:
            metrics |= recorded_metrics(TYPE, log)
            codes = [None if each.accepted else each.handled.code for each in tally.signals]
            notes = (*refusal_notes(codes), *log.notes)
        return Episode(
            metrics,
            trace.digest(),
            len(trace),
            notes,
            {"wall_s": wall_s, "signals_per_s": len(trace) / wall_s},
        )

    def _log(self) -> RecordedLog:
        assert self.config.source is not None
        # The default is for generated signals; a log is played whole unless someone says otherwise.
        said = "hours" in self.config.model_fields_set
        return read_log(self.config.source, self.config.hours if said else None)

    def _played(
        self, seeds: Seeds, subject: Subject, log: RecordedLog | None
    ) -> tuple[Tally, Trace]:
        config, sabotage = self.config, sabotage_of(subject)
        symbols = SYMBOLS if log is None else tuple(sorted({s.symbol for s in log.signals}))
        hours = config.hours if log is None else replay_hours(log, TYPE)
        minutes = max(2, round(60 * hours) + 1)
        course = Course(minutes, MINUTE_NS, VOLATILITY / 60**0.5, CALM.spread_bp, 1.0)
        first = None if log is None else first_prices(log)
        bars = draw_bars(course, symbols, seeds.child("market"), first)
        prices = {each.instrument.symbol: each.close for each in bars}
        if log is None:
            arrivals = SignalStream(self._mixture(), prices, EQUITY, seeds).draw()
        else:
            arrivals = recorded_arrivals(log)
        account = DeskAccount(prices, CALM, EQUITY)
        counter = _counterparties(config, arrivals, account, sabotage, seeds)
        io = AgentIO()
        for agent in counter:
            io.register(agent.name, agent)
        generated = {"filter": {"strategies": sorted({*config.strategies, FLOOD})}}
        desk = open_desk(subject, generated if log is None else log_names(log))
        core = desk.open(io=io, context=RecentContext(), seeds=seeds.child("agent"))
        execution = counter[-1]
        assert isinstance(execution, ExecutionCounterparty)
        floor = _Floor(config, core, account, execution, sabotage)
        for arrival in arrivals:
            floor.meet(arrival)
        floor.tally.finish(execution, hours)
        for done in (each for many in execution.book.values() for each in many):
            floor.trace.note("execution", done.time_ns, done.signal_id, done.quantity, done.price)
        for name, rest in execution.resting.items():
            floor.trace.note("resting", 0, name, rest)
        return floor.tally, floor.trace

    def _mixture(self) -> Mixture:
        config = self.config
        return Mixture(**{name: getattr(config, name) for name in Mixture._fields})


def _counterparties(
    config: SignalThroughputConfig,
    arrivals: list[Arrival],
    account: DeskAccount,
    sabotage: Sabotage,
    seeds: Seeds,
) -> list[Counterparty]:
    n = 1 + max((arrival.row for arrival in arrivals), default=0)
    chances = Chances.draw(
        config.agent_latency_ms, config.agent_failure_share, config.partial_share, n, seeds
    )
    rows: dict[str, int] = {}
    for arrival in arrivals:
        name = arrival.raw.get("signal_id")
        if isinstance(name, str):
            rows.setdefault(name, arrival.row)
    asked = [Counterparty(name, chances, rows, sabotage.latency_ms) for name in AGENTS[:-1]]
    execution = ExecutionCounterparty(
        "execution", chances, rows, sabotage.latency_ms, touch=account.touch, fee_rate=FEE_RATE
    )
    return [*asked, execution]


@dataclass(slots=True)
class _Floor:
    """The desk's hands, the queue in front of them, and what came of every signal."""

    config: SignalThroughputConfig
    core: CoreAgent
    account: DeskAccount
    execution: ExecutionCounterparty
    sabotage: Sabotage
    tally: Tally = field(default_factory=Tally)
    trace: Trace = field(default_factory=Trace)
    hands: list[int] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)

    def meet(self, arrival: Arrival) -> None:
        """Let one signal wait, be taken and be handled."""
        while self.waiting and self.waiting[0] <= arrival.time_ns:
            self.waiting.popleft()
        if len(self.waiting) >= self.config.queue_limit:
            self.tally.turn_away(arrival)
            self.trace.note("turned away", arrival.time_ns, arrival.row)
            return
        free = len(self.hands) < self.config.capacity
        start_ns = arrival.time_ns if free else max(arrival.time_ns, self.hands[0])
        if start_ns > arrival.time_ns:
            self.waiting.append(start_ns)
        clock = ManualClock(start_ns)
        view = self.sabotage.view(_troubled(self.account.view(start_ns), arrival))
        handled = self.core.handle(arrival.raw, view, clock)
        (heapq.heappush if free else heapq.heapreplace)(self.hands, clock.now_ns())
        for done in self.execution.fresh:
            self.account.expect(done, clock.now_ns())
        self.execution.fresh.clear()
        taken = Taken(arrival, handled, start_ns, clock.now_ns(), len(self.waiting))
        self.tally.take(taken)
        self._note(taken, handled)

    def _note(self, taken: Taken, handled: Handled) -> None:
        flow = handled.flow
        self.trace.note(
            "signal",
            taken.start_ns,
            taken.arrival.row,
            taken.done_ns,
            None if handled.code is None else handled.code.value,
            handled.filter_result.accepted,
            None if flow is None else flow.state.value,
            0.0 if flow is None else flow.filled,
            None if flow is None else flow.avg_price,
            0 if flow is None else len(flow.responses),
            taken.is_late(self.config.deadline_ms),
        )


def _troubled(view: DeskView, arrival: Arrival) -> DeskView:
    """Return the view with the trouble that the arrival brings along, if it lies there."""
    flaw = arrival.flaw
    if flaw in ("kill_switch", "maintenance"):
        return structs.replace(view, **{flaw: True})
    if flaw == "risk_too_high":
        return structs.replace(view, holdings=structs.replace(view.holdings, value_at_risk=0.05))
    if flaw == "deep_drawdown":
        return structs.replace(view, holdings=structs.replace(view.holdings, drawdown=0.2))
    params = arrival.raw.get("params", {})
    symbol = f"{params.get('base', 'BTC')}/{params.get('quote', 'USDT')}"
    quote = view.quotes.get(symbol)
    trouble = None if quote is None else _trouble(flaw, quote)
    if trouble is None:
        return view
    return structs.replace(view, quotes={**view.quotes, symbol: trouble})


def _trouble(flaw: str, quote: Quote) -> Quote | None:
    match flaw:
        case "wide_spread":
            return structs.replace(quote, bid=0.995 * quote.bid, ask=1.005 * quote.ask)
        case "wild_market":
            return structs.replace(quote, volatility=0.08)
        case "thin_market":
            return structs.replace(quote, volume_per_hour=1.0)
        case "old_price":
            return structs.replace(quote, timestamp=quote.timestamp - 90.0)
        case "closed_market":
            return structs.replace(quote, is_open=False)
    return None
