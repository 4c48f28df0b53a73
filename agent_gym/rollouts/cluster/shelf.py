"""Files on a node: those that it sees already, and those that were sent to it.

What was sent lies once under the hash of its content, and is linked into a tree that looks like
the place it came from, so that files which are found beside each other still are.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent_gym.core.files import atomic_path
from agent_gym.core.manifest import fingerprint
from agent_gym.rollouts.cluster.parcels import hashes_of


class Shelf:
    """The files that the jobs of one run name, as this node finds them.

    Args:
        name: Of the session; nodes of one machine share its folder.
        files: By the path as jobs name it, the hash of each file.
    """

    def __init__(self, name: str, files: Mapping[str, Mapping[str, str]]) -> None:
        self._root = root_of(name)
        self._absent = {
            path: dict(parts) for path, parts in files.items() if not _seen(path, parts)
        }
        self._tree = self._root / f"tree-{fingerprint(self._absent)[:16]}"

    def missing(self) -> list[str]:
        """Return the hashes of the files that this node lacks."""
        wanted = {key for parts in self._absent.values() for key in parts.values()}
        return sorted(key for key in wanted if not self._blob(key).is_file())

    def put(self, key: str, content: bytes) -> None:
        """Keep what was sent; another process of this node may do the same at the same time."""
        with atomic_path(self._blob(key)) as path:
            path.write_bytes(content)

    def ready(self) -> None:
        """Make the tree, once all files are here."""
        if self._absent:
            self._root.chmod(0o700)
        for path, parts in self._absent.items():
            for inside, key in parts.items():
                target = self._place(path) / inside if inside else self._place(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    os.link(self._blob(key), target)

    def here(self, message: bytes) -> bytes:
        """Return a message whose paths are those of this node."""
        for path in self._absent:
            message = message.replace(_quoted(path), _quoted(str(self._place(path))))
        return message

    def as_sent(self, answer: bytes) -> bytes:
        """Return an answer whose paths are those of the sender again."""
        for path in sorted(self._absent, key=len, reverse=True):
            answer = answer.replace(_quoted(str(self._place(path)))[1:-1], _quoted(path)[1:-1])
        return answer

    def _place(self, path: str) -> Path:
        return self._tree / os.path.relpath(Path(path).absolute(), "/")

    def _blob(self, key: str) -> Path:
        return self._root / "files" / key


def root_of(name: str) -> Path:
    """Return where the files of a session lie on this node."""
    return Path(tempfile.gettempdir()) / f"agent-gym-{os.getuid()}-{name}"


def clear(name: str) -> None:
    """Remove what was sent in a session."""
    shutil.rmtree(root_of(name), ignore_errors=True)


def _seen(path: str, parts: Mapping[str, str]) -> bool:
    try:
        return hashes_of(Path(path)) == dict(parts)
    except OSError:
        return False


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()
