"""The trial registry: every configuration that was tested, with what it returned.

A *trial* is an agent with its configuration, on given rows of a market, under a protocol and costs.
How often one has looked at a market decides how impressive the best look is, so figures that are
corrected for it take the number of trials and the spread of their Sharpe ratios from here and from
nowhere else: without an entry there is no figure. The same trial again is the same entry.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.clock import DAY_NS, Clock
from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.protocol.journal import Journal, Record

TRIAL = "trial"
RETURN = "return"
MARK, NO_BARS = 3, "..."  # letters of base64 a day
LEAST_SHARE = 10  # more than one day in so many must be the same; by chance one in 262,144 is
_DAYS = {"days"}  # follow from the fingerprint, so nothing is told apart by them
_UNREADABLE = (pa.ArrowException, OSError, KeyError)


class Stretch(Config):
    """A stretch of one market: what was traded, and from when to when it was tested."""

    name: str = Field(description="symbol, file or market that the bars come from")
    kind: str
    period_ns: int
    fingerprint: str = Field(description="hash of every byte of the bars")
    first_ns: int = Field(description="open time of the first tested bar")
    last_ns: int = Field(description="open time of the last tested bar")
    days: str = Field(default="", description="a mark of the closes of each day, see day_marks")

    def meets(self, other: Stretch) -> bool:
        """Say whether two stretches have tested time of one market in common.

        Cutting a series a little differently makes another file, but not another market; neither
        does another file name or another symbol, if the days that both hold have the same closes.
        """
        if self.first_ns > other.last_ns or other.first_ns > self.last_ns:
            return False
        place = (self.name, self.kind, self.period_ns)
        if place == (other.name, other.kind, other.period_ns):
            return True
        return self.fingerprint == other.fingerprint or self._same_days(other)

    def as_dict(self) -> dict[str, Any]:
        """Return the stretch as people read it, without the marks of its days."""
        return self.model_dump(mode="json", exclude={"days"})

    def _same_days(self, other: Stretch) -> bool:
        """Say whether more days are the same than chance would have it.

        The days at both ends of a file may be cut, so not all of them need to be.
        """
        own, others = self._marks(), other._marks()
        shared = own.keys() & others.keys()
        equal = sum(own[day] == others[day] for day in shared)
        return equal > len(shared) // LEAST_SHARE

    def _marks(self) -> dict[int, str]:
        first, days = self.first_ns // DAY_NS, len(self.days) // MARK
        marks = {first + n: self.days[n * MARK : (n + 1) * MARK] for n in range(days)}
        return {day: mark for day, mark in marks.items() if mark != NO_BARS}


def day_marks(ts: NDArray[np.int64], close: FloatArray, first_ns: int, last_ns: int) -> str:
    """Return three letters for each day (UTC) from one time to another: a hash of its closes.

    All given rows of a day count, so that two stretches of one series agree on the days that both
    reach into.
    """
    day = ts // DAY_NS
    marks = []
    for number in range(first_ns // DAY_NS, last_ns // DAY_NS + 1):
        low, high = np.searchsorted(day, (number, number + 1))
        said = ts[low:high].tobytes() + close[low:high].tobytes()
        letters = urlsafe_b64encode(blake2b(said, digest_size=3).digest()).decode()[:MARK]
        marks.append(letters if high > low else NO_BARS)
    return "".join(marks)


class TrialPlan(Config):
    """What is tried, before anything is known of the outcome."""

    agent: dict[str, Any] = Field(description="name in the registry and all parameters")
    label: str
    market: Stretch
    protocol: dict[str, Any]
    costs: dict[str, Any]
    seeds: tuple[int, ...] = (0,)

    @property
    def bench(self) -> str:
        """Return the hash of everything but the agent: trials of one bench can be compared."""
        said = self.model_dump(mode="json", exclude={"agent": True, "label": True, "market": _DAYS})
        return fingerprint(said)


@dataclass(frozen=True, slots=True)
class Trial:
    """An entry of the registry."""

    id: str
    plan: TrialPlan
    series: str
    n: int
    per_year: float
    at_ns: int
    index: int

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {
            "id": self.id,
            "label": self.plan.label,
            "agent": self.plan.agent,
            "market": self.plan.market.as_dict(),
            "protocol": self.plan.protocol,
            "costs": self.plan.costs,
            "seeds": list(self.plan.seeds),
            "series": self.series,
            "returns": self.n,
            "per_year": self.per_year,
            "at_ns": self.at_ns,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A plan and what came of it: returns of equal periods, so many of which make a year."""

    plan: TrialPlan
    returns: FloatArray
    per_year: float


