"""What a session leaves behind: trajectories in the store, and the report of each account."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from agent_gym.apps.sandbox.journal import Journal, Keeping
from agent_gym.apps.sandbox.session import Session
from agent_gym.core.errors import StoreError
from agent_gym.core.files import write_json
from agent_gym.core.types import Decision, Nanos, Observation, Outcome, Role, Step
from agent_gym.evaluation.baselines import Comparison
from agent_gym.evaluation.results import staged
from agent_gym.evaluation.saved import write_comparison
from agent_gym.evaluation.session import (
    SessionOrigin,
    judge_session,
    session_results,
    session_sheet,
)
from agent_gym.evaluation.tearsheet import write_sheet
from agent_gym.exchange.spot_records import Change
from agent_gym.markets.bars import PRICE_COLUMNS
from agent_gym.rollouts.database import FEATURE_NAMES, EpisodeFigures, TrajectoryContext

ORDERS, CHART, REPORT, SUMMARY = "orders.json", "chart.png", "report.html", "session.json"
MOST_WORDS = 2_000
log = logging.getLogger(__name__)


class Recording:
    """Watches a session, keeps a journal of it, and judges it when it is over.

    A step is one bar: seen is the bar before with the account at its close, the action is the share
    of equity that was held of each instrument when the bar had opened, the words are the orders,
    the reward is the growth of equity.
    """

    def __init__(self, session: Session, keeping: Keeping, origin: SessionOrigin) -> None:
        self._session, self._keeping, self._origin = session, keeping, origin
        self._accounts = [key.name for key in session.keys]
        self._count = 0
        period_ns = session.floor.venue.period_ns
        contexts = {name: self._context(name) for name in self._accounts}
        self._journal = Journal(keeping, contexts, period_ns) if keeping.record else None
        self._said: dict[str, list[str]] = {name: [] for name in self._accounts}
        self._held: dict[str, tuple[float, ...]] = {}
        self._seen = {name: self._look(name) for name in self._accounts}

    def saw(self, changes: Sequence[Change]) -> None:
        """Note what an account did."""
        for change in changes:
            self._said[change.ticket.account].append(_words(change))

    def before_bar(self) -> None:
        """Look at what accounts hold as a bar goes by."""
        self._held = {name: self._session.floor.exposures(name) for name in self._accounts}

    def after_bar(self, changes: Sequence[Change]) -> None:
        """Make a step of each account."""
        floor = self._session.floor
        for name in self._accounts:
            before, after = floor.marks[name][-2:]
            seen, said = self._look(name), self._said[name]
            fills = [_words(one) for one in changes if one.ticket.account == name]
            held = self._held[name]
            step = Step(
                self._keeping.name,
                self._count,
                Role(name),
                name,
                self._seen[name],
                Decision(
                    held[0] if len(held) == 1 else np.array(held),
                    {"events": float(len(said))},
                    "; ".join(said)[:MOST_WORDS] or None,
                ),
                Outcome(
                    seen,
                    math.log(after.equity / before.equity),
                    truncated=floor.venue.finished,
                    info={"bar": after.bar, "told": fills} if fills else None,
                ),
            )
            if self._journal is not None:
                self._journal.write(step)
            self._seen[name], self._said[name] = seen, []
        self._count += 1

    def close(self) -> dict[str, Any]:
        """Write everything, and return for each account where it is and what it came to."""
        floor, found = self._session.floor, {}
        judged = {name: judge_session(floor, name, self._origin) for name in self._accounts}
        ids, lost = self._try_to_record(judged)
        for name, comparison in judged.items():
            folder = self._keeping.folder / name
            self._write(folder, comparison)
            found[name] = {
                "folder": str(folder),
                "report": str(folder / REPORT),
                "trajectory": ids.get(name),
                "final_equity": float(comparison.main.equity[-1]),
                "equity_hash": comparison.main.equity_hash,
                "metrics": comparison.main.metrics.as_dict(),
            }
        summary = {"name": self._keeping.name, "accounts": found, "revised_fills": floor.revised}
        summary |= {} if lost is None else {"trajectories_lost": lost}
        write_json(self._keeping.folder / SUMMARY, summary)
        return found

    def _write(self, folder: Path, comparison: Comparison) -> None:
        sheet = session_sheet(comparison)
        trading, floor = self._session.trading, self._session.floor
        mine = [one for one in floor.tickets.values() if one.account == comparison.subject]
        with staged(folder) as stage:
            write_comparison(comparison, sheet, stage)
            write_json(stage / ORDERS, {"orders": [trading.words(one) for one in mine]})
            write_sheet(stage / CHART, sheet)
            write_sheet(stage / REPORT, sheet)

    def _try_to_record(self, judged: dict[str, Comparison]) -> tuple[dict[str, str], str | None]:
        """Record if it can be done: the reports are written either way, and say if it was not."""
        try:
            return self._record(judged), None
        except StoreError as error:
            log.error("the trajectories are not in the store: %s", error)
            return {}, str(error)

    def _record(self, judged: dict[str, Comparison]) -> dict[str, str]:
        """Put the trajectories into the store and return their ids."""
        if self._journal is None:
            return {}
        return self._journal.close({name: _figures(one) for name, one in judged.items()})

    def _context(self, name: str) -> TrajectoryContext:
        bars = self._session.floor.venue.tape(self._session.symbols.all[0].name).bars
        return TrajectoryContext(
            agent=name,
            snapshot_id=bars.fingerprint,
            scenario_id="sandbox",
            seed=self._origin.seed,
            run_id=self._keeping.name,
            purpose="evaluation",
            details={
                FEATURE_NAMES: self._feature_names(),
                "market": bars.provenance.origin,
                "command": " ".join(self._origin.argv),
            },
        )

    def _feature_names(self) -> list[str]:
        names = [one.id for one in self._session.symbols.all]
        prices = [f"{name}.{column}" for name in names for column in PRICE_COLUMNS]
        return [*prices, *(f"{name}.units" for name in names), "cash", "equity"]

    def _look(self, name: str) -> Observation:
        floor, mark = self._session.floor, self._session.floor.marks[name][-1]
        values = []
        for symbol in floor.venue.symbols:
            bars = floor.venue.tape(symbol).bars
            values += [float(getattr(bars, column)[mark.bar]) for column in PRICE_COLUMNS]
        seen = np.array([*values, *mark.positions, mark.cash, mark.equity])
        return Observation(Nanos(floor.opened_ns), seen)


class Trajectories(Recording):
    """Keeps the trajectories of a session alone, without reports and baselines."""

    @override
    def close(self) -> dict[str, Any]:
        """Write the trajectories, and return the id of each."""
        floor = self._session.floor
        judged = {
            name: Comparison(name, {name: session_results(floor, name, self._origin)})
            for name in self._accounts
        }
        found = {name: {"trajectory": one} for name, one in self._record(judged).items()}
        with suppress(OSError):  # there was nothing but the journal in it
            self._keeping.folder.rmdir()
        return found


def _figures(comparison: Comparison) -> EpisodeFigures:
    run = comparison.main
    final, opening = float(run.equity[-1]), float(run.equity[0])
    return EpisodeFigures(
        final_balance=final,
        final_pnl=final - opening,
        trades_executed=len(run.fills),
        metrics=run.metrics.as_dict(),
    )


def _words(change: Change) -> str:
    """Return a change as a line of a log.

    A market order has no price; a fill has the one it got.
    """
    ticket, wish, fill = change.ticket, change.ticket.wish, change.fill
    side = "buy" if wish.qty > 0.0 else "sell"
    price = wish.price if fill is None else fill.price
    at = "" if price is None else f" at {price:.8g}"
    qty = abs(wish.qty if fill is None else fill.qty)
    return f"{change.what} #{ticket.id} {side} {qty:.8g} {wish.symbol} {wish.kind.value}{at}"
