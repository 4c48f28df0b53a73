"""Good answers on disk, by the hash of who was asked what; JSON, written whole or not at all."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.files import write_json
from agent_gym.core.manifest import fingerprint

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A folder of answers; several processes may share it."""

    folder: Path

    def get(self, key: str) -> str | None:
        """Return the answer that was kept, None if there is none or its file is damaged."""
        path = self._path(key)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        answer = _answer(text, key)
        if answer is None:
            log.warning("an answer in the cache is damaged and is asked for again: %s", path)
        return answer

    def put(self, key: str, model: str, answer: str) -> None:
        """Keep an answer that could be used."""
        said = {"key": key, "model": model, "answer": answer, "check": _check(key, answer)}
        write_json(self._path(key), said)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def _answer(text: str, key: str) -> str | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    answer = said.get("answer") if isinstance(said, dict) else None
    if not isinstance(answer, str) or said.get("check") != _check(key, answer):
        return None
    return answer


def _check(key: str, answer: str) -> str:
    return fingerprint([key, answer.encode("utf-8", "replace").decode()])
