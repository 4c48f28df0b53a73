"""The baseline: the approved run that every night is compared with, and the code that made it.

A baseline is a folder that never changes. ``contents.json`` has the hash of every file in it,
``manifest.json`` the hash of that list with who approved it, when and why, and the pointer
(``current.json``, ``anchor.json``) has the hash of the manifest, so whatever is edited, lost or
added is noticed when it is read. Approving another one writes a new folder and moves the pointer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from pydantic import ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json, write_json, write_text
from agent_gym.evaluation.gate.samples import SuiteSamples
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.folders import (
    file_hashes,
    hash_of,
    put_in_place,
    unfinished_folder,
)
from agent_gym.pipeline.nightly.frozen import freeze
from agent_gym.pipeline.nightly.samples import read_samples, samples_document
from agent_gym.pipeline.nightly.setup import Setup, read_setup, setup_document
from agent_gym.pipeline.nightly.workspace import Workspace, checked_id
from agent_gym.reporting.nightly.documents import baseline_document, report_document
from agent_gym.reporting.nightly.run import BaselineRecord, NightlyResult
from agent_gym.reporting.nightly.verdict import NOTHING_YET

POINTER_SCHEMA, CONTENTS_SCHEMA = "agent_gym.pointer/1", "agent_gym.contents/1"
MANIFEST, CONTENTS, CODE = "manifest.json", "contents.json", "code"
Pointer: TypeAlias = Literal["current", "anchor"]

_RESTORE = (
    "Restore the folder from a copy; or remove the pointer {pointer} to say that there is no "
    "baseline, and approve one with `agent-gym nightly --update-baseline --reason TEXT`"
)
_FIRST = "Approve this run with `agent-gym nightly --update-baseline --reason TEXT`"


class NoBaseline(DataError):
    """There is nothing to compare with yet."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline as it was read, every hash checked."""

    folder: Path
    record: BaselineRecord
    setup: Setup
    suite: Suite
    samples: SuiteSamples

    @property
    def code(self) -> Path:
        """Return the folder of the sources that made it."""
        return self.folder / CODE


@dataclass(frozen=True, slots=True)
class Approval:
    """Who approves a run as the baseline, and why.

    ``accepted`` names regressions that are let in, ``uncompared`` lets in a run that could not be
    compared with the baseline before it.
    """

    reason: str
    who: str
    accepted: tuple[str, ...] = ()
    uncompared: bool = False


def read_pointer(workspace: Workspace, pointer: Pointer) -> dict[str, str] | None:
    """Return the id and the manifest's hash that a pointer names; None if there is none."""
    path = workspace.baselines / f"{pointer}.json"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["schema"] != POINTER_SCHEMA:
            raise ValueError(said["schema"])
        return {"id": str(said["id"]), "manifest_hash": str(said["manifest_hash"])}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken(
            workspace, pointer, path, f"a pointer that cannot be read: {error}"
        ) from error


def load_baseline(workspace: Workspace, pointer: Pointer = "current") -> Baseline:
    """Return the baseline that a pointer names.

    Raises:
        NoBaseline: There is no pointer.
        DataError: Something of it is missing or not as it was written.
    """
    said = read_pointer(workspace, pointer)
    if said is None:
        raise NoBaseline(
            NOTHING_YET if pointer == "current" else "there is no anchor yet",
            where=str(workspace.baselines / f"{pointer}.json"),
            remedy=_FIRST,
        )
    return open_baseline(workspace, said["id"], said["manifest_hash"], pointer)


def open_baseline(
    workspace: Workspace,
    baseline_id: str,
    manifest_hash: str | None = None,
    pointer: Pointer = "current",
) -> Baseline:
    """Return a baseline by its id; every file of it is checked."""
    folder = workspace.baseline_folder(baseline_id)
    try:
        manifest = (folder / MANIFEST).read_bytes()
        contents = (folder / CONTENTS).read_bytes()
        fields = json.loads(manifest)
        fields.pop("schema")
        record = msgspec.convert(fields, BaselineRecord)
        if manifest_hash is not None and hash_of(manifest) != manifest_hash:
            raise ValueError(f"{MANIFEST} is not what the pointer names")
        if record.id != baseline_id or hash_of(contents) != record.content_hash:
            raise ValueError(f"{CONTENTS} is not what {MANIFEST} names")
        _check_files(folder, json.loads(contents)["files"])
        setup = read_setup(json.loads((folder / "setup.json").read_text(encoding="utf-8")))
        samples = json.loads((folder / "samples.json").read_text(encoding="utf-8"))
        suite = Suite.model_validate(setup.suite)
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        raise _broken(workspace, pointer, folder, str(error)) from error
    return Baseline(
        folder, record, setup, suite, read_samples(samples, where=str(folder / "samples.json"))
    )


def _check_files(folder: Path, expected: Mapping[str, str]) -> None:
    found = file_hashes(folder)
    for name in (MANIFEST, CONTENTS):
        found.pop(name, None)
    for name in sorted({*found, *expected}):
        if name not in found:
            raise ValueError(f"{name} is missing")
        if name not in expected:
            raise ValueError(f"{name} was added")
        if found[name] != expected[name]:
            raise ValueError(f"{name} was changed")


def write_baseline(
    workspace: Workspace,
    result: NightlyResult,
    setup: Setup,
    approval: Approval,
    created_at: str,
) -> Baseline:
    """Write a run and the code that made it as a baseline; no pointer is moved yet."""
    run = result.run
    uncompared = result.diff is None and result.baseline is not None
    previous = read_pointer(workspace, "current")
    with unfinished_folder(workspace.baselines / "new") as folder:
        write_json(folder / "report.json", report_document(run))
        write_json(folder / "samples.json", samples_document(run.samples))
        write_json(folder / "setup.json", setup_document(setup))
        freeze(tuple(setup.packages), folder / CODE, setup.bot_folder)
        contents = to_json({"schema": CONTENTS_SCHEMA, "files": file_hashes(folder)}) + "\n"
        record = BaselineRecord(
            id=checked_id(f"{_stamp(created_at)}-{hash_of(contents.encode())[:12]}", "baseline"),
            run_id=run.run_id,
            suite_id=run.suite_id,
            suite_version=run.suite_version,
            created_at=created_at,
            reason=approval.reason,
            approved_by=approval.who,
            content_hash=hash_of(contents.encode()),
            code=run.code,
            accepted=tuple(sorted(approval.accepted)),
            previous=None if previous is None else previous["id"],
            uncompared=result.problem if uncompared else None,
        )
        write_text(folder / CONTENTS, contents)
        write_json(folder / MANIFEST, baseline_document(record))
        put_in_place(folder, workspace.baseline_folder(record.id))
    return open_baseline(workspace, record.id)


def point(workspace: Workspace, pointer: Pointer, baseline: Baseline) -> None:
    """Make a pointer name a baseline, in one rename."""
    manifest = (baseline.folder / MANIFEST).read_bytes()
    said = {
        "schema": POINTER_SCHEMA,
        "id": baseline.record.id,
        "manifest_hash": hash_of(manifest),
    }
    write_json(workspace.baselines / f"{pointer}.json", said)


def _stamp(created_at: str) -> str:
    return "".join(sign for sign in created_at if sign.isalnum())


def _broken(workspace: Workspace, pointer: Pointer, where: Path, found: str) -> DataError:
    remedy = _RESTORE.format(pointer=workspace.baselines / f"{pointer}.json")
    return DataError(
        "the baseline is not what was approved", where=str(where), found=found, remedy=remedy
    )
