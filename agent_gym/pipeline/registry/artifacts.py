"""The artifact store: folders named by the hash of their files, signed, and never overwritten.

``<model hash>/artifact`` has the files and their manifest as training has written them,
``<model hash>/signature.json`` who has signed the manifest. A folder appears by one rename. What is
loaded is checked every time: names, hashes, and the signature of a trusted key.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from agent_gym.agents.artifact import MANIFEST, ArtifactManifest, read_artifact, read_manifest
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import write_json
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.publication import Publication
from agent_gym.pipeline.registry.refusals import RefusedArtifact

FORMAT, UNDATED = "agent_gym.signature/2", "agent_gym.signature/1"
FILES, SIGNATURE = "artifact", "signature.json"
HASH = re.compile(r"[0-9a-f]{64}\Z")
LARGEST_SIGNATURE_BYTES = 4_096
PURPOSE = b"agent-gym artifact manifest\n"  # a signature is good for nothing else


@dataclass(frozen=True, slots=True)
class VerifiedArtifact:
    """An artifact whose every file and signature was right when it was loaded.

    ``described`` is the SHA-256 of its manifest.
    """

    model_hash: str
    folder: Path
    manifest: ArtifactManifest
    signed_by: str
    described: str

    def read(self, name: str) -> bytes:
        """Return a file's bytes, checked once more: exactly these were signed."""
        expected = self.manifest.files.get(name)
        if expected is None:
            raise ConfigError(
                "an artifact has no such file",
                found=name,
                expected=", ".join(sorted(self.manifest.files)),
            )
        content = _bytes(self.folder / name, name)
        if sha256(content).hexdigest() != expected:
            raise refused(self.model_hash, f"{name} was changed")
        return content


