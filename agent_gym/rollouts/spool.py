"""How recorded columns reach the disk: a plain spool while running, Parquet when done.

A store is a folder. While it is written it holds ``spool.arrows`` (an Arrow stream, readable up to
the last whole block even after a kill) and ``partial.json``, which says so. finish() turns the
spool into a Parquet file that is named by its own hash, and then puts ``manifest.json`` in place
in one rename: at every moment a reader finds the old store, or the new one, or a marked partial.
Where there is an older store to replace, all this happens in a folder of its own (see place.py),
and only a complete store takes the old one's place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Literal, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, model_validator

from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path, write_json
from agent_gym.core.registry import Config
from agent_gym.rollouts.place import MANIFEST, PARTIAL, SPOOL, claim, no_entry, partial_runs

WAITING_BLOCKS = 3
GROUP_ROWS = 131_072
UNENDED = "the run has not ended, or was killed"
KEPT = "the store that it was to replace is kept in the folder above"

log = logging.getLogger(__name__)

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
    failed_episodes: int = Field(default=0, description="those whose status is not ok")
    details: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, raw: Any) -> Any:
        """Count the failed episodes where the count is not given."""
        if isinstance(raw, dict) and "failed_episodes" not in raw:
            return raw | {"failed_episodes": _failed(raw.get("episodes"))}
        return raw

    @model_validator(mode="after")
    def _true_count(self) -> Self:
        if self.failed_episodes != _failed(self.episodes):
            raise ValueError("failed_episodes is not the number of episodes that failed")
        return self


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
        self._draft: dict[str, Any] = {
            "schema_version": schema_version,
            "kind": kind,
            "details": details or {},
        }
        self._place = claim(folder, overwrite=overwrite)
        self.folder = self._place.folder
        if self._place.replaces:
            for run in partial_runs(folder):
                log.warning("an earlier run did not end; what it has written is kept in %s", run)
        try:
            self._announce()
        except OSError as error:
            self._place.withdraw()
            raise no_entry(folder, error) from error
        except StoreError:
            self._place.withdraw()
            raise
        self._failure: Exception | None = None
        self._ended = False
        self._rows = 0
        self._queue: Queue[tuple[Any, Callable[[], None] | None] | None] = Queue(WAITING_BLOCKS)
        self._thread = Thread(target=self._drain, name=f"spool {folder.name}", daemon=True)
        self._thread.start()

    def put(self, batch: Any, release: Callable[[], None] | None = None) -> None:
        """Hand a batch to the writer; ``release`` is called when its memory is free again."""
        self._raise_failure()
        if self._ended:
            raise StoreError("this store is closed", where=str(self.folder))
        self._queue.put((batch, release))

    def finish(
        self,
        schema: Any,
        status: StoreStatus = "complete",
        *,
        reason: str | None = None,
        episodes: tuple[dict[str, Any], ...] = (),
    ) -> StoreManifest:
        """Turn the spool into the final file and say in the manifest what it is.

        A partial store does not take the place of an older one: it stays where it was written, and
        ``folder`` says where that is. If there is nothing in it, it is removed.
        """
        if self._ended:
            raise StoreError("this store is closed", where=str(self.folder))
        self._ended = True
        try:
            self._queue.put(None)
            self._thread.join()
            self._raise_failure()
            return self._settle(schema, status, reason, episodes)
        except (OSError, pa.ArrowException, MemoryError, StoreError) as error:
            if isinstance(error, StoreError) and error.remedy is not None:
                raise
            raise self._broken(error) from error
        finally:
            self._place.release()

    def _settle(
        self,
        schema: Any,
        status: StoreStatus,
        reason: str | None,
        episodes: tuple[dict[str, Any], ...],
    ) -> StoreManifest:
        place, kind = self._place, self._draft["kind"]
        building = self.folder / f"{kind}.building"
        rows = _convert(self.folder / SPOOL, building, schema)
        if rows != self._rows:
            raise self._broken(ValueError(f"{rows} of {self._rows} rows could be read back"))
        digest = file_hash(building)
        stays = place.replaces and status == "partial"
        manifest = StoreManifest(
            **self._draft,
            status=status,
            reason=f"{reason}; {KEPT}" if stays else reason,
            file=f"{kind}-{digest[:16]}.parquet",
            blake2b=digest,
            rows=rows,
            columns=tuple(schema.names),
            episodes=episodes,
        )
        if stays and not rows and not episodes:
            self.folder = place.target
            place.withdraw()
            return manifest
        home = place.folder if stays else place.target
        building.replace(home / manifest.file)  # lasts with the manifest: same folder, synced
        write_json(home / MANIFEST, manifest.model_dump())
        place.tidy(home, manifest.file)
        self.folder = home
        if stays:
            log.warning("the run is partial, so %s is kept; it is in %s", place.target, home)
        return manifest

    def _announce(self) -> None:
        """Say that there is a run here which has not ended."""
        reason = f"{UNENDED}; {KEPT}" if self._place.replaces else UNENDED
        partial = StoreManifest(**self._draft, status="partial", reason=reason, file=SPOOL)
        write_json(self.folder / PARTIAL, partial.model_dump())

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
                    self._rows += batch.num_rows
                except (OSError, pa.ArrowException, MemoryError) as error:
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
        kept = f"What was written before is kept in {self.folder / SPOOL}, marked partial"
        return StoreError(
            "the steps could not be written",
            where=str(self.folder),
            found=str(error),
            remedy=f"{kept}. See that the disk has room and can be written to, and run again",
        )


def _failed(episodes: Any) -> int:
    rows = episodes if isinstance(episodes, list | tuple) else ()  # not checked yet, see above
    return sum(row.get("status") != "ok" for row in rows if isinstance(row, dict))


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
