"""Snapshots in three sets that share no seed: to learn from, to rehearse on, and sealed ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from agent_gym.core.registry import configure
from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.public_file import SUFFIX
from agent_gym.markets.snapshot.sealed import truth_path
from agent_gym.pipeline.automation.snapshot_set import seal

SetName: TypeAlias = Literal["train", "rehearsal", "sealed"]
SETS: tuple[SetName, ...] = get_args(SetName)
Made: TypeAlias = Callable[[], None]


def make_snapshots(
    folder: Path, name: SetName, count: int, seed: int, made: Made | None = None
) -> tuple[Path, ...]:
    """Return so many snapshots of a set, scenarios in turn; those that lie there are kept.

    Args:
        folder: Where the set lies.
        name: Which set; every set draws from seeds of its own.
        count: How many.
        seed: Decides all of them.
        made: Called after each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if name == "sealed":
        seal(folder)
    seeds, names = Seeds(seed).child("snapshots", name), list(SCENARIOS)
    paths = []
    for k in range(count):
        config = configure(SnapshotConfig, {"scenario": names[k % len(names)]}, where="scenario")
        generated = BenchmarkDataGenerator(config).generate(seed=seeds.child(k).as_int())
        path = folder / f"{generated.snapshot.id}{SUFFIX}"
        if not (path.is_file() and truth_path(path).is_file()):
            path = generated.save(folder)
        paths.append(path)
        if made is not None:
            made()
    return tuple(paths)
