"""What would go and what stays, with the reason of each; nothing is touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.core.clock import DAY_NS, Clock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.pipeline.cleanup.findings import Item, Kind, find_items
from agent_gym.pipeline.cleanup.protection import Protection

SCHEMA = "agent_gym.cleanup/1"
KEPT_BY_NUMBER: tuple[Kind, ...] = ("experiment", "nightly run", "video")


class CleanupRules(Config):
    """What is old enough to go."""

    older_than: float = Field(
        default=30.0, ge=0.0, le=36_500.0, description="days without a change before a thing may go"
    )
    keep: int = Field(
        default=5, ge=0, description="newest experiments, nightly runs and videos that stay anyway"
    )


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What would go, and what stays."""

    root: Path
    rules: CleanupRules
    goes: tuple[Item, ...]
    stays: tuple[Item, ...]
    pages: tuple[Path, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Return how much room would become free."""
        return sum(item.n_bytes for item in self.goes)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan for ``--json``."""
        return {
            "schema": SCHEMA,
            "home": str(self.root),
            "rules": self.rules.model_dump(mode="json"),
            "bytes": self.n_bytes,
            "goes": [asdict(item) for item in self.goes],
            "stays": [asdict(item) for item in self.stays],
        }


def plan_cleanup(
    root: Path,
    rules: CleanupRules,
    clock: Clock,
    pages: Iterable[Path] = (),
    *,
    own_lock: bool = False,
) -> CleanupPlan:
    """Return what would go from a folder of results.

    Args:
        root: The folder; a link to it is the user's choice and is followed.
        rules: What is old enough.
        clock: Tells the present.
        pages: Folders elsewhere whose pages may refer to results.
        own_lock: The lock of the workspace is held by whoever asks, so it tells of no night.
    """
    if root.exists() and not root.is_dir():
        raise ConfigError(
            "the folder of results is no folder",
            where=str(root),
            remedy="Name another with AGENT_GYM_HOME",
        )
    root, now_ns, elsewhere = root.resolve(), clock.now_ns(), tuple(pages)
    protection = Protection(root, elsewhere, now_ns, own_lock=own_lock)
    items = list(find_items(root))
    newest = _newest(items, rules.keep)
    goes: list[Item] = []
    stays: list[Item] = []
    for item in items:
        if any(item.path.startswith(f"{other.path}/") for other in goes):
            continue  # it goes with what it lies in
        reason = protection.reason(item)
        if reason is None and item.path in newest:
            reason = f"one of the newest {rules.keep}"
        days = (now_ns - item.changed_ns) / DAY_NS
        if reason is None and days < rules.older_than:
            reason = f"changed {days:.1f} days ago"
        if reason is None:
            goes.append(replace(item, why=_why(item, days)))
        else:
            stays.append(replace(item, why=reason))
    return CleanupPlan(root, rules, tuple(goes), tuple(stays), elsewhere)


def _newest(items: list[Item], keep: int) -> set[str]:
    kept: set[str] = set()
    for kind in KEPT_BY_NUMBER:
        own = [item for item in items if item.kind == kind]
        own.sort(key=lambda item: (item.changed_ns, item.path), reverse=True)
        kept |= {item.path for item in own[:keep]}
    return kept


def _why(item: Item, days: float) -> str:
    if item.kind == "checkpoints":
        return "of a finished run, whose models stay"
    if item.kind == "leftover":
        return "left half-written by a run that was killed"
    if item.kind == "frozen code":
        return "a copy that is made again when it is needed"
    return f"unchanged for {days:.0f} days, nothing refers to it"
