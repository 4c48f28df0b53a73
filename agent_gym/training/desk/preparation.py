"""From what the desk remembers to rows: features as of each signal, labels as of one moment.

Features are those that the desk kept when the signal came in: what a live model was shown. Where
none were kept they are rebuilt, as far as that goes, and such rows are counted in ``notes``.

Two rules keep the future out. Rebuilt features are read from the context as it was just before
the signal became known, and from bars that had closed by then. A label counts only if its
whole horizon had passed by ``as_of``, also where a barrier was touched earlier: keeping just the
quick ones of the last hours would tilt the table towards big moves.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from agent_gym.agents.desk.acceptor import signal_features
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.schemas import Outcome, PnLSnapshot, Signal
from agent_gym.agents.desk.view import DeskView, Holdings, Quote
from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS
from agent_gym.markets.periods import parse_period
from agent_gym.training.desk.config import DAY_S, TrainingConfig
from agent_gym.training.desk.dataset import Dataset, Row, tabled
from agent_gym.training.desk.paper import BPS, PaperDesk

NO_ACCOUNT = PnLSnapshot(timestamp=0.0, equity=1.0, cash=1.0, exposure=0.0, drawdown=0.0)


Stored: TypeAlias = Mapping[tuple[str, float], Mapping[str, float]]


class _Table(NamedTuple):
    """A table that is being made: its moment, the features that were kept, and what is noted."""

    as_of: float
    horizon_ns: int
    stored: Stored
    notes: Counter[str]


class Preparation:
    """Makes the table of one moment from a context and bars."""

    def __init__(self, ctx: RecentContext, paper: PaperDesk, config: TrainingConfig) -> None:
        self._ctx = ctx
        self._paper = paper
        self._config = config

    def dataset(self, as_of: float, horizon: str) -> Dataset:
        """Return the rows whose label was known at ``as_of``."""
        known = self._ctx.as_of(as_of)
        horizon_ns = parse_period(horizon)
        outcomes = _settled(known, horizon_ns)
        excluded: Counter[str] = Counter()
        made_of = _Table(as_of, horizon_ns, stored_features(known), Counter())
        rows, seen = [], set()
        for known_at, signal in known.known("signal"):
            if signal.signal_id in seen:
                excluded["repeated_id"] += 1
                continue
            seen.add(signal.signal_id)
            row = self._row(signal, known_at, outcomes.get(signal.signal_id), made_of)
            if isinstance(row, str):
                excluded[row] += 1
            else:
                rows.append(row)
        made = tabled(
            rows,
            as_of=as_of,
            horizon=horizon,
            paper_weight=self._config.counterfactual_weight,
            excluded=excluded,
        )
        made = dataclasses.replace(made, notes=dict(sorted(made_of.notes.items())))
        return judged_enough(made, self._config)

    def _row(
        self, signal: Signal, known_at: float, outcome: Outcome | None, table: _Table
    ) -> Row | str:
        as_of, horizon_ns = table.as_of, table.horizon_ns
        end = known_at + horizon_ns / SECOND_NS
        if end > as_of:
            return "immature"
        if known_at < as_of - self._config.window_days * DAY_S:
            return "too_old"
        label = self._label(signal, known_at, outcome, (as_of, horizon_ns))
        if isinstance(label, str):
            return label
        payoff, t_end, is_paper = label
        features = table.stored.get((signal.signal_id, known_at))
        if features is None:
            features = self.features(signal, known_at)
            table.notes["rebuilt_features"] += 1
            if not self._ctx.as_of(_just_before(known_at)).get_pnl_snapshots(n=1):
                table.notes["rebuilt_without_account"] += 1
        return Row(
            signal_id=signal.signal_id,
            features=features,
            t=known_at,
            t_end=t_end,
            payoff=payoff,
            strategy=signal.strategy,
            symbol=signal.symbol,
            counterfactual=is_paper,
        )

    def _label(
        self, signal: Signal, known_at: float, outcome: Outcome | None, when: tuple[float, int]
    ) -> tuple[float, float, bool] | str:
        as_of, horizon_ns = when
        if outcome is not None:
            paid = payoff_of(signal, outcome, profit_over(horizon_ns, outcome))
            if paid is not None:
                return paid, known_at + horizon_ns / SECOND_NS, outcome.counterfactual
        found = self._paper.settle(signal, known_at, horizon_ns, as_of)
        if isinstance(found, str):
            return found if self._paper.tapes else "no_outcome"
        return found.payoff, found.closed_at, True

    def features(self, signal: Signal, known_at: float) -> dict[str, float]:
        """Rebuild the features of a signal as of when it became known.

        Positions and value at risk of that moment are not known, and the quote is made from bars:
        use what the desk kept (``stored_features``) where there is something.
        """
        before = self._ctx.as_of(_just_before(known_at))
        found = signal_features(signal, self.view(signal, known_at, before), before)
        return {name: v if math.isfinite(v) else math.nan for name, v in found.items()}

    def view(self, signal: Signal, at: float, context: ContextReader) -> DeskView:
        """Return the desk's view at a time, from closed bars and the last known account."""
        last = context.get_pnl_snapshots(n=1)
        account = last[-1] if last else NO_ACCOUNT
        quote = self.quote(signal.symbol, at)
        return DeskView(
            now=at,
            quotes={} if quote is None else {signal.symbol: quote},
            holdings=Holdings(
                equity=account.equity,
                cash=account.cash,
                positions={},
                exposure=account.exposure,
                drawdown=account.drawdown,
            ),
        )

    def quote(self, symbol: str, at: float) -> Quote | None:
        """Return the market at a time from the last bar that had closed, None if there is none."""
        tape = self._paper.tapes.get(symbol)
        bar = -1 if tape is None else tape.closed(round(at * SECOND_NS))
        if tape is None or bar < 0:
            return None
        bars, price = tape.bars, float(tape.bars.close[bar])
        half = BPS * self._paper.config.costs.half_spread_bps * price
        if "spread" in bars.extra and math.isfinite(bars.extra["spread"][bar]):
            half = 0.5 * float(bars.extra["spread"][bar])
        return Quote(
            timestamp=(int(bars.ts[bar]) + bars.period_ns) / SECOND_NS,
            bid=price - half,
            ask=price + half,
            volume_per_hour=float(bars.volume[bar]) * HOUR_NS / bars.period_ns,
            volatility=tape.hourly_deviation(bar),
        )


