"""Where steps go: a list, columns in memory, or a step store on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from agent_gym.core.types import Step
from agent_gym.rollouts.columns import SCHEMA_VERSION, StepEncoder, step_schema, to_numpy
from agent_gym.rollouts.play import EpisodeResult
from agent_gym.rollouts.spool import Spool, StoreManifest, StoreStatus

BLOCK_STEPS = 4096


class MemorySink:
    """Keeps every step as it is; for tests, short episodes and people who want to look."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.write: Callable[[Step], None] = self.steps.append

    def close(self) -> None:
        """Nothing to do: the steps stay."""


class ColumnSink:
    """Keeps steps as Arrow columns in memory, a block at a time.

    Args:
        observations: Keep the features too; off by default, since they can be rebuilt from the
            market and take most of the room.
        block_steps: Steps that are collected before they become columns.
    """

    def __init__(self, *, observations: bool = False, block_steps: int = BLOCK_STEPS) -> None:
        self._blocks: list[Any] = []
        self._encoder = StepEncoder(self._blocks.append, block_steps, observations=observations)
        self.write: Callable[[Step], None] = self._encoder.write

    def close(self) -> None:
        """Make columns of what is pending."""
        self._encoder.flush()

    def table(self) -> Any:
        """Return everything so far as a pyarrow Table."""
        self._encoder.flush()
        schema = self._encoder.schema or step_schema()
        return pa.Table.from_batches(self._blocks, schema).unify_dictionaries()

    def columns(self) -> dict[str, Any]:
        """Return everything so far as numpy arrays by name."""
        return to_numpy(self.table())


class ParquetSink:
    """Writes a step store; read it back with StepStore.open.

    Use it in a ``with`` block: if the block is left by an exception, or an episode was
    interrupted, the store is closed all the same and marked partial.

    Args:
        folder: The folder that becomes the store.
        observations: Keep the features too.
        block_steps: Steps that are collected before they are handed to the writer thread.
        overwrite: Replace a store that is there already; it stays until the new one is complete.
    """

    def __init__(
        self,
        folder: Path,
        *,
        observations: bool = False,
        block_steps: int = BLOCK_STEPS,
        overwrite: bool = False,
    ) -> None:
        self._spool = Spool(folder, "steps", SCHEMA_VERSION, overwrite=overwrite)
        self._encoder = StepEncoder(self._spool.put, block_steps, observations=observations)
        self.write: Callable[[Step], None] = self._encoder.write
        self._episodes: list[dict[str, Any]] = []
        self._interrupted: str | None = None
        self.manifest: StoreManifest | None = None

    def finish_episode(self, result: EpisodeResult) -> None:
        """Keep how an episode went, for the manifest; also one that failed before any step."""
        self._episodes.append(result.as_dict())
        if result.status == "interrupted":
            self._interrupted = f"episode {result.episode} was interrupted"

    def close(self) -> None:
        """Make the store final; a second call does nothing."""
        self._close("partial" if self._interrupted else "complete", self._interrupted)

    def abandon(self, reason: str) -> None:
        """Make what there is final, marked partial, and say why."""
        self._close("partial", reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(f"ended by {kind.__name__}")

    def _close(self, status: StoreStatus, reason: str | None) -> None:
        if self.manifest is not None:
            return
        self._encoder.flush()
        self.manifest = self._spool.finish(
            self._encoder.schema or step_schema(),
            status,
            reason=reason,
            episodes=tuple(self._episodes),
        )
