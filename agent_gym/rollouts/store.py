"""Reading a store back: what it holds is checked before anything is believed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.columns import SCHEMA_VERSION, step_schema, to_numpy
from agent_gym.rollouts.place import MANIFEST, PARTIAL, partial_runs
from agent_gym.rollouts.spool import StoreKind, StoreManifest, file_hash, read_spool


class StepStore:
    """The steps of a run, as ParquetSink wrote them.

    Open with ``StepStore.open(folder)``. ``manifest.status`` is ``partial`` if the run was cut
    short; what was written until then is readable. ``manifest.failed_episodes`` counts the episodes
    that did not end well, and ``manifest.episodes`` says how each one went.
    """

    def __init__(self, folder: Path, manifest: StoreManifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Check schema version and hash, and return the store."""
        return cls(folder, open_manifest(folder, "steps", SCHEMA_VERSION))

    @property
    def partial_runs(self) -> tuple[Path, ...]:
        """The runs that were to replace this store and did not end, each a partial store."""
        return partial_runs(self.folder)

    def table(self, columns: Iterable[str] | None = None) -> Any:
        """Return all steps (or the named columns of them) as a pyarrow Table."""
        names = None if columns is None else list(columns)
        tables = list(self._tables(names))
        if tables:
            return pa.concat_tables(tables).unify_dictionaries()
        empty = step_schema().empty_table()
        return empty if names is None else empty.select(names)

    def columns(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return columns as numpy arrays by name; signals are left to table()."""
        wanted = None if names is None else list(names)
        return to_numpy(self.table(wanted), wanted)

    def episodes(self) -> Iterator[tuple[str, Any]]:
        """Yield (episode, table of its steps) in the order in which they were played."""
        seen: set[str] = set()
        waiting: list[Any] = []
        current, newest = None, -1
        for table in self._tables(None):
            for name, part in _runs(table):
                t = part.column("t").to_numpy()
                if name != current:
                    if current is not None:
                        yield current, pa.concat_tables(waiting).unify_dictionaries()
                    current, newest, waiting = name, -1, []
                if (name in seen and not waiting) or t[0] < newest or (t[1:] < t[:-1]).any():
                    raise StoreError(
                        "the steps of two episodes are mixed",
                        where=str(self.folder),
                        found=name,
                        remedy="Give every episode of a store its own name",
                    )
                seen.add(name)
                newest = t[-1]
                waiting.append(part)
        if current is not None:
            yield current, pa.concat_tables(waiting).unify_dictionaries()

    def tables(self) -> Iterator[Any]:
        """Yield all steps in tables of limited size, in the order in which they were written."""
        return self._tables(None)

    def _tables(self, columns: list[str] | None) -> Iterator[Any]:
        return tables(self.folder, self.manifest, columns)


def open_manifest(folder: Path, kind: StoreKind, schema_version: int) -> StoreManifest:
    """Return the manifest of a store after checking that the store is what it says."""
    manifest = _read_manifest(folder, schema_version)
    if manifest.kind != kind or manifest.schema_version != schema_version:
        raise StoreError(
            "this is another kind of store",
            where=str(folder),
            found=f"{manifest.kind}, schema {manifest.schema_version}",
            expected=f"{kind}, schema {schema_version}",
            remedy="Open it as what it is, or record it again",
        )
    try:
        _check_file(folder, manifest)
    except StoreError:
        if _read_manifest(folder, schema_version) == manifest:
            raise
        return open_manifest(folder, kind, schema_version)  # it was replaced while we looked
    return manifest


def _read_manifest(folder: Path, schema_version: int) -> StoreManifest:
    path = folder / MANIFEST
    try:
        if not path.exists():
            path = folder / PARTIAL
        raw = json.loads(path.read_text(encoding="utf-8"))
        found = raw["schema_version"] if isinstance(raw, dict) else None
        if isinstance(found, int) and found > schema_version:
            raise StoreError(
                "this store was written by a newer version",
                where=str(path),
                found=found,
                expected=f"at most {schema_version}",
                remedy="Update agent-gym to read it",
            )
        return StoreManifest.model_validate(raw)
    except FileNotFoundError as error:
        raise StoreError(
            "there is no store here", where=str(folder), remedy="Look for a typo in the folder"
        ) from error
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise StoreError(
            "the manifest cannot be read",
            where=str(path),
            found=str(error),
            remedy="Set the folder aside and run again",
        ) from error


def tables(folder: Path, manifest: StoreManifest, columns: list[str] | None) -> Iterator[Any]:
    """Yield the content of a store in tables of limited size, in order."""
    path = folder / manifest.file
    try:
        if manifest.blake2b is None:
            for batch in read_spool(path, cut_off=True):
                table = pa.Table.from_batches([batch])
                yield table if columns is None else table.select(columns)
            return
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group, columns=columns)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise StoreError(
            "the store cannot be read",
            where=str(path),
            found=str(error),
            remedy="Open it again: it may have been replaced, or hold other columns",
        ) from error


def _check_file(folder: Path, manifest: StoreManifest) -> None:
    path = folder / manifest.file
    if Path(manifest.file).name != manifest.file or path.is_symlink() or not path.is_file():
        raise StoreError(
            "the store's file is missing or lies elsewhere",
            where=str(folder),
            found=manifest.file,
            expected="a file in this folder",
            remedy="Set the folder aside and run again",
        )
    if manifest.blake2b is None:
        return
    try:
        digest = file_hash(path)
    except OSError as error:
        raise StoreError(
            "the store cannot be read",
            where=str(path),
            found=str(error),
            remedy="See that you may read it",
        ) from error
    if digest != manifest.blake2b:
        raise StoreError(
            "the file is not what was written",
            where=str(path),
            found=digest[:16],
            expected=manifest.blake2b[:16],
            remedy="Set the file aside and run again",
        )


def _runs(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield (episode, rows) for each stretch of rows of one episode."""
    for batch in table.to_batches():
        column = batch.column("episode")
        codes = column.indices.to_numpy()
        names = column.dictionary.to_pylist()
        start = 0
        for stop in [*((codes[1:] != codes[:-1]).nonzero()[0] + 1).tolist(), len(codes)]:
            if stop > start:
                yield names[codes[start]], pa.Table.from_batches([batch.slice(start, stop - start)])
            start = stop
