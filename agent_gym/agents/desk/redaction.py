"""What must never be written down is taken out before anything is kept.

Two rules: text under a key that names a secret, and text that holds one of the secrets given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

STARS = "***"
SHORTEST_SECRET = 4
SHORTEST_FORM = 12  # of what looks like a secret by itself
_WORDS = (
    "apikey", "api_key", "api-key", "secret", "passw", "passphrase", "token", "authorization",
    "cookie", "privatekey", "private_key", "private-key", "credential",
)  # fmt: skip
_FORMS = re.compile(
    r"\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,}|\b(?:sk|pk|ghp|xox[bap])[-_][\w-]{16,}",
    re.IGNORECASE,
)
_SIGNS = ("bearer", "basic", "sk-", "sk_", "pk-", "pk_", "ghp", "xox")  # of one of the forms
_SUSPECT = tuple(word.encode() for word in (*_WORDS, *_SIGNS))  # a search for each beats a pattern


class Redactor:
    """Takes secrets out of text, payloads and records.

    Numbers stay: a feature called ``token_price`` is no secret.

    Example:
        >>> Redactor(["hunter22"]).value({"api_key": "abc", "note": "it is hunter22", "n": 1})
        {'api_key': '***', 'note': 'it is ***', 'n': 1}
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self._written: list[bytes] = []  # as JSON writes them
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Take out this text from now on; one shorter than 4 letters would blot out half a page."""
        if len(secret) < SHORTEST_SECRET:
            raise ValueError(f"a secret has at least {SHORTEST_SECRET} letters")
        self._secrets.append(secret)
        self._written.append(msgspec.json.encode(secret)[1:-1])
        self._secrets.sort(key=len, reverse=True)  # the longer one first, if one holds another

    def join(self, other: Redactor) -> None:
        """Take out what another takes out, too."""
        for secret in other._secrets:
            if secret not in self._secrets:
                self.add(secret)

    def is_clean(self, text: str) -> bool:
        """Return whether text holds no secret."""
        if len(text) < SHORTEST_FORM and not self._secrets:
            return True
        return self.text(text) is text

    def text(self, text: str) -> str:
        """Return text without secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, STARS)
        if len(text) >= SHORTEST_FORM:
            low = text.lower()
            for sign in _SIGNS:
                if sign in low:
                    changed = _FORMS.sub(STARS, text)
                    return text if changed == text else changed
        return text

    def value(self, value: Any) -> Any:
        """Return JSON-like values without secrets; keys are text too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self._key(key): self._under(key, inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value

    def payload(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a payload without secrets; the same object if there is no text in it."""
        for key, value in payload.items():
            is_number = value is None or isinstance(value, float | int)
            if not is_number or (self._secrets and not self.is_clean(key)):
                cleaned: dict[str, Any] = self.value(payload)
                return cleaned
        return payload

    def suspects(self, text: bytes) -> bool:
        """Return whether a record, as JSON, may hold a secret and must be gone through."""
        low = text.lower()
        for word in _SUSPECT:
            if word in low:
                return True
        return any(secret in text for secret in self._written)

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _under(self, key: Any, value: Any) -> Any:
        if isinstance(key, str) and isinstance(value, str | bytes | list | tuple | Mapping):
            low = key.lower()
            return STARS if any(word in low for word in _WORDS) else self.value(value)
        return self.value(value)
