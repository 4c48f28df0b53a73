"""Who has signed: an Ed25519 key of this registry's own, and the public keys that it trusts.

The private key is made at first use in a file that only its owner may read; the public one lies
beside it. Other registries are trusted by putting their public key into ``trusted``.
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

from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import write_text

PRIVATE, PUBLIC, TRUSTED = "signing.key", "signing.pub", "trusted"
LARGEST_KEY_BYTES = 4_096
OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The key that signs and the keys that are trusted, by their ids."""

    folder: Path
    private: Ed25519PrivateKey
    trusted: dict[str, Ed25519PublicKey]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read the keys of a folder; at first use they are made."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not (folder / PRIVATE).exists():
                _make(folder)
        except OSError as error:
            raise StoreError(
                "cannot keep keys here", where=str(folder), found=error.strerror
            ) from error
        private = _read_private(folder / PRIVATE)
        own = private.public_key()
        if not (folder / PUBLIC).exists():  # a kill may have come between the two files
            pem = own.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            write_text(folder / PUBLIC, pem.decode("ascii"))
        if key_id(_read_public(folder / PUBLIC)) != key_id(own):
            raise DataError(
                "the public key is not that of the private one",
                where=str(folder / PUBLIC),
                remedy=f"Remove {PUBLIC}: it is made again from the private key",
            )
        others = [_read_public(path) for path in sorted((folder / TRUSTED).glob("*.pub"))]
        return cls(folder, private, {key_id(key): key for key in (own, *others)})

    @property
    def id(self) -> str:
        """Return the id of the key that signs."""
        return key_id(self.private.public_key())

    def sign(self, content: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self.private.sign(content)

    def trusts(self, key: str) -> bool:
        """Return whether a key is known."""
        return key in self.trusted

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


def _make(folder: Path) -> None:
    """Write a private key that nobody else may read; whoever is first wins."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    temporary = folder / f".{PRIVATE}.{secrets.token_hex(8)}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link appears whole and never replaces what another process has put there.
            (folder / PRIVATE).hardlink_to(temporary)
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
