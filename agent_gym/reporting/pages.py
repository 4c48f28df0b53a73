"""Which pages there are in the folder of results, and under which name each is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_gym.evaluation.page import kind_of

DEEPEST = 4
USUAL = ("report", "nightly")
"""Pages that are named by their folder."""
NIGHTLY, COMMENT = "nightly", "summary.md"
_ROOTS = ("experiments", "reports/runs", "reports/self_test", "reports")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a run.

    Args:
        name: What it is asked for by.
        kind: What sort of report it is, such as nightly, training or umc.
        path: Where it lies.
        changed_s: When it was written, in seconds since 1970.
    """

    name: str
    kind: str
    path: Path
    changed_s: float


def find_pages(home: Path) -> tuple[Page, ...]:
    """Return every page below the folder of results, the newest first."""
    found = [_page(path, home) for path in _files(home)]
    return tuple(sorted(found, key=lambda page: (-page.changed_s, page.name)))


def page_in(folder: Path) -> Path | None:
    """Return the page of a folder: the usual one, or the only one."""
    for stem in USUAL:
        if (folder / f"{stem}.html").is_file():
            return folder / f"{stem}.html"
    found = sorted(folder.glob("*.html"))
    return found[0] if len(found) == 1 else None


def comment_of(page: Path) -> Path | None:
    """Return the comment for a pull request that lies beside a page; only nights have one."""
    found = page.with_name(COMMENT)
    return found if page.stem == NIGHTLY and found.is_file() else None


def _files(home: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(home):
        depth = len(Path(root).relative_to(home).parts)
        folders[:] = sorted(folders) if depth < DEEPEST else []
        yield from (Path(root) / name for name in sorted(names) if name.endswith(".html"))


def _page(path: Path, home: Path) -> Page:
    inside = path.relative_to(home)
    kind = _kind(path, inside.as_posix())
    name = inside.with_suffix("").as_posix()
    if path.stem in USUAL and inside.as_posix() != f"reports/{NIGHTLY}.html":
        name = inside.parent.as_posix() if inside.parent.parts else path.stem
    for root in _ROOTS:
        if name.startswith(f"{root}/"):
            name = name.removeprefix(f"{root}/")
            break
    return Page(name, kind, path, path.stat().st_mtime)


def _kind(path: Path, inside: str) -> str:
    if inside.startswith("reports/self_test"):
        return "self-test"
    told = kind_of(path)
    return _by_place(path, inside) if told is None else told.lower()


def _by_place(path: Path, inside: str) -> str:
    """Return the kind of a page that does not say it, as older ones do not."""
    if path.stem == NIGHTLY:
        return "nightly"
    if inside.startswith("experiments/"):
        return "training"
    if any(path.parent.glob("*.battle.jsonl")):
        return "battle"
    if (path.parent / "results.json").is_file():
        return "backtest"
    return "harness" if inside.startswith("reports/") else "page"
