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

from agent_gym.agents.artifact import MANIFEST, ArtifactManifest, read_artifact, read_manifest
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import write_json
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.refusals import RefusedArtifact

FORMAT = "agent_gym.signature/1"
FILES, SIGNATURE = "artifact", "signature.json"
HASH = re.compile(r"[0-9a-f]{64}\Z")
LARGEST_SIGNATURE_BYTES = 4_096
PURPOSE = b"agent-gym artifact manifest\n"  # a signature is good for nothing else


@dataclass(frozen=True, slots=True)
class VerifiedArtifact:
    """An artifact whose every file and signature was right when it was loaded."""

    model_hash: str
    folder: Path
    manifest: ArtifactManifest
    signed_by: str

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

    def __init__(self, root: Path, keys: KeyRing) -> None:
        self.root, self.keys = root, keys

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
        return self.load(manifest.model_hash)

    def load(self, model_hash: str) -> VerifiedArtifact:
        """Return an artifact after checking every file of it.

        Raises:
            RefusedArtifact: A file was changed, added or lost, or no trusted key has signed it.
        """
        place = self._place(model_hash)
        if not place.is_dir() or place.is_symlink():
            raise refused(model_hash, "the artifact is missing")
        _exactly(place, {FILES, SIGNATURE}, model_hash)
        folder = place / FILES
        described = _bytes(folder / MANIFEST, MANIFEST)
        key = self._signer(_bytes(place / SIGNATURE, SIGNATURE), described, model_hash)
        try:
            manifest = read_manifest(folder)
        except DataError as error:
            raise refused(model_hash, f"{MANIFEST}: {error}") from error
        if manifest.model_hash != model_hash:
            raise refused(model_hash, f"{MANIFEST} names another model {manifest.model_hash[:12]}")
        _exactly(folder, {*manifest.files, MANIFEST}, model_hash)
        found = VerifiedArtifact(model_hash, folder, manifest, key)
        for name in manifest.files:
            found.read(name)
        return found

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
            signed = self.keys.sign(PURPOSE + files[MANIFEST])
            said = {
                "format": FORMAT,
                "key": self.keys.id,
                "signature": base64.b64encode(signed).decode("ascii"),
            }
            write_json(place / SIGNATURE, said)
            for path in (*sorted((place / FILES).iterdir()), place / FILES, place):
                _sync(path)
            place.chmod(0o755)
            try:
                place.rename(target)
            except OSError:
                if not target.exists():
                    raise
                return  # another process was first; what is there is checked when it is loaded
            _sync(self.root)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _signer(self, content: bytes, described: bytes, model_hash: str) -> str:
        try:
            said = json.loads(content)
            key, signature = str(said["key"]), base64.b64decode(said["signature"], validate=True)
            if said["format"] != FORMAT:
                raise ValueError(said["format"])
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
            raise refused(model_hash, f"{SIGNATURE} cannot be read") from error
        if not self.keys.trusts(key):
            raise refused(model_hash, f"{SIGNATURE} is of the foreign key {key[:32]}")
        if not self.keys.verifies(key, signature, PURPOSE + described):
            raise refused(model_hash, f"{MANIFEST} is not what was signed")
        return key


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