def stored_features(known: ContextReader) -> Stored:
    """Return the features that the desk kept, by the signal's id and when it became known."""
    found: dict[tuple[str, float], Mapping[str, float]] = {}
    for known_at, record in known.known("features"):
        found.setdefault((record.signal_id, known_at), record.values)
    return found


def _just_before(moment: float) -> float:
    return math.nextafter(moment, -math.inf)


def latest_time(ctx: RecentContext) -> float:
    """Return the time of the newest thing known."""
    return ctx.latest


def _settled(known: ContextReader, horizon_ns: int) -> dict[str, Outcome]:
    """Return the last word on each signal that says what it earned over the horizon."""
    return {
        outcome.signal_id: outcome
        for outcome in known.get_outcomes()
        if profit_over(horizon_ns, outcome) is not None
    }


def payoff_of(signal: Signal, outcome: Outcome, profit: float | None) -> float | None:
    """Return profit over what was traded; None if either is not known.

    Example:
        >>> from agent_gym.agents.desk.schemas import SignalParams
        >>> signal = Signal("s1", "momentum", SignalParams(0.5, price=200.0), 0.0)
        >>> payoff_of(signal, Outcome("s1", "rejected", counterfactual=True), 2.0)
        0.02
    """
    amount = outcome.filled if outcome.filled > 0.0 else signal.params.amount
    price = outcome.avg_price if outcome.avg_price is not None else signal.params.price
    if profit is None or price is None or not math.isfinite(profit):
        return None
    notional = amount * price
    return profit / notional if notional > 0.0 else None


def profit_over(horizon_ns: int, outcome: Outcome) -> float | None:
    """Return the profit of an outcome over a horizon, be it written 24h or 1d; None if unknown."""
    for name, profit in outcome.pnl_horizon.items():
        if name in _spellings(horizon_ns):
            return profit
    return None


@cache
def _spellings(horizon_ns: int) -> frozenset[str]:
    units = {"s": SECOND_NS, "m": MINUTE_NS, "h": HOUR_NS, "d": DAY_NS}
    return frozenset(
        f"{horizon_ns // ns}{unit}" for unit, ns in units.items() if not horizon_ns % ns
    )


def judged_enough(dataset: Dataset, config: TrainingConfig) -> Dataset:
    """Return the table marked "insufficient" if there are too few rows, or too few of a class."""
    counts = dataset.counts
    rare = min(counts["wins"], counts["losses"])
    problems = []
    if counts["rows"] < config.least_rows:
        problems.append(f"{counts['rows']} labelled signals, {config.least_rows} are needed")
    if rare < config.least_of_a_class:
        problems.append(
            f"{counts['wins']} wins and {counts['losses']} losses, "
            f"{config.least_of_a_class} of each are needed"
        )
    if not problems:
        return dataset
    left_out = ", ".join(f"{n} {why}" for why, n in dataset.excluded.items())
    reason = "; ".join(problems) + (f" (left out: {left_out})" if left_out else "")
    return dataclasses.replace(dataset, status="insufficient", reason=reason)
