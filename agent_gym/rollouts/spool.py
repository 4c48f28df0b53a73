"""How recorded columns reach the disk: a plain spool while running, Parquet when done.

A store is a folder. While it is written it holds ``spool.arrows`` (an Arrow stream, readable up to
the last whole block even after a kill) and ``partial.json``, which says so. finish() turns the
spool into a Parquet file that is named by its own hash, and then puts ``manifest.json`` in place
in one rename: at every moment a reader finds the old store, or the new one, or a marked partial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path, write_json
from agent_gym.core.registry import Config

MANIFEST, PARTIAL, SPOOL = "manifest.json", "partial.json", "spool.arrows"
WAITING_BLOCKS = 3
GROUP_ROWS = 131_072

StoreKind: TypeAlias = Literal["steps", "vectors"]
StoreStatus: TypeAlias = Literal["complete", "partial"]


class StoreManifest(Config):
    """What a store says of itself; nothing in it comes from the clock or the machine."""

    schema_version: int
    kind: StoreKind
    status: StoreStatus
    reason: str | None = Field(default=None, description="why a partial store is partial")
    file: str
    blake2b: str | None = Field(default=None, description="hash of the file; none for a spool")
    rows: int = 0
    columns: tuple[str, ...] = ()
    episodes: tuple[dict[str, Any], ...] = Field(default=(), description="how each one went")
    details: dict[str, Any] = Field(default_factory=dict)


class Spool:
    """Writes record batches in a background thread; a few blocks may wait, then put() blocks."""

    def __init__(
        self,
        folder: Path,
        kind: StoreKind,
        schema_version: int,
        *,
        details: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.folder = folder
        self._draft = StoreManifest(
            schema_version=schema_version,
            kind=kind,
            status="partial",
            file=SPOOL,
            details=details or {},
        )
        _claim(folder, overwrite=overwrite)
        reason = "the run has not ended, or was killed"
        write_json(folder / PARTIAL, self._draft.model_copy(update={"reason": reason}).model_dump())
        self._failure: Exception | None = None
        self._rows = 0
        self._queue: Queue[tuple[Any, Callable[[], None] | None] | None] = Queue(WAITING_BLOCKS)
        self._thread = Thread(target=self._drain, name=f"spool {folder.name}", daemon=True)
        self._thread.start()

    def put(self, batch: Any, release: Callable[[], None] | None = None) -> None:
        """Hand a batch to the writer; ``release`` is called when its memory is free again."""
        self._raise_failure()
        self._rows += batch.num_rows
        self._queue.put((batch, release))

    def finish(
        self,
        schema: Any,
        status: StoreStatus = "complete",
        *,
        reason: str | None = None,
        episodes: tuple[dict[str, Any], ...] = (),
    ) -> StoreManifest:
        """Turn the spool into the final file and say in the manifest what it is."""
        self._queue.put(None)
        self._thread.join()
        self._raise_failure()
        building = self.folder / f"{self._draft.kind}.building"
        try:
            rows = _convert(self.folder / SPOOL, building, schema)
            digest = file_hash(building)
            name = f"{self._draft.kind}-{digest[:16]}.parquet"
            building.replace(self.folder / name)  # lasts with the manifest: same folder, synced
        except (OSError, pa.ArrowException) as error:
            raise self._broken(error) from error
        if rows != self._rows:
            raise self._broken(ValueError(f"{rows} of {self._rows} rows could be read back"))
        manifest = self._draft.model_copy(
            update={
                "status": status,
                "reason": reason,
                "file": name,
                "blake2b": digest,
                "rows": rows,
                "columns": tuple(schema.names),
                "episodes": episodes,
            }
        )
        write_json(self.folder / MANIFEST, manifest.model_dump())
        for leftover in (SPOOL, PARTIAL, *_other_files(self.folder, self._draft.kind, name)):
            (self.folder / leftover).unlink(missing_ok=True)
        return manifest

    def _drain(self) -> None:
        """Write what comes until None; go on emptying after a failure, so put() never hangs."""
        writer, file = None, None
        while (item := self._queue.get()) is not None:
            batch, release = item
            if self._failure is None:
                try:
                    if writer is None:
                        file = pa.OSFile(str(self.folder / SPOOL), "wb")
                        writer = pa.ipc.new_stream(file, batch.schema)
                    writer.write_batch(batch)
                except (OSError, pa.ArrowException) as error:
                    self._failure = error
            if release is not None:
                release()
        try:
            if writer is not None and file is not None:
                writer.close()
                file.close()
        except (OSError, pa.ArrowException) as error:
            self._failure = self._failure or error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._broken(self._failure) from self._failure

    def _broken(self, error: Exception) -> StoreError:
        return StoreError(
            "the steps could not be written",
            where=str(self.folder),
            found=str(error),
            remedy=f"What was written before is kept in {SPOOL}, marked partial",
        )


def read_spool(path: Path, *, cut_off: bool = False) -> Iterator[Any]:
    """Yield the batches of a spool; with ``cut_off`` it ends where a kill has left it."""
    if path.stat().st_size == 0:
        return
    with pa.OSFile(str(path), "rb") as file:
        try:
            yield from pa.ipc.open_stream(file)
        except (OSError, pa.ArrowInvalid):
            if not cut_off:
                raise


def file_hash(path: Path) -> str:
    """Return the hash of a file's bytes."""
    digest = blake2b(digest_size=32)
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _claim(folder: Path, *, overwrite: bool) -> None:
    """Make the folder ours, or refuse: a result is never replaced unless that was asked for."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = [name for name in (MANIFEST, PARTIAL, SPOOL) if (folder / name).exists()]
        if found and not overwrite:
            raise StoreError(
                "there is a store here already",
                where=str(folder),
                found=", ".join(found),
                remedy="Choose another folder, or ask to overwrite",
            )
        (folder / SPOOL).write_bytes(b"")
    except OSError as error:
        raise StoreError("cannot write here", where=str(folder), found=error.strerror) from error


def _other_files(folder: Path, kind: str, kept: str) -> list[str]:
    return [path.name for path in folder.glob(f"{kind}-*.parquet") if path.name != kept]


def _convert(spool: Path, target: Path, schema: Any) -> int:
    """Write the spool as Parquet in groups of a fixed number of rows; return the rows."""
    named = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    counted = [field.name for field in schema if pa.types.is_integer(field.type)]
    rows, waiting, waiting_rows = 0, [], 0
    with (
        atomic_path(target) as path,
        pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=named,
            write_statistics=counted,
        ) as writer,
    ):
        for batch in read_spool(spool):
            waiting.append(batch)
            waiting_rows += batch.num_rows
            if waiting_rows >= GROUP_ROWS:
                rows += _write_group(writer, waiting)
                waiting, waiting_rows = [], 0
        if waiting:
            rows += _write_group(writer, waiting)
    return rows


def _write_group(writer: Any, batches: list[Any]) -> int:
    table = pa.Table.from_batches(batches).unify_dictionaries()
    writer.write_table(table, row_group_size=table.num_rows)
    rows: int = table.num_rows
    return rows