class ArtifactStore:
    """Signed artifacts in a folder, one folder each, named by the model hash."""

    def __init__(
        self,
        root: Path,
        keys: KeyRing,
        *,
        clock: Clock | None = None,
        publication: Publication | None = None,
    ) -> None:
        self.root, self.keys, self.publication = root, keys, publication
        self._clock = clock or SystemClock()

    def put(self, source: Path) -> VerifiedArtifact:
        """Copy an artifact in and sign it; one that is there already stays as it is."""
        manifest, files = read_artifact(source, read_manifest(source).kind)
        described = (source / MANIFEST).read_bytes()
        target = self._place(manifest.model_hash)
        if not target.exists():
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                self._write(target, files | {MANIFEST: described})
            except OSError as error:
                raise StoreError(
                    "cannot keep an artifact here",
                    where=str(self.root),
                    found=error.strerror or str(error),
                    remedy="Look at the free space and the rights of this folder",
                ) from error
        kept = self.load(manifest.model_hash)
        if self.publication is not None:
            self.publication.publish(target, manifest.model_hash)
        return kept

    def sign(self, model_hash: str, described: str | None = None) -> VerifiedArtifact:
        """Sign an artifact with the present key, whoever has signed it before.

        Every file is checked first; that the manifest is the one that was registered is checked as
        far as that is known.

        Args:
            model_hash: Of the artifact.
            described: SHA-256 of its manifest as it was registered.
        """
        place = self._place(model_hash)
        self._retrieve(place, model_hash)
        content = _bytes(place / FILES / MANIFEST, MANIFEST)
        if described is not None and sha256(content).hexdigest() != described:
            raise refused(model_hash, f"{MANIFEST} is not the one that was registered")
        self._check_files(place, model_hash)
        write_json(place / SIGNATURE, self._signature(content))
        if self.publication is not None:
            self.publication.publish(place, model_hash)
        return self.load(model_hash)

    def load(self, model_hash: str) -> VerifiedArtifact:
        """Return an artifact after checking every file of it.

        Raises:
            RefusedArtifact: A file was changed, added or lost, or no trusted key has signed it.
        """
        place = self._place(model_hash)
        self._retrieve(place, model_hash)
        _exactly(place, {FILES, SIGNATURE}, model_hash)
        described = _bytes(place / FILES / MANIFEST, MANIFEST)
        key = self._signer(_bytes(place / SIGNATURE, SIGNATURE), described, model_hash)
        manifest = self._check_files(place, model_hash)
        digest = sha256(described).hexdigest()
        return VerifiedArtifact(model_hash, place / FILES, manifest, key, digest)

    def _check_files(self, place: Path, model_hash: str) -> ArtifactManifest:
        """Return the manifest, once every file is what it says."""
        folder = place / FILES
        try:
            manifest = read_manifest(folder)
        except DataError as error:
            raise refused(model_hash, f"{MANIFEST}: {error}") from error
        if manifest.model_hash != model_hash:
            raise refused(model_hash, f"{MANIFEST} names another model {manifest.model_hash[:12]}")
        _exactly(folder, {*manifest.files, MANIFEST}, model_hash)
        found = VerifiedArtifact(model_hash, folder, manifest, "", "")
        for name in manifest.files:
            found.read(name)
        return manifest

    def _retrieve(self, place: Path, model_hash: str) -> None:
        """Make sure that there is a folder, fetched if it is only published."""
        if not place.exists() and self.publication is not None:
            self.root.mkdir(parents=True, exist_ok=True)
            incoming = Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.root))
            try:
                if self.publication.retrieve(model_hash, incoming):
                    if not (incoming / FILES).is_dir():
                        raise refused(model_hash, "its record names no files")
                    self._settle(incoming, place)
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
        if not place.is_dir() or place.is_symlink():
            raise refused(model_hash, "the artifact is missing")

    def hashes(self) -> tuple[str, ...]:
        """Return the model hashes of all folders, sorted; nothing is checked."""
        if not self.root.is_dir():
            return ()
        return tuple(sorted(path.name for path in self.root.iterdir() if HASH.match(path.name)))

    def _place(self, model_hash: str) -> Path:
        if not HASH.match(model_hash):
            raise ConfigError(
                "this is no model hash", found=model_hash[:80], expected="64 hexadecimal digits"
            )
        return self.root / model_hash

    def _write(self, target: Path, files: dict[str, bytes]) -> None:
        place = Path(tempfile.mkdtemp(prefix=".incoming-", dir=self.root))
        try:
            (place / FILES).mkdir()
            for name, content in files.items():
                (place / FILES / name).write_bytes(content)
            write_json(place / SIGNATURE, self._signature(files[MANIFEST]))
            self._settle(place, target)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _settle(self, place: Path, target: Path) -> None:
        """Sync a folder and let it appear; if another process was first, its own stays."""
        for path in (*sorted((place / FILES).iterdir()), place / FILES, place):
            _sync(path)
        place.chmod(0o755)
        try:
            place.rename(target)
        except OSError:
            if not target.exists():
                raise
            return  # what is there is checked when it is loaded
        _sync(self.root)

    def _signature(self, described: bytes) -> dict[str, Any]:
        signed_ns = self._clock.now_ns()
        signed = self.keys.sign(_message(described, signed_ns))
        return {
            "format": FORMAT,
            "key": self.keys.id,
            "signed_ns": signed_ns,
            "signature": base64.b64encode(signed).decode("ascii"),
        }

    def _signer(self, content: bytes, described: bytes, model_hash: str) -> str:
        try:
            said = json.loads(content)
            key, signature = str(said["key"]), base64.b64decode(said["signature"], validate=True)
            signed_ns = None if said["format"] == UNDATED else int(said["signed_ns"])
            if said["format"] not in (FORMAT, UNDATED):
                raise ValueError(said["format"])
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
            raise refused(model_hash, f"{SIGNATURE} cannot be read") from error
        if (why := self.keys.refusal(key, signed_ns)) is not None:
            raise refused(model_hash, f"{SIGNATURE} is of the {why} key {key[:32]}")
        if not self.keys.verifies(key, signature, _message(described, signed_ns)):
            raise refused(model_hash, f"{MANIFEST} is not what was signed")
        return key


def _message(described: bytes, signed_ns: int | None) -> bytes:
    dated = b"" if signed_ns is None else b"signed at %d\n" % signed_ns
    return PURPOSE + dated + described


def refused(model_hash: str, found: str) -> RefusedArtifact:
    """Return the refusal of an artifact, naming what is wrong with it."""
    return RefusedArtifact(
        "the artifact is not what was signed",
        where=model_hash,
        found=found,
        remedy="Do not use it: restore the folder from a copy, or train and register anew",
    )


def _exactly(folder: Path, names: set[str], model_hash: str) -> None:
    inside = {path.name for path in folder.iterdir()}
    if lost := sorted(names - inside):
        unsigned = " (unsigned)" if lost[0] == SIGNATURE else ""
        raise refused(model_hash, f"{lost[0]} is missing{unsigned}")
    if added := sorted(inside - names):
        raise refused(model_hash, f"{added[0]} was added")


def _bytes(path: Path, name: str) -> bytes:
    model_hash = path.parent.parent.name if path.parent.name == FILES else path.parent.name
    try:
        if path.is_symlink() or not path.is_file():
            raise refused(model_hash, f"{name} is missing or no file")
        if name == SIGNATURE and path.stat().st_size > LARGEST_SIGNATURE_BYTES:
            raise refused(model_hash, f"{name} is too large")
        return path.read_bytes()
    except OSError as error:
        raise refused(model_hash, f"{name}: {error.strerror}") from error


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
