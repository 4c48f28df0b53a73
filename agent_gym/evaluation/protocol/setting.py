"""What every protocol is given and how it calls things in the registry of trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_gym.core.errors import (
    AgentError,
    AgentGymError,
    ConfigError,
    DataError,
    StoreError,
    VenueError,
)
from agent_gym.core.registry import Ref, configure, entry
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.protocol.lockbox import Lockbox
from agent_gym.evaluation.protocol.trials import Stretch, TrialRegistry, day_marks
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT
from agent_gym.rollouts.choice import chosen, make_executor
from agent_gym.rollouts.jobs import Job

Done: TypeAlias = Callable[[int, int], None]
KINDS = {kind.__name__: kind for kind in (ConfigError, DataError, StoreError, VenueError)}
GRID = "best on train of"


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Where trials are registered, who asks, and how many processes do the work.

    Attributes:
        registry: Where every trial is entered before there is a figure of it.
        command: The command that makes the same numbers again.
        commit: The commit of the source.
        jobs: Processes; the numbers do not depend on it.
        imports: Modules that workers import first, for agents without an entry point.
        done: Is told how many of how many pieces of work are done.
    """

    registry: TrialRegistry
    command: tuple[str, ...] = ("agent-gym", "evaluate")
    commit: str | None = None
    jobs: int = 1
    imports: tuple[str, ...] = ()
    done: Done | None = None

    def work(self, jobs: Sequence[Job], places: Sequence[str]) -> list[dict[str, Any]]:
        """Do all jobs, here, in other processes or on a cluster, and return their rows in order.

        A job that gives no row is an error that says its place: an agent, a seed.
        """
        if self.jobs == 1 and chosen() == "local":
            rows = []
            for number, job in enumerate(jobs, start=1):
                rows.append(job.run())
                self._tell(number, len(jobs))
            return rows
        executor = make_executor(self.jobs, imports=self.imports)
        batch = executor.run(jobs, lambda done, total, _row: self._tell(done, total))
        if batch.status == "partial":
            raise KeyboardInterrupt
        for row, place in zip(batch.rows, places, strict=True):
            if row.get("status") != "ok":
                raise _failure(row, place)
        return batch.rows

    def _tell(self, done: int, total: int) -> None:
        if self.done is not None:
            self.done(done, total)


def _failure(row: dict[str, Any], place: str) -> AgentGymError:
    """Return the error of the other process, of the same kind, so that the exit code is too."""
    failed = row.get("error") or {}
    kind = KINDS.get(str(failed.get("error")), AgentError)
    where = failed.get("where")
    return kind(
        str(failed.get("what", "a piece of the evaluation was not done")),
        where=place if where is None else f"{place}, {where}",
        found=failed.get("found", row.get("status")),
        expected=failed.get("expected"),
        remedy=failed.get("remedy"),
    )


def named(arm: Arm) -> dict[str, Any]:
    """Return an arm as the registry of trials names it, every parameter said."""
    if len(arm.refs) == 1:
        return full(arm.refs[0])
    return {GRID: [full(ref) for ref in arm.refs]}


def full(ref: Ref) -> dict[str, Any]:
    """Return an agent with all parameters, also those that were left at their defaults."""
    config = configure(entry("agent", ref.use).config, ref.params, where=f"agent {ref.use}")
    return {"use": ref.use, "params": config.model_dump(mode="json")}


def members(arms: Sequence[Arm]) -> list[Arm]:
    """Return every configuration of every grid as an arm of its own, each once."""
    found = {}
    for arm in arms:
        for ref in arm.refs if len(arm.refs) > 1 else ():
            key = ref.model_dump_json()
            label = " ".join([ref.use, *(f"{k}={v}" for k, v in ref.params.items())])
            found[key] = Arm(label=label, refs=(ref,), baseline=True)
    return list(found.values())


def stretch(bars: Bars, first: int, stop: int) -> Stretch:
    """Return the stretch of a market that rows ``first`` up to ``stop`` are.

    A real market is the same one however the file is cut; every synthetic series is its own. The
    name is only what people read: that two files are one market is seen by the closes, too.
    """
    instrument, provenance = bars.instrument, bars.provenance
    name = f"{instrument.exchange}:{instrument.symbol}"
    if provenance.source == "synthetic":
        name = f"{provenance.origin}:{bars.fingerprint}"
    elif instrument.symbol == UNKNOWN_INSTRUMENT.symbol:
        name = provenance.origin or bars.fingerprint
    first_ns, last_ns = int(bars.ts[first]), int(bars.ts[stop - 1])
    return Stretch(
        name=name,
        kind=instrument.kind,
        period_ns=bars.period_ns,
        fingerprint=bars.fingerprint,
        first_ns=first_ns,
        last_ns=last_ns,
        days=day_marks(bars.ts, bars.close, first_ns, last_ns),
    )


def held_out(bars: Bars, rows: int, registry: TrialRegistry) -> tuple[int, Lockbox | None]:
    """Return how many rows may be looked at, and the lockbox of the others if there are any."""
    seen = len(bars) - rows
    if seen < 2:
        raise ConfigError(
            "the lockbox leaves nothing to test",
            found=f"{rows:,} of {len(bars):,} rows held out",
            remedy="Shorten --lockbox, or take a longer series",
        )
    return seen, Lockbox(registry, stretch(bars, seen, len(bars))) if rows else None
