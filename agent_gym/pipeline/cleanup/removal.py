"""Carries a plan out, after looking at everything once more."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent_gym.core.clock import Clock
from agent_gym.pipeline.cleanup.findings import Item, is_folder
from agent_gym.pipeline.cleanup.plan import CleanupPlan, plan_cleanup
from agent_gym.pipeline.nightly.lock import one_run
from agent_gym.pipeline.nightly.workspace import Workspace

COMMAND = "agent-gym cleanup --yes"
GOING = ".cleanup.tmp"  # hidden and ending so, it would be found as a leftover after a kill


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What has gone, and what of the plan has not, with the reason."""

    removed: tuple[Item, ...]
    left: tuple[Item, ...]

    @property
    def n_bytes(self) -> int:
        """Return how much room has become free."""
        return sum(item.n_bytes for item in self.removed)

    def as_dict(self) -> dict[str, Any]:
        """Return the result for ``--json``."""
        return {
            "removed": [asdict(item) for item in self.removed],
            "left": [asdict(item) for item in self.left],
            "bytes_freed": self.n_bytes,
        }


def carry_out(plan: CleanupPlan, clock: Clock) -> CleanupResult:
    """Remove what a plan says, as far as it may still go; no night can begin meanwhile.

    Each thing is first renamed, so that a removal which is cut off never leaves half a run that
    looks whole.
    """
    if not plan.goes:
        return CleanupResult((), ())
    removed: list[Item] = []
    left: list[Item] = []
    with one_run(Workspace(plan.root).lock, clock, COMMAND):
        now = plan_again(plan, clock)
        for item in plan.goes:
            if item.path not in now:
                left.append(replace(item, why="it is in use by now, or has gone"))
                continue
            failure = _remove(plan.root, item)
            if failure is None:
                removed.append(item)
            else:
                left.append(replace(item, why=failure))
    return CleanupResult(tuple(removed), tuple(left))


def plan_again(plan: CleanupPlan, clock: Clock) -> set[str]:
    """Return what may still go; our own lock is no night."""
    fresh = plan_cleanup(plan.root, plan.rules, clock, plan.pages, own_lock=True)
    return {item.path for item in fresh.goes}


def _remove(root: Path, item: Item) -> str | None:
    """Remove one thing and return what went wrong, None if nothing did."""
    path = root / item.path
    if path.is_symlink() or path.parent.resolve() != path.parent:
        return "a link leads out of the folder of results"
    going = path.with_name(f".{path.name.lstrip('.')}{GOING}")
    try:
        path.rename(going)
        if is_folder(going):
            shutil.rmtree(going)
        else:
            going.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return None
