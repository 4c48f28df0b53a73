"""Data sets: the snapshots that agents play, and how often each was played."""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.apps.api.service import Service
from agent_gym.core.errors import ConfigError
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.types import Snapshot
from agent_gym.pipeline.runtime.market import Snapshots
from agent_gym.rollouts.database import Trajectory, TrajectoryFilter

SIZE = 50
BEST = 10


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot of the list, and how many trajectories were played on it."""

    name: str
    snapshot: Snapshot
    size_bytes: int
    trajectories: int


@dataclass(frozen=True, slots=True)
class DataPage:
    """Some snapshots, and how many there are; sealed ones are only counted."""

    rows: tuple[SnapshotRow, ...]
    total: int
    sealed: int


@dataclass(frozen=True, slots=True)
class SnapshotFigures:
    """One snapshot, and who did best on it."""

    snapshot: Snapshot
    best: tuple[Trajectory, ...]


def data_page(service: Service, page: int) -> DataPage:
    """Return one page of the training snapshots."""
    known = Snapshots(service.folder.snapshots("train"))
    names = known.ids()
    first = (min(page, max(1, -(-len(names) // SIZE))) - 1) * SIZE
    count = service.stages.store.count
    rows = tuple(
        SnapshotRow(
            name,
            load_snapshot(known.path(name)),
            known.path(name).stat().st_size,
            count(TrajectoryFilter(snapshot_id=name)),
        )
        for name in names[first : first + SIZE]
    )
    sealed = len(Snapshots(service.folder.snapshots("sealed")).ids())
    return DataPage(rows, len(names), sealed)


def snapshot_figures(service: Service, name: str) -> SnapshotFigures:
    """Return one training snapshot; sealed ones are not shown to anybody."""
    known = Snapshots(service.folder.snapshots("train"))
    if name not in known.ids():
        raise ConfigError("there is no such snapshot", found=name[:200])
    chosen = TrajectoryFilter(snapshot_id=name)
    best = service.stages.store.page(chosen, sort="total_reward", limit=BEST)
    return SnapshotFigures(load_snapshot(known.path(name)), best.rows)
