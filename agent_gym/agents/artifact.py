"""The folder a policy is kept in: its files, and a manifest with the hash of each of them.

Files are raw tensors (safetensors) and JSON; nothing is ever unpickled. The model hash is made of
the names and hashes of the files alone, so two folders with the same weights and settings are the
same model, whoever trained it on what; that goes into the manifest beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from agent_gym.agents.sb3.folder import atomic_folder, settled
from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import to_json
from agent_gym.core.manifest import installed_versions
from agent_gym.core.registry import Config

FORMAT = "agent_gym.artifact/1"
MANIFEST = "manifest.json"
LARGEST_MANIFEST_BYTES = 1 << 20
NAME = re.compile(r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")


class ArtifactManifest(Config):
    """What a policy is, what it was made from, and the SHA-256 of each of its files."""

    format: str = FORMAT
    kind: str = Field(description="who reads it, such as neural/market")
    model_hash: str
    files: dict[str, str]
    parents: tuple[str, ...] = Field(description="model hashes it was trained from")
    data_hash: str | None = Field(description="hash of the ids of what it was trained on")
    config: dict[str, Any] = Field(description="settings of the training")
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class About:
    """Where a policy comes from; none of it changes what it does."""

    parents: tuple[str, ...] = ()
    data_hash: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


def model_hash_of(files: Mapping[str, bytes]) -> str:
    """Return the hash of a list of files: their names and what is in them.

    Example:
        >>> one = model_hash_of({"a.json": b"1", "b.json": b"2"})
        >>> one == model_hash_of({"b.json": b"2", "a.json": b"1"}), one == model_hash_of({})
        (True, False)
    """
    return _hash_of_list({name: _sha256(content) for name, content in files.items()})


def write_artifact(
    folder: Path, kind: str, files: Mapping[str, bytes], about: About | None = None
) -> ArtifactManifest:
    """Put files and their manifest into a folder of their own, in the place of what was there."""
    about = about or About()
    hashes = {name: _sha256(content) for name, content in files.items()}
    _check_place(folder, set(hashes))
    manifest = ArtifactManifest(
        kind=kind,
        model_hash=_hash_of_list(hashes),
        files=hashes,
        parents=about.parents,
        data_hash=about.data_hash,
        config=dict(about.config),
        versions=installed_versions(),
    )
    with atomic_folder(folder) as place:
        for name, content in files.items():
            (place / name).write_bytes(content)
        text = to_json(manifest.model_dump(mode="json")) + "\n"
        (place / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def read_artifact(folder: Path, kind: str) -> tuple[ArtifactManifest, dict[str, bytes]]:
    """Read every file of an artifact; one that is changed, missing or too many is refused."""
    folder = settled(folder)
    manifest = read_manifest(folder)
    if manifest.kind != kind:
        raise DataError(
            "this is another kind of policy", where=str(folder), found=manifest.kind, expected=kind
        )
    inside = {path.name for path in folder.iterdir()}
    if inside != {*manifest.files, MANIFEST}:
        raise DataError(
            "the files of a policy are not those of its manifest",
            where=str(folder),
            found=", ".join(sorted(inside)),
            expected=", ".join(sorted({*manifest.files, MANIFEST})),
        )
    files = {name: _read(folder / name) for name in manifest.files}
    for name, content in files.items():
        if _sha256(content) != manifest.files[name]:
            raise _damaged(folder / name, "other bytes than were written")
    return manifest, files


def read_manifest(folder: Path) -> ArtifactManifest:
    """Read a manifest and check that it agrees with itself; the files are not opened."""
    path = settled(folder) / MANIFEST
    content = _read(path, LARGEST_MANIFEST_BYTES)
    try:
        manifest = ArtifactManifest.model_validate(json.loads(content))
    except (UnicodeError, ValueError, RecursionError, ValidationError) as error:
        raise _damaged(path, type(error).__name__) from error
    if manifest.format != FORMAT:
        raise DataError(
            "this policy has another format",
            where=str(path),
            found=manifest.format,
            expected=FORMAT,
        )
    if bad := [name for name in manifest.files if not NAME.match(name)]:
        raise _damaged(path, f"a file name {bad[0]!r}")
    if manifest.model_hash != _hash_of_list(manifest.files):
        raise _damaged(path, "a model hash that is not that of its files")
    return manifest


def _check_place(folder: Path, names: set[str]) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError("a policy needs a folder", where=str(folder), found="a file")
    inside = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if others := sorted(inside - names - {MANIFEST}):
        raise StoreError(
            "this folder holds other files than the policy's",
            where=str(folder),
            found=", ".join(others[:3]),
            remedy="Name a folder of its own for the policy",
        )


def _read(path: Path, largest: int | None = None) -> bytes:
    try:
        if path.is_symlink() or (largest is not None and path.stat().st_size > largest):
            raise _damaged(path, "a link, or a file that is too large")
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            "a file of a policy cannot be read",
            where=str(path),
            found=error.strerror,
            remedy="Name the folder that training has written",
        ) from error


def _hash_of_list(hashes: Mapping[str, str]) -> str:
    lines = "".join(f"{name} {hashes[name]}\n" for name in sorted(hashes))
    return _sha256(lines.encode())


def _sha256(content: bytes) -> str:
    return sha256(content).hexdigest()


def _damaged(path: Path, found: str) -> DataError:
    return DataError(
        f"{path.name} of a policy is damaged",
        where=str(path),
        found=found,
        remedy="Take another copy of the policy, or train it again",
    )
