"""Recording a batch of lanes: six columns of N values a call, 22 bytes a step.

The observation is not kept: it is a row of a matrix that all lanes share, and the time index says
which one. Blocks go round, so nothing is allocated while recording to disk.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any, NoReturn, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from typing_extensions import override

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.closing import Closing
from agent_gym.rollouts.columns import to_numpy
from agent_gym.rollouts.place import partial_runs
from agent_gym.rollouts.spool import WAITING_BLOCKS, Spool, StoreManifest
from agent_gym.rollouts.store import open_manifest, tables

VECTOR_SCHEMA_VERSION = 1

Block: TypeAlias = dict[str, NDArray[Any]]


def vector_dtypes(action: DTypeLike = np.int8) -> dict[str, np.dtype[Any]]:
    """Return the type of each column; with int8 actions a step takes 22 bytes.

    Example:
        >>> sum(dtype.itemsize for dtype in vector_dtypes().values())
        22
    """
    kinds: dict[str, DTypeLike] = {
        "t_index": np.int32,
        "action": action,
        "reward": np.float32,
        "position": np.float32,
        "equity": np.float64,
        "flags": np.uint8,
    }
    return {name: np.dtype(kind) for name, kind in kinds.items()}


class VectorRecorder(Closing):
    """Keeps what happened in N lanes, in memory or in a store on disk.

    Reward and position are rounded to float32, equity stays float64. Whole numbers that do not
    fit their column are an error; handing over arrays of the very type skips that check. Blocks
    that go round (``keep_blocks``, or a folder) are cheap; memory that keeps growing costs about
    three times as much, because the system hands out every page for the first time.

    Args:
        n_lanes: Lanes, the length of every array given to record().
        block: Calls in a block.
        folder: Write a store there; without it everything stays in memory.
        keep_blocks: In memory, keep the newest blocks only; a ring for endless runs.
        action: Type of the action column; float32 for continuous actions.
        overwrite: Replace a store that is there already; it stays until close() has made the new
            one complete. A run that is abandoned or killed replaces nothing: what it has written
            stays in ``partial-1`` (or the next number) inside the folder.

    Example:
        >>> recorder = VectorRecorder(2)
        >>> recorder.record(*(np.array([1, 2]) for _ in range(6)))
        >>> recorder.columns()["reward"].tolist()
        [[1.0, 2.0]]
    """

    def __init__(
        self,
        n_lanes: int,
        block: int = 128,
        *,
        folder: Path | None = None,
        keep_blocks: int | None = None,
        action: DTypeLike = np.int8,
        overwrite: bool = False,
    ) -> None:
        if n_lanes < 1 or block < 1 or (keep_blocks is not None and keep_blocks < 1):
            raise ValueError("n_lanes, block and keep_blocks are whole numbers of at least 1")
        self.n_lanes = n_lanes
        self._block_calls = block
        self._keep = keep_blocks
        self._dtypes = vector_dtypes(action)
        self._full: list[Block] = []
        self._row = 0
        self._spool: Spool | None = None
        self._closed = False
        self._free: Queue[Block] = Queue()
        self.manifest: StoreManifest | None = None
        if folder is not None:
            self._spool = Spool(
                folder,
                "vectors",
                VECTOR_SCHEMA_VERSION,
                details={"n_lanes": n_lanes},
                overwrite=overwrite,
            )
            for _ in range(WAITING_BLOCKS):
                self._free.put(self._new_block())
        self._start_block(self._new_block())

    def record(
        self,
        t_index: NDArray[Any],
        action: NDArray[Any],
        reward: NDArray[Any],
        position: NDArray[Any],
        equity: NDArray[Any],
        flags: NDArray[Any],
    ) -> None:
        """Take one value a lane of each column."""
        if self._closed:
            self._refuse()
        row = self._row
        _put_whole(self._t_index[row], t_index, "t_index")
        _put_whole(self._action[row], action, "action")
        self._reward[row] = reward
        self._position[row] = position
        self._equity[row] = equity
        _put_whole(self._flags[row], flags, "flags")
        self._row = row + 1
        if self._row == self._block_calls:
            self._turn()

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what is in memory as arrays of (calls, lanes), by name."""
        if self._spool is not None:
            raise StoreError(
                "this recorder writes to disk",
                where=str(self._spool.folder),
                remedy="Close it and read it with VectorStore.open",
            )
        rest = {name: column[: self._row] for name, column in self._block.items()}
        parts = [*self._full, rest]
        return {name: np.concatenate([part[name] for part in parts]) for name in self._dtypes}

    @override
    def close(self) -> None:
        """Make the store final, if there is one; a second call does nothing."""
        self._close("complete", None)

    @override
    def abandon(self, reason: str) -> None:
        """Make what there is final, marked partial, and say why."""
        self._close("partial", reason)

    def _close(self, status: Any, reason: str | None) -> None:
        if self._spool is None or self._closed:
            return
        self._closed = True
        if self._row:
            self._last_block(self._spool)
        kinds = [(name, pa.from_numpy_dtype(dtype)) for name, dtype in self._dtypes.items()]
        self.manifest = self._spool.finish(pa.schema(kinds), status, reason=reason)

    def _refuse(self) -> NoReturn:
        raise StoreError(
            "this recorder is closed",
            where=None if self._spool is None else str(self._spool.folder),
            remedy="Make another one",
        )

    def _last_block(self, spool: Spool) -> None:
        batch, self._row = self._batch(self._row), 0
        with suppress(StoreError):  # a disk that failed; finish() says so, and frees the folder
            spool.put(batch)

    def _new_block(self) -> Block:
        shape = (self._block_calls, self.n_lanes)
        return {name: np.zeros(shape, dtype=dtype) for name, dtype in self._dtypes.items()}

    def _start_block(self, block: Block) -> None:
        self._block, self._row = block, 0
        self._t_index, self._action, self._reward = (
            block["t_index"],
            block["action"],
            block["reward"],
        )
        self._position, self._equity, self._flags = (
            block["position"],
            block["equity"],
            block["flags"],
        )

    def _turn(self) -> None:
        """Put the full block away and go on with an empty one."""
        full = self._block
        if self._spool is not None:
            empty = self._free.get()  # waiting comes first: Ctrl-C there leaves all as it was
            self._spool.put(self._batch(self._row), lambda: self._free.put(full))
            self._start_block(empty)
            return
        self._full.append(full)
        if self._keep is not None and len(self._full) >= self._keep:
            self._start_block(self._full.pop(0))
        else:
            self._start_block(self._new_block())

    def _batch(self, rows: int) -> Any:
        columns = {name: pa.array(self._block[name][:rows].reshape(-1)) for name in self._dtypes}
        return pa.record_batch(columns)


class VectorStore:
    """What a VectorRecorder wrote, as arrays of (calls, lanes)."""

    def __init__(self, folder: Path, manifest: StoreManifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Check schema version and hash, and return the store."""
        return cls(folder, open_manifest(folder, "vectors", VECTOR_SCHEMA_VERSION))

    @property
    def partial_runs(self) -> tuple[Path, ...]:
        """The runs that were to replace this store and did not end."""
        return partial_runs(self.folder)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return every column by name, one row a call and one value a lane."""
        parts = list(tables(self.folder, self.manifest, None))
        lanes = int(self.manifest.details.get("n_lanes", 1))
        if not parts:
            return {name: np.empty((0, lanes), kind) for name, kind in vector_dtypes().items()}
        flat = to_numpy(pa.concat_tables(parts))
        return {name: column.reshape(-1, lanes) for name, column in flat.items()}


def _put_whole(row: NDArray[Any], values: NDArray[Any], name: str) -> None:
    row[:] = values
    if values.dtype != row.dtype and not np.array_equal(row, values):
        raise StoreError(
            "a value does not fit its column",
            where=name,
            found=f"{values.dtype} from {values.min()} to {values.max()}",
            expected=str(row.dtype),
        )
