"""Who has signed: an Ed25519 key of this registry's own, and the public keys that it trusts.

The private key is made at first use in a file that only its owner may read; the public one lies
beside it. Other registries are trusted by putting their public key into ``trusted``. A rotation
makes another private key and forgets the old one; its public half is trusted until it is revoked.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import write_text
from agent_gym.pipeline.registry.standing import KeyStanding, read_standings, write_standings

PRIVATE, PUBLIC, TRUSTED = "signing.key", "signing.pub", "trusted"
NEXT = "next.key"  # a rotation under way: whoever opens the ring finishes it
LARGEST_KEY_BYTES = 4_096
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The key that signs, the keys that are trusted, and how each of them stands, by their ids."""

    folder: Path
    private: Ed25519PrivateKey
    trusted: dict[str, Ed25519PublicKey]
    standings: dict[str, KeyStanding]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read the keys of a folder; at first use they are made."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not (folder / PRIVATE).exists():
                _make(folder, PRIVATE)
            if (folder / NEXT).exists():
                _finish_rotation(folder)
        except OSError as error:
            raise StoreError(
                "cannot keep keys here", where=str(folder), found=error.strerror
            ) from error
        private = _read_private(folder / PRIVATE)
        own = private.public_key()
        if not (folder / PUBLIC).exists():  # a kill may have come between the two files
            _write_public(folder / PUBLIC, own)
        if key_id(_read_public(folder / PUBLIC)) != key_id(own):
            raise DataError(
                "the public key is not that of the private one",
                where=str(folder / PUBLIC),
                remedy=f"Remove {PUBLIC}: it is made again from the private key",
            )
        others = [_read_public(path) for path in sorted((folder / TRUSTED).glob("*.pub"))]
        keys = {key_id(key): key for key in (own, *others)}
        return cls(folder, private, keys, read_standings(folder))

    @property
    def id(self) -> str:
        """Return the id of the key that signs."""
        return key_id(self.private.public_key())

    def sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self.private.sign(content)

    def standing(self, key: str) -> KeyStanding:
        """Return how a key stands."""
        return self.standings.get(key, KeyStanding())

    def refusal(self, key: str, signed_ns: int | None = None) -> str | None:
        """Return why a key's signature of this time does not count, None if it does.

        Args:
            key: Its id.
            signed_ns: When it says it was made; None if it does not say.
        """
        return "foreign" if key not in self.trusted else self.standing(key).refusal(signed_ns)

    def rotated(self, now_ns: int) -> Self:
        """Make another key that signs from now on; a kill in the midst is made good at opening."""
        _make(self.folder, NEXT)
        made = type(self).open(self.folder)
        retired = KeyStanding(self.standing(self.id).since_ns, now_ns)
        fresh = {self.id: retired, made.id: KeyStanding(since_ns=now_ns)}
        write_standings(self.folder, made.standings | fresh)
        return type(self).open(self.folder)

    def revoked(self, key: str, reason: str, now_ns: int) -> Self:
        """Let nothing that a key has signed count any more."""
        if not reason.strip():
            raise ConfigError("a revocation has a reason", remedy="Say why")
        if key not in self.trusted:
            known = ", ".join(sorted(self.trusted))
            raise ConfigError("there is no such key", found=key[:80], expected=known)
        if key == self.id:
            raise ConfigError(
                "this key signs", found=key, remedy="Rotate first, then revoke the old one"
            )
        before = self.standing(key)
        if before.revoked_ns is None:
            gone = KeyStanding(before.since_ns, before.retired_ns, now_ns, reason)
            write_standings(self.folder, self.standings | {key: gone})
        return type(self).open(self.folder)

    def verifies(self, key: str, signature: bytes, content: bytes) -> bool:
        """Return whether a trusted key has signed exactly these bytes."""
        try:
            self.trusted[key].verify(signature, content)
        except InvalidSignature:
            return False
        return True


def key_id(key: Ed25519PublicKey) -> str:
    """Return a short name of a public key: the first half of its SHA-256."""
    return sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:32]


def _finish_rotation(folder: Path) -> None:
    """Let the next key take the place of the present one; may be done again after any kill."""
    before = _read_private(folder / PRIVATE).public_key()
    _read_private(folder / NEXT)
    _write_public(folder / TRUSTED / f"{key_id(before)}.pub", before)
    (folder / PUBLIC).unlink(missing_ok=True)
    (folder / NEXT).replace(folder / PRIVATE)


def _write_public(path: Path, key: Ed25519PublicKey) -> None:
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_text(path, pem.decode("ascii"))


def _make(folder: Path, name: str) -> None:
    """Write a private key that nobody else may read; whoever is first wins."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    temporary = folder / f".{name}.{secrets.token_hex(8)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link appears whole and never replaces what another process has put there.
            (folder / name).hardlink_to(temporary)
        except FileExistsError:
            return
    finally:
        temporary.unlink(missing_ok=True)


def _read_private(path: Path) -> Ed25519PrivateKey:
    content = _read(path)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        raise DataError(
            "others may read the private key",
            where=str(path),
            found=f"mode {mode:04o}",
            expected="mode 0600",
            remedy=f"Run chmod 600 {path}; if somebody may have read it, remove it and sign anew",
        )
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _no_key(path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path)
    return key


def _read_public(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_key(path) from error
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path)
    return key


def _read(path: Path) -> bytes:
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST_KEY_BYTES:
            raise _no_key(path)
        return path.read_bytes()
    except OSError as error:
        raise DataError("a key cannot be read", where=str(path), found=error.strerror) from error


def _no_key(path: Path) -> DataError:
    return DataError("this is no Ed25519 key", where=str(path), expected="a PEM file")
