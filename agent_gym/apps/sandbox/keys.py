"""Accounts and their keys: made here and shown once, or read from a file that others cannot read.

A request is signed with the secret, so unlike a token it cannot be kept as a hash.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config

LARGEST_FILE = 1 << 20
OTHERS = stat.S_IRWXG | stat.S_IRWXO
KEY_FORMAT = re.compile(r"[A-Za-z0-9]{16,128}")
# Long enough that random characters do not hold them by chance.
PLACEHOLDERS = re.compile(r"change.?me|secret|password|example|placeholder|x{8}|12345678", re.I)
FEWEST_CHARACTERS, FEWEST_DIFFERENT = 32, 10


class AccountKey(Config):
    """An account and what it proves itself with."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$")]
    api_key: str
    secret: SecretStr

    def fits(self, payload: bytes, signature: str) -> bool:
        """Return whether a signature is that of the payload, in the same time whether or not."""
        made = hmac.new(self.secret.get_secret_value().encode(), payload, "sha256").hexdigest()
        return hmac.compare_digest(made.encode(), signature.lower().encode())


class _File(Config):
    accounts: tuple[AccountKey, ...]


def make_keys(names: Sequence[str]) -> tuple[AccountKey, ...]:
    """Return new keys, random ones, for accounts."""
    made = [
        {"name": name, "api_key": secrets.token_hex(32), "secret": secrets.token_hex(32)}
        for name in names
    ]
    return _checked(made, "--account")


def read_keys(path: Path) -> tuple[AccountKey, ...]:
    """Return the keys of a file: ``{"accounts": [{"name": .., "api_key": .., "secret": ..}]}``.

    Raises:
        DataError: Others may read it, or it is no such file.
        ConfigError: A secret is a placeholder or too short, or two accounts have the same key.
    """
    try:
        found = path.lstat()
    except OSError as error:
        raise DataError("the keys cannot be read", where=str(path), found=error.strerror) from error
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_FILE:
        raise DataError("this is no file of keys", where=str(path))
    if mode & OTHERS:
        raise DataError(
            "others may read the keys",
            where=str(path),
            found=f"mode {mode:04o}",
            expected="mode 0600",
            remedy=f"Run chmod 600 {path}",
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        accounts = content["accounts"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise DataError(
            "the keys cannot be read",
            where=str(path),
            expected='{"accounts": [{"name": ..., "api_key": ..., "secret": ...}]}',
        ) from error
    keys = _checked(accounts, str(path))
    for one in keys:
        _refuse_weak(one, str(path))
    return keys


def write_keys(path: Path, keys: Sequence[AccountKey]) -> None:
    """Write keys to a new file with mode 0600; one that is there is never replaced."""
    accounts = [
        {"name": one.name, "api_key": one.api_key, "secret": one.secret.get_secret_value()}
        for one in keys
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_json({"accounts": accounts}) + "\n")
    except OSError as error:
        raise StoreError(
            "keys cannot be kept here", where=str(path), found=error.strerror
        ) from error


def _checked(accounts: object, where: str) -> tuple[AccountKey, ...]:
    try:
        keys = _File.model_validate({"accounts": accounts}).accounts
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(
            "this is no account", where=f"{where}, {place}", found=first["msg"]
        ) from None
    if not keys:
        raise ConfigError("a sandbox needs an account", where=where)
    for noun, values in (
        ("name", [one.name for one in keys]),
        ("key", [one.api_key for one in keys]),
    ):
        if len(set(values)) != len(values):
            raise ConfigError(f"two accounts have the same {noun}", where=where)
    return keys


def _refuse_weak(one: AccountKey, where: str) -> None:
    secret = one.secret.get_secret_value()
    problem = None
    if KEY_FORMAT.fullmatch(one.api_key) is None:
        problem = "the key is not 16 to 128 letters and digits"
    elif len(secret) < FEWEST_CHARACTERS:
        problem = f"the secret has fewer than {FEWEST_CHARACTERS} characters"
    elif len(set(secret)) < FEWEST_DIFFERENT or PLACEHOLDERS.search(secret):
        problem = "the secret is a placeholder"
    if problem is not None:
        raise ConfigError(
            problem,
            where=f"{where}, account {one.name}",
            expected="random characters",
            remedy="Leave the file out: the command makes keys and shows them once",
        )
