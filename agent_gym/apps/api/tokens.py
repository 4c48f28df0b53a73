"""Bearer tokens: random, shown once, kept as salted hashes in a file that its owner alone may read.

A token is ``agym_<id>_<secret>``; the secret has 256 random bits, so one quick hash is enough.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from pydantic import Field, ValidationError

from agent_gym.apps.api.backoff import Backoff
from agent_gym.apps.api.roles import Role
from agent_gym.core.clock import DAY_NS, Clock, SystemClock
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import sync, to_json
from agent_gym.core.registry import Config

FILE = "tokens.json"
TOKEN = re.compile(r"agym_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
LONGEST_TOKEN = 100
LARGEST_FILE = 1 << 20
OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PURPOSE = b"agent-gym token"
_SALT = "0" * 32


class Token(Config):
    """A token without its secret."""

    id: str = Field(pattern=r"^[0-9a-f]{8}$")
    name: str = Field(min_length=1, max_length=80)
    role: Role
    salt: str = Field(pattern=r"^[0-9a-f]{32}$")
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_ns: int
    expires_ns: int | None = None

    def fits(self, secret: str) -> bool:
        """Return whether a secret is that of the token, in the same time whether or not."""
        return hmac.compare_digest(_digest(secret, self.salt), self.digest)


class _File(Config):
    format: str = "agent_gym.tokens/1"
    tokens: tuple[Token, ...] = ()


class TokenFile:
    """The tokens of a service; changes of the file are seen at the next request.

    Args:
        path: The file; its mode is 0600, and another one is refused.
        clock: Tells when a token has expired.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path, self._clock = path, clock or SystemClock()
        self._backoff = Backoff(self._clock)
        self._seen: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def all(self) -> tuple[Token, ...]:
        """Return the tokens, oldest first."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            self._seen, self._tokens = None, ()
            return ()
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        if mark != self._seen:
            self._tokens, self._seen = self._read(found), mark
        return self._tokens

    def check(self, header: str, who: str = "") -> Token | None:
        """Return whose header this is; None if it is nobody's, or comes too soon after wrong ones.

        Args:
            header: What follows ``Authorization:``.
            who: Where it comes from; who guesses there does not keep others waiting.
        """
        kind, _, text = header.partition(" ")
        shape = TOKEN.fullmatch(text) if len(text) <= LONGEST_TOKEN else None
        if kind.lower() != "bearer" or shape is None:
            return None
        named = next((token for token in self.all() if token.id == shape[1]), None)
        if named is None:
            _digest(shape[2], _SALT)  # an unknown id takes as long as a known one
            return None
        guess = (who, named.id)
        if self._backoff.waits(guess):
            return None
        right = named.fits(shape[2])
        self._backoff.note(guess, right=right)
        late = named.expires_ns is not None and self._clock.now_ns() >= named.expires_ns
        return named if right and not late else None

    def add(self, name: str, role: Role, days: float | None = None) -> tuple[Token, str]:
        """Make a token; the text is told here and never again."""
        if not name or len(name) > 80 or not name.isprintable():
            raise ConfigError(
                "a token needs a name", found=name[:80], expected="1 to 80 printable characters"
            )
        if days is not None and not 0 < days <= 3650:
            raise ConfigError("a token lives 0 to 3,650 days", found=days)
        secret, salt, now = secrets.token_urlsafe(32), secrets.token_hex(16), self._clock.now_ns()
        token = Token(
            id=secrets.token_hex(4),
            name=name,
            role=role,
            salt=salt,
            digest=_digest(secret, salt),
            created_ns=now,
            expires_ns=None if days is None else now + round(days * DAY_NS),
        )
        with self._changing():
            self._write((*self.all(), token))
        return token, f"agym_{token.id}_{secret}"

    def revoke(self, token_id: str) -> Token:
        """Forget a token; whoever has it is turned away from now on."""
        with self._changing():
            gone = [token for token in self.all() if token.id == token_id]
            if not gone:
                raise ConfigError(
                    "there is no such token",
                    found=token_id[:80],
                    expected=", ".join(token.id for token in self.all()) or None,
                )
            self._write(tuple(token for token in self.all() if token.id != token_id))
        return gone[0]

    def _read(self, found: os.stat_result) -> tuple[Token, ...]:
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
            raise DataError("this is no file of tokens", where=str(self.path))
        if mode & OTHERS:
            raise DataError(
                "others may read the tokens",
                where=str(self.path),
                found=f"mode {mode:04o}",
                expected="mode 0600",
                remedy=f"Run chmod 600 {self.path}",
            )
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            return _File.model_validate(content).tokens
        except (OSError, ValueError, ValidationError, RecursionError) as error:
            raise DataError(
                "the tokens cannot be read",
                where=str(self.path),
                remedy="Remove the file and make new tokens",
            ) from error

    def _write(self, tokens: tuple[Token, ...]) -> None:
        text = to_json(_File(tokens=tokens).model_dump(mode="json")) + "\n"
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.tmp")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(self.path)
                sync(self.path.parent)  # a token that was revoked must stay so
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                "tokens cannot be kept here", where=str(self.path), found=error.strerror
            ) from error

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let one process at a time change the file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                "tokens cannot be kept here", where=str(self.path), found=error.strerror
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _digest(secret: str, salt: str) -> str:
    return blake2b(
        secret.encode(), digest_size=32, salt=bytes.fromhex(salt), person=_PURPOSE
    ).hexdigest()
