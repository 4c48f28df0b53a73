"""Where steps go: a list, columns in memory, or a step store on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import override

from agent_gym.core.errors import StoreError
from agent_gym.core.types import Step
from agent_gym.rollouts.closing import Closing
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


class ParquetSink(Closing):
    """Writes a step store; read it back with StepStore.open.

    Use it in a ``with`` block: if the block is left by an exception, or an episode was
    interrupted, the store is closed all the same and marked partial. Each episode has a name of its
    own: the steps of a second one of the same name are refused, so that they cannot merge.

    Args:
        folder: The folder that becomes the store.
        observations: Keep the features too.
        infos: Keep what the world said beside, as JSON.
        block_steps: Steps that are collected before they are handed to the writer thread.
        overwrite: Replace a store that is there already; it stays until the new one is complete. A
            run that ends partial, or is killed, replaces nothing: what it has written stays in
            ``partial-1`` (or the next number) inside the folder, a partial store of its own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        observations: bool = False,
        infos: bool = False,
        block_steps: int = BLOCK_STEPS,
        overwrite: bool = False,
    ) -> None:
        self._spool = Spool(folder, "steps", SCHEMA_VERSION, overwrite=overwrite)
        self._encoder = _OnceEncoder(
            self._spool.put, block_steps, observations=observations, infos=infos
        )
        self._episodes: list[dict[str, Any]] = []
        self._interrupted: str | None = None
        self.manifest: StoreManifest | None = None

    @property
    def folder(self) -> Path:
        """Where the steps are: inside the folder that was asked for while that holds a store."""
        return self._spool.folder

    @property
    def write(self) -> Callable[[Step], None]:
        """The call that takes one step; whoever asks for it may be about to begin an episode."""
        self._encoder.look_again()
        return self._encoder.write

    def flush(self) -> None:
        """Hand what is pending to the writer thread: a kill loses only what comes later."""
        self._encoder.flush()

    def finish_episode(self, result: EpisodeResult) -> None:
        """Keep how an episode went, for the manifest; also one that failed before any step."""
        self._episodes.append(result.as_dict())
        self._encoder.end_episode(result.episode)
        if result.status == "interrupted":
            self._interrupted = f"episode {result.episode} was interrupted"

    @override
    def close(self) -> None:
        """Make the store final; a second call does nothing.

        If steps could not be kept, the store is partial and this raises what was wrong.
        """
        self._close("partial" if self._interrupted else "complete", self._interrupted)

    @override
    def abandon(self, reason: str) -> None:
        """Make what there is final, marked partial, and say why."""
        self._close("partial", reason)

    def _close(self, status: StoreStatus, reason: str | None) -> None:
        if self._encoder.closed:
            return
        failure: StoreError | None = None
        try:
            self._encoder.flush()
        except StoreError as error:
            failure = error
        self._encoder.close()
        if self._encoder.lost is not None:
            status, reason = "partial", reason or f"steps were lost: {self._encoder.lost}"
        self.manifest = self._spool.finish(
            self._encoder.schema or step_schema(),
            status,
            reason=reason,
            episodes=tuple(self._episodes),
        )
        if failure is not None:
            raise failure


class _OnceEncoder(StepEncoder):
    """Takes each episode once, and remembers whether a block was lost."""

    closed = False
    lost: StoreError | None = None

    def __init__(
        self,
        on_block: Callable[[Any], None],
        block_steps: int,
        *,
        observations: bool = False,
        infos: bool = False,
    ) -> None:
        super().__init__(on_block, block_steps, observations=observations, infos=infos)
        self._taken: set[str] = set()
        self._current: str | None = None
        self._newest: dict[str, int] = {}

    def look_again(self) -> None:
        """Let the next step be checked like the first of an episode."""
        self._episode = ""

    def end_episode(self, name: str) -> None:
        """Take no more steps of an episode, even if it had none."""
        self._taken.add(name)
        self._current = None
        self.look_again()

    def close(self) -> None:
        """Take no more steps."""
        self.closed = True
        self.look_again()

    @override
    def flush(self) -> None:
        try:
            super().flush()
        except StoreError as error:
            self.lost = self.lost or error
            raise

    @override
    def _begin_run(self, step: Step) -> None:
        """Check the name; this runs when a name changes or is looked at again, not at each step."""
        if self.closed:
            raise StoreError("this store is closed", where=f"episode {step.episode}, step {step.t}")
        if step.episode != self._current:
            again = step.episode in self._taken
        else:
            again = step.t <= self._newest.get(step.role, -1)
        if again:
            self.look_again()
            raise StoreError(
                "an episode of this name is in the store already",
                where=f"episode {step.episode}, step {step.t}",
                remedy="Give every episode of a store its own name",
            )
        if step.episode != self._current:
            self._taken.add(step.episode)
            self._current, self._newest = step.episode, {}
        self._newest[step.role] = step.t
        super()._begin_run(step)