class TrialRegistry:
    """Trials in a chained file, their return series beside it, named by their content.

    Args:
        path: The JSONL file; the series go to the folder ``<name>.series`` beside it.
        clock: Tells when a trial was registered.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self.journal = Journal(path, clock)
        self._folder = path.with_name(path.name + ".series")

    def register(self, outcomes: Sequence[Outcome]) -> list[Trial]:
        """Enter trials and return their entries; one that is known already is not entered again.

        The same plan with another series is another trial: the code behind it has changed.
        """
        self.check()
        for outcome in outcomes:
            self._write_series(outcome.returns)
        found = []
        with self.journal.writing() as pen:
            known = {trial.id: trial for trial in _trials(pen.records)}
            for outcome in outcomes:
                body = _body(outcome)
                if body["id"] not in known:
                    known[body["id"]] = _trial(pen.add(TRIAL, body))
                found.append(known[body["id"]])
        return found

    def check(self) -> list[str]:
        """Read the whole record before any work begins, and return what is odd about it.

        Nothing is written. A file that is no registry is a ConfigError, a broken one a StoreError.
        """
        self.journal.records()
        return self.journal.warnings()

    def trials(self) -> list[Trial]:
        """Return all trials, oldest first."""
        return list(_trials(self.journal.records()))

    def trial(self, trial_id: str) -> Trial:
        """Return an entry; a trial that was never registered is an error."""
        for trial in self.trials():
            if trial.id == trial_id:
                return trial
        raise StoreError(
            "this trial is not registered, so there is no figure for it",
            where=str(self.path),
            found=trial_id,
            remedy="Run it with `agent-gym evaluate`, which registers what it tests",
        )

    def returns(self, trial: Trial) -> FloatArray:
        """Return the series of a trial, checked against the hash in its entry."""
        path = self._folder / f"{trial.series}.parquet"
        try:
            column = pq.read_table(path).column(RETURN).to_numpy()
        except _UNREADABLE as error:
            raise self._lost(trial, error) from error
        values: FloatArray = np.ascontiguousarray(column, dtype=np.float64)
        if series_hash(values) != trial.series:
            raise self._lost(trial, "other returns than were registered")
        return values

    def verify(self) -> dict[str, Any]:
        """Check the whole chain and every series; the first fault is a StoreError."""
        records = self.journal.records()
        trials = list(_trials(records))
        for trial in trials:
            if trial.n != self.returns(trial).size:
                raise self._lost(trial, "another number of returns than was registered")
        head = records[-1].hash if records else None
        return {
            "records": len(records),
            "trials": len(trials),
            "head": head,
            "warnings": self.journal.warnings(),
        }

    def _write_series(self, returns: FloatArray) -> None:
        if not (returns.ndim == 1 and np.isfinite(returns).all()):
            raise StoreError("a trial is a series of finite returns", found=returns.shape)
        path = self._folder / f"{series_hash(returns)}.parquet"
        if path.exists():
            return
        with atomic_path(path) as temporary:
            table = pa.table({RETURN: np.ascontiguousarray(returns)})
            pq.write_table(table, temporary, compression="zstd", use_dictionary=False)

    def _lost(self, trial: Trial, found: object) -> StoreError:
        return StoreError(
            "the returns of a registered trial are not what they were",
            where=f"{self._folder / trial.series}.parquet, trial {trial.id}",
            found=found,
            remedy="Restore the file from a copy, or run the trial again",
        )


def series_hash(returns: FloatArray) -> str:
    """Return the hash of every bit of a series."""
    return blake2b(np.ascontiguousarray(returns).tobytes(), digest_size=16).hexdigest()


def _body(outcome: Outcome) -> dict[str, Any]:
    plan, series = outcome.plan.model_dump(mode="json"), series_hash(outcome.returns)
    told = outcome.plan.model_dump(mode="json", exclude={"label": True, "market": _DAYS})
    return {
        "id": fingerprint({"plan": told, "series": series}),
        "plan": plan,
        "series": series,
        "n": int(outcome.returns.size),
        "per_year": float(outcome.per_year),
    }


def _trials(records: Iterable[Record]) -> Iterable[Trial]:
    return (_trial(record) for record in records if record.kind == TRIAL)


def _trial(record: Record) -> Trial:
    body = record.body
    return Trial(
        id=body["id"],
        plan=TrialPlan.model_validate(body["plan"]),
        series=body["series"],
        n=body["n"],
        per_year=body["per_year"],
        at_ns=record.at_ns,
        index=record.index,
    )
