"""Two streams of data that cannot be mixed up: what the primary team met, and all else.

A model of the world learns from a ``PrimaryView`` and from nothing else. Such a view holds batches
that the gate has sealed, and only a ``PrimaryBuffer`` makes one, of rows which the primary team's
collector has marked as its own. Auxiliary windows are marked by theirs and lie in an ``AuxBuffer``,
which has no such door.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    PrimaryBatch,
    ProvenanceError,
    Source,
    Tagged,
    Tags,
)
from agent_gym.agents.named_arrays import under
from agent_gym.training.marl.amal.transitions import COLUMNS, Transitions
from agent_gym.training.marl.batch import AUXILIARY, FRESH, Arrays, Bools

PRIMARY_RUN, AUXILIARY_RUN = "primary", "auxiliary"
HELD_OUT = "held_out"


@final
class PrimaryView:
    """Sealed batches of primary rows, oldest first; what a model of the world learns from."""

    __slots__ = ("_batches",)

    def __init__(self, batches: tuple[PrimaryBatch, ...]) -> None:
        if strange := [each for each in batches if not isinstance(each, PrimaryBatch)]:
            raise ProvenanceError(
                "a model of the world learns from sealed primary rows alone",
                found=type(strange[0]).__name__,
                expected="PrimaryBatch",
                remedy="Ask a PrimaryBuffer for its view",
            )
        self._batches = batches

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of all rows."""
        return np.concatenate([batch[name] for batch in self._batches])

    def rows(self) -> Transitions:
        """Return all rows."""
        return Transitions.of({name: self.column(name) for name in COLUMNS}, FRESH)

    def newest(self) -> PrimaryView:
        """Return the rows of the last window alone."""
        return PrimaryView(self._batches[-1:])

    @property
    def held_out(self) -> Bools:
        """Return which rows are of episodes that nothing is learned from."""
        return self.column(HELD_OUT)

    @property
    def leaks(self) -> int:
        """Return how many rows are not of the primary run, whatever they are tagged as."""
        strange = 0
        for batch in self._batches:
            ours = [i for i, (run, _) in enumerate(batch.tags.runs) if run == PRIMARY_RUN]
            strange += int((~np.isin(batch.tags.run, ours)).sum())
        return strange


class PrimaryBuffer:
    """The last windows of the primary team, as the gate let them through.

    Args:
        window: How many rows are kept, at least; whole windows are dropped.
        held_out_every: Of so many episodes of an environment one is held out.
        n_envs: Environments of a window, to tell episodes apart.
    """

    def __init__(self, window: int, held_out_every: int, n_envs: int) -> None:
        self._window, self._every = window, held_out_every
        self._gate = AsymmetricGate(GateConfig())
        self._batches: list[PrimaryBatch] = []
        self._episodes = np.arange(n_envs, dtype=np.int64)
        self._rows = 0

    def __len__(self) -> int:
        return sum(map(len, self._batches))

    def add(self, rows: Transitions) -> None:
        """Take in the next window of the primary team; what others played is refused."""
        _check(rows, FRESH)
        self._admit(rows, self._held_out(rows.ended), PRIMARY_RUN)

    def forge(self, rows: Transitions) -> None:
        """Pass rows of others off as primary ones: an ablation, which ``leaks`` gives away."""
        self._admit(rows, np.zeros(len(rows.ended), np.bool_), AUXILIARY_RUN)

    def view(self) -> PrimaryView:
        """Return what a model may learn from."""
        return PrimaryView(tuple(self._batches))

    def _held_out(self, ended: Bools) -> Bools:
        """Return which rows are of held-out episodes; count on by environment."""
        ends = ended.reshape(-1, len(self._episodes))
        numbers = self._episodes + (np.cumsum(ends, axis=0, dtype=np.int64) - ends)
        self._episodes = self._episodes + ends.sum(axis=0)
        held: Bools = (numbers % self._every == 0).reshape(-1)
        return held

    def _admit(self, rows: Transitions, held_out: Bools, run: str) -> None:
        times = np.arange(self._rows, self._rows + len(held_out))
        self._rows += len(held_out)
        columns = rows.columns() | {HELD_OUT: held_out}
        tags = Tags.of(Source.PRIMARY, run, times)
        sealed = {name: Tagged(column, tags) for name, column in columns.items()}
        self._batches.append(self._gate.primary_batch(sealed))
        while len(self) - len(self._batches[0]) >= self._window:
            self._batches.pop(0)

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return all that it holds."""
        arrays = {
            f"{i}/{name}": np.array(column)
            for i, batch in enumerate(self._batches)
            for name, column in batch.columns.items()
        }
        runs = [batch.tags.runs[0][0] for batch in self._batches]
        starts = [int(batch.tags.t[0]) for batch in self._batches]
        values = {"runs": runs, "starts": starts, "rows": self._rows}
        return arrays | {"episodes": self._episodes.copy()}, values

    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Hold what another one did."""
        self._batches = []
        for i, (run, start) in enumerate(zip(values["runs"], values["starts"], strict=True)):
            self._rows = start
            rows = Transitions.of(under(f"{i}/", arrays), FRESH)
            self._admit(rows, arrays[f"{i}/{HELD_OUT}"], run)
        self._episodes, self._rows = arrays["episodes"].copy(), values["rows"]


