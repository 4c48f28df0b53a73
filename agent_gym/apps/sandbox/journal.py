"""The steps of a session on disk as they happen, so that a kill does not take them along.

While a session runs, its folder holds ``begun.json``, which says what it is, and ``steps``, a step
store that is readable up to the last chunk. Both go when the steps are in the trajectory store:
at the end of the session, or when ``recover`` finds what a killed one has left.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.core.files import write_json
from agent_gym.core.types import Decision, Nanos, Observation, Outcome, Role, Step
from agent_gym.rollouts.database import (
    EpisodeFigures,
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.place import check_idle
from agent_gym.rollouts.play import EpisodeResult
from agent_gym.rollouts.sinks import ParquetSink
from agent_gym.rollouts.store import StepStore

BEGUN, STEPS = "begun.json", "steps"
CHUNK_STEPS, CHUNK_S = 512, 1.0
KILLED = "the session was killed before its end"
log = logging.getLogger(__name__)
Figures = Mapping[str, EpisodeFigures]


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a session is kept.

    Attributes:
        name: Of the session.
        folder: Of its reports, and of its journal while it runs.
        database: URL of the trajectory store; None is that of the results.
        trajectories: Folder of the store; None is that of the results.
        record: Keep trajectories.
    """

    name: str
    folder: Path
    database: str | None = None
    trajectories: Path | None = None
    record: bool = True


class Journal:
    """Takes the steps of a session; one that cannot be written is told at the end.

    Args:
        keeping: Where it is kept.
        contexts: What each account's trajectory is.
        period_ns: Of a bar.
    """

    def __init__(
        self, keeping: Keeping, contexts: Mapping[str, TrajectoryContext], period_ns: int
    ) -> None:
        self._keeping, self._contexts, self._period_ns = keeping, dict(contexts), period_ns
        self._clock = SystemClock()
        self._sink: ParquetSink | None = None
        self._due_s = 0.0
        self.lost: StoreError | None = None

    def write(self, step: Step) -> None:
        """Take a step; a session goes on trading if its disk is full."""
        if self.lost is not None:
            return
        try:
            sink = self._sink or self._begin()
            sink.write(step)
            if self._clock.monotonic_s() >= self._due_s:
                sink.flush()
                self._due_s = self._clock.monotonic_s() + CHUNK_S
        except StoreError as error:
            log.error("the session goes on without a journal: %s", error)
            self.lost = error

    def close(self, figures: Figures) -> dict[str, str]:
        """Put the steps into the store, and return the id of each account's trajectory."""
        if self.lost is not None:
            raise self.lost
        if self._sink is not None:
            self._sink.close()
        steps = _replay(self._keeping.folder) if self._sink is not None else iter(())
        return _deliver(self._keeping, self._contexts, steps, figures)

    def _begin(self) -> ParquetSink:
        folder = self._keeping.folder
        said = {name: one.model_dump(mode="json") for name, one in self._contexts.items()}
        begun = {"name": self._keeping.name, "period_ns": self._period_ns, "contexts": said}
        try:
            write_json(folder / BEGUN, begun)
        except OSError as error:
            raise StoreError("the journal cannot be begun", where=str(folder)) from error
        self._sink = ParquetSink(
            folder / STEPS, observations=True, infos=True, block_steps=CHUNK_STEPS
        )
        return self._sink


def was_killed(folder: Path) -> bool:
    """Say whether a folder holds a session that has not ended, or never will."""
    return (folder / BEGUN).exists()


def recover(keeping: Keeping) -> dict[str, Any]:
    """Put what a killed session has left into the store; its trajectories are interrupted ones."""
    path = keeping.folder / BEGUN
    try:
        begun = json.loads(path.read_text(encoding="utf-8"))
        contexts = {
            name: TrajectoryContext.model_validate(one) for name, one in begun["contexts"].items()
        }
    except FileNotFoundError as error:
        raise StoreError(
            "there is no session here that was killed",
            where=str(keeping.folder),
            expected=BEGUN,
            remedy="See the folders of sessions for its name; one that ended is in the store",
        ) from error
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise StoreError("the journal cannot be read", where=str(path), found=str(error)) from error
    check_idle(keeping.folder / STEPS)
    last: dict[str, Step] = {}
    steps = _noting(_replay(keeping.folder), last)
    ids = _deliver(keeping, contexts, steps, None, last)
    return {
        name: {"trajectory": one, "steps": last[name].t + 1 if name in last else 0}
        for name, one in ids.items()
    }


def _deliver(
    keeping: Keeping,
    contexts: Mapping[str, TrajectoryContext],
    steps: Iterator[Step],
    figures: Figures | None,
    last: Mapping[str, Step] | None = None,
) -> dict[str, str]:
    """Write trajectories, and forget the journal once they are safe."""
    totals = dict.fromkeys(map(Role, contexts), 0.0)
    count = 0
    with (
        TrajectoryStore.open(keeping.database, folder=keeping.trajectories) as store,
        TrajectoryRecorder(store) as recorder,
    ):
        recorder.begin(dict(contexts))
        for step in steps:
            recorder.write(step)
            totals[step.role] += step.after.reward
            count = max(count, step.t + 1)
        result = EpisodeResult(keeping.name, count, totals)
        if figures is None:
            result.status, result.error = "interrupted", {"what": KILLED}
        recorder.finish_episode(result)
        for name, one in (_so_far(last or {}) if figures is None else figures).items():
            recorder.annotate(one, name)
        ids = recorder.trajectory_ids(keeping.name)
    shutil.rmtree(keeping.folder / STEPS, ignore_errors=True)
    (keeping.folder / BEGUN).unlink(missing_ok=True)
    return ids


def _so_far(last: Mapping[str, Step]) -> dict[str, EpisodeFigures]:
    """Return what accounts had come to; the last feature is their equity before a bar."""
    return {
        name: EpisodeFigures(
            final_balance=float(step.before.features[-1]) * math.exp(step.after.reward)
        )
        for name, step in last.items()
    }


def _noting(steps: Iterator[Step], last: dict[str, Step]) -> Iterator[Step]:
    for step in steps:
        last[str(step.role)] = step
        yield step


def _replay(folder: Path) -> Iterator[Step]:
    """Yield the steps of a journal; what was seen after one is what was seen before the next."""
    period_ns = json.loads((folder / BEGUN).read_text(encoding="utf-8"))["period_ns"]
    for table in StepStore.open(folder / STEPS).tables():
        for row in table.to_pylist():
            info = row["info"]
            seen = Observation(Nanos(row["ts"]), _numbers(row["observation"]))
            action = row["action"]
            yield Step(
                row["episode"],
                row["t"],
                Role(row["role"]),
                row["agent"],
                seen,
                Decision(
                    _numbers(action) if isinstance(action, list) else action,
                    dict(row["signals"] or ()),
                    row["rationale"],
                ),
                Outcome(
                    Observation(Nanos(row["ts"] + period_ns), seen.features),
                    row["reward"],
                    terminated=row["terminated"],
                    truncated=row["truncated"],
                    info=None if info is None else json.loads(info),
                ),
            )


def _numbers(values: list[float]) -> Any:
    return np.array(values, dtype=np.float64)
