"""A desk at work on a made-up market: a log, a memory and bars to try the learning layer with.

Signals come at random times. Whether one wins is drawn from a planted law of its own features, and
the side is then the one that the market is about to favour, or the other; so there is something to
learn, and every outcome is still that of the bars. Time is simulated.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from pydantic import Field

from agent_gym.agents.desk import (
    Acceptor,
    AgentIO,
    AgentRequest,
    CoreAgent,
    CoreAgentLogger,
    DeskPlan,
    DeskView,
    Handled,
    Holdings,
    Latency,
    Outcome,
    PnLSnapshot,
    Quote,
    RecentContext,
    ScriptedAgent,
    Signal,
    SignalParams,
)
from agent_gym.core.clock import HOUR_NS, SECOND_NS, ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import write_bars
from agent_gym.markets.resample import resample
from agent_gym.markets.source import open_market
from agent_gym.training.desk.config import TrainingConfig
from agent_gym.training.desk.paper import PaperDesk
from agent_gym.training.desk.planted import Draw, PlantedLaw, draw
from agent_gym.training.desk.preparation import Preparation

HORIZON, HORIZON_NS = "4h", 4 * HOUR_NS
SYMBOL = ("BTC", "USDT")
LAW = PlantedLaw((2.0, -1.5), 0.5, decoys=2)
DB_FILE, BARS_FILE, LOG_FOLDER = "desk.db", "bars.parquet", "logs"
EQUITY = 100_000.0
WARM_UP_HOURS, SPACING_S, STALE_S = 6, 600.0, 100.0
STALE_SHARE, REPEAT_SHARE = 0.03, 0.02
ONE_IN_A_HUNDRED = 2.326  # deviations of a normal law


class PlayConfig(Config):
    """How long the desk works, and which run of luck it meets."""

    hours: float = Field(default=72.0, gt=0.0, le=5000.0, description="simulated, a signal in 10 m")
    seed: int = Field(default=0, ge=0, description="of the market and the signals")


@dataclass(slots=True)
class PlayReport:
    """What the desk did; ``known_until`` is the last moment of it, epoch seconds."""

    folder: str
    signals: int = 0
    accepted: int = 0
    filled: int = 0
    paper: int = 0
    settled: int = 0
    wins: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    equity: float = EQUITY
    known_until: float = 0.0
    champion: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"rejections": dict(self.rejections.most_common())}


def play(
    folder: Path,
    config: PlayConfig | None = None,
    acceptor: Acceptor | None = None,
    champion: str | None = None,
) -> PlayReport:
    """Let a desk work and write ``desk.db``, ``logs/`` and ``bars.parquet`` into a folder.

    Args:
        folder: A new place: a desk that goes on after another would refuse every id as a repeat.
        config: How long, and the seed.
        acceptor: May veto signals; None lets the rules alone decide.
        champion: Its version, for the report.
    """
    config = config or PlayConfig()
    for name in (DB_FILE, LOG_FOLDER):
        if (folder / name).exists():
            raise ConfigError(
                "a desk has worked here already",
                where=str(folder / name),
                remedy="Name another folder with --out",
            )
    seeds = Seeds(config.seed).child("desk-play")
    minutes = math.ceil((config.hours + WARM_UP_HOURS + 5.0) * 60.0)
    made = open_market(Ref(use="synthetic/btc-1m", params={"n_bars": minutes}), seeds)
    bars = resample(made, "5m")
    write_bars(folder / BARS_FILE, bars)
    clock = ManualClock(int(bars.ts[0]) + WARM_UP_HOURS * HOUR_NS)
    context = RecentContext(db=folder / DB_FILE)
    try:
        with CoreAgentLogger(folder / LOG_FOLDER, clock) as logger:
            market = Market(bars)
            io = market.agents()
            desk = DeskPlan().open(
                io=io, context=context, seeds=seeds, logger=logger, acceptor=acceptor
            )
            report = PlayReport(str(folder), champion=champion)
            Shift(desk, market, clock, report).work(config.hours, seeds)
    finally:
        context.close()
    return report


class Market:
    """The bars, the quote of the moment, and agents that agree and fill at the touch."""

    def __init__(self, bars: Bars) -> None:
        training = TrainingConfig()
        self.paper = PaperDesk(bars, training.paper)
        self._quotes = Preparation(RecentContext(), self.paper, training)
        self.quote = Quote(0.0, 0.0, 0.0, 0.0, 0.0)

    def look(self, now: float) -> Quote:
        """Return the quote at a time, from bars that have closed."""
        found = self._quotes.quote("/".join(SYMBOL), now)
        if found is None:
            raise ConfigError("the market has not begun", found=now)
        self.quote = structs.replace(found, timestamp=now)
        return self.quote

    def agents(self) -> AgentIO:
        """Return the three agents."""

        def fill(request: AgentRequest) -> dict[str, Any]:
            is_buy = request.signal.params.side == "buy"
            touch = self.quote.ask if is_buy else self.quote.bid
            return {"status": "ok", "payload": {"filled": request.size, "avg_price": touch}}

        io, pause = AgentIO(), Latency(median_ms=20.0)
        io.register("strategy", ScriptedAgent(latency=pause))
        io.register("risk", ScriptedAgent(latency=pause))
        io.register("execution", ScriptedAgent(fill, latency=pause))
        return io

    def payoff(self, signal: Signal, at: float) -> float | None:
        """Return what a signal comes to over the horizon, None if the bars do not tell."""
        found = self.paper.settle(signal, at, HORIZON_NS)
        return None if isinstance(found, str) else float(found.payoff)


class Shift:
    """The working hours of one desk, with the account that its trades move."""

    def __init__(
        self, desk: CoreAgent, market: Market, clock: ManualClock, report: PlayReport
    ) -> None:
        self._desk, self._market, self._clock, self._report = desk, market, clock, report
        self._open: deque[tuple[float, Signal, Outcome]] = deque()
        self._equity = self._peak = EQUITY

    def work(self, hours: float, seeds: Seeds) -> None:
        """Take in signals for so many hours, then wait until the last is settled."""
        rng = seeds.child("arrivals").rng()
        start = self._now()
        times = start + np.cumsum(rng.exponential(SPACING_S, math.ceil(8.0 * hours) + 50))
        times = times[times < start + 3600.0 * hours]
        drawn = draw(LAW, len(times), seeds)
        last: Signal | None = None
        for turn, at in enumerate(times.tolist()):
            self._settle(at)
            self._wait(at)
            signal = self._signal(drawn, turn, rng)
            if last is not None and rng.random() < REPEAT_SHARE:
                signal = last
            last = signal
            self._take(signal)
            if turn % 6 == 0:
                self._note()
        self._settle(math.inf)
        self._report.equity = self._equity
        self._report.known_until = self._now()

    def _signal(self, drawn: Draw, turn: int, rng: np.random.Generator) -> Signal:
        now, quote = self._now(), self._market.look(self._now())
        share, age_s = float(rng.uniform(0.01, 0.1)), float(rng.uniform(0.0, 2.0))
        if rng.random() < STALE_SHARE:
            age_s = STALE_S
        features = dict(zip(LAW.names, drawn.X[turn].tolist(), strict=True))
        amount = share * self._equity / quote.mid
        buy, sell = (
            Signal(
                f"s{turn:06d}",
                str(drawn.strategies[turn]),
                SignalParams(amount, *SYMBOL, side=side, horizon_s=HORIZON_NS // SECOND_NS),
                now - age_s,
                "play",
                features,
            )
            for side in ("buy", "sell")
        )
        gains = [self._market.payoff(signal, now) or 0.0 for signal in (buy, sell)]
        return buy if (gains[0] >= gains[1]) == bool(drawn.y[turn]) else sell

    def _take(self, signal: Signal) -> None:
        now, report = self._now(), self._report
        handled = self._desk.handle(signal, self._view(now), self._clock)
        report.signals += 1
        report.accepted += handled.filter_result.accepted
        report.paper += handled.filter_result.paper
        if handled.code is not None:
            report.rejections[handled.code.value] += 1
        self._follow(signal, now, handled)

    def _follow(self, signal: Signal, at: float, handled: Handled) -> None:
        outcome = handled.outcome
        if outcome is None or outcome.filled == 0.0:
            return
        self._report.filled += not outcome.counterfactual
        self._open.append((at, signal, outcome))

    def _settle(self, until: float) -> None:
        """Close what has reached its horizon by a time."""
        while self._open and self._open[0][0] + HORIZON_NS / SECOND_NS <= until:
            at, signal, outcome = self._open.popleft()
            self._wait(at + HORIZON_NS / SECOND_NS)
            payoff, price = self._market.payoff(signal, at), outcome.avg_price
            if payoff is None or price is None:
                continue
            profit = payoff * outcome.filled * price
            if not outcome.counterfactual:
                self._equity += profit
                self._peak = max(self._peak, self._equity)
            self._report.settled += 1
            self._report.wins += payoff > 0.0
            final = structs.replace(
                outcome,
                label="win" if payoff > 0.0 else "loss",
                pnl_horizon={HORIZON: profit},
                closed_at=self._now(),
            )
            self._desk.settle(final, self._clock)

    def _view(self, now: float) -> DeskView:
        symbol, quote = "/".join(SYMBOL), self._market.look(now)
        return DeskView(now, {symbol: quote}, self._holdings(quote))

    def _holdings(self, quote: Quote) -> Holdings:
        held = sum(
            outcome.filled if signal.params.side == "buy" else -outcome.filled
            for _, signal, outcome in self._open
            if not outcome.counterfactual
        )
        exposure = abs(held) * quote.mid / self._equity
        daily = quote.volatility * math.sqrt(24.0)
        return Holdings(
            equity=self._equity,
            cash=self._equity - held * quote.mid,
            positions={"/".join(SYMBOL): held},
            exposure=exposure,
            drawdown=1.0 - self._equity / self._peak,
            value_at_risk=ONE_IN_A_HUNDRED * daily * exposure,
        )

    def _note(self) -> None:
        now = self._now()
        held = self._holdings(self._market.look(now))
        account = PnLSnapshot(now, held.equity, held.cash, held.exposure, held.drawdown)
        self._desk.note_pnl(account, self._clock)

    def _now(self) -> float:
        return self._clock.now_ns() / SECOND_NS

    def _wait(self, until: float) -> None:
        self._clock.advance_ns(max(0, round(until * SECOND_NS) - self._clock.now_ns()))