class AuxBuffer:
    """The rows of the present generation of auxiliary teams; no model learns from them."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Tagged]] = []
        self._rows = 0

    def __len__(self) -> int:
        return sum(len(part["ended"]) for part in self._parts)

    def __iter__(self) -> Iterator[dict[str, Tagged]]:
        return iter(self._parts)

    def add(self, rows: Transitions) -> None:
        """Take in the next window of auxiliary teams; what the primary one played is refused."""
        _check(rows, AUXILIARY)
        times = np.arange(self._rows, self._rows + len(rows.ended))
        self._rows += len(rows.ended)
        tags = Tags.of(Source.ECHO, AUXILIARY_RUN, times)
        self._parts.append({name: Tagged(each, tags) for name, each in rows.columns().items()})

    def rows(self) -> Transitions:
        """Return all rows, for figures; whoever takes them knows whose they are."""
        parts = {name: [part[name].x for part in self._parts] for name in COLUMNS}
        joined = {name: np.concatenate(own) for name, own in parts.items()}
        return Transitions.of(joined, AUXILIARY)

    def spoil(self, seen: NDArray[Any]) -> None:
        """Replace what was seen and what changed by something else, to see who notices."""
        for part in self._parts:
            for name in ("seen", "change"):
                shape = part[name].x.shape
                part[name] = Tagged(np.resize(seen, shape), part[name].prov)

    def clear(self) -> None:
        """Forget everything, as a new generation does."""
        self._parts = []

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return all that it holds."""
        arrays = {
            f"{i}/{name}": np.array(each.x)
            for i, part in enumerate(self._parts)
            for name, each in part.items()
        }
        return arrays, {"parts": len(self._parts), "rows": self._rows}

    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Hold what another one did."""
        self.clear()
        for i in range(values["parts"]):
            self.add(Transitions.of(under(f"{i}/", arrays), AUXILIARY))
        self._rows = values["rows"]


class AsymmetricReplayBuffer:
    """Both streams; only the primary one leads to a view that can be learned from."""

    def __init__(self, primary: PrimaryBuffer, auxiliary: AuxBuffer) -> None:
        self.primary, self.auxiliary = primary, auxiliary

    def counts(self) -> Counter[str]:
        """Return how many rows are held, by stream."""
        return Counter({PRIMARY_RUN: len(self.primary), AUXILIARY_RUN: len(self.auxiliary)})


def _check(rows: Transitions, source: str) -> None:
    if rows.source != source:
        raise ProvenanceError(
            "these rows are of another stream",
            found=rows.source,
            expected=source,
            remedy="Keep the windows of each collector in the buffer of its own stream",
        )
