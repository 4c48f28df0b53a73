"""Where the nightly keeps things: one folder, fixed names, and no way out of it by a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import ConfigError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of all results, and the places in it that the nightly uses.

    A planted run (a fault put in on purpose) writes to ``reports/self_test`` under the same names,
    so that it can never be taken for what really runs.
    """

    root: Path

    @property
    def reports(self) -> Path:
        """Return the folder of reports."""
        return self.root / "reports"

    @property
    def runs(self) -> Path:
        """Return the folder that holds a folder for each run."""
        return self.reports / "runs"

    @property
    def baselines(self) -> Path:
        """Return the folder of the baselines and the pointers to them."""
        return self.reports / "baseline"

    @property
    def quarantine(self) -> Path:
        """Return the file that names metrics that are shown but do not gate."""
        return self.reports / "quarantine.json"

    @property
    def ledger(self) -> Path:
        """Return the database of finished episodes and past nights."""
        return self.root / "gym.db"

    @property
    def lock(self) -> Path:
        """Return the file whose lock says that a run is under way."""
        return self.root / "nightly.lock"

    @property
    def caches(self) -> Path:
        """Return the folder of what can be thrown away and made again."""
        return self.root / "cache"

    def outputs(self, *, planted: bool) -> dict[str, Path]:
        """Return where the last night's files are, by what they are."""
        folder = self.reports / "self_test" if planted else self.reports
        metrics = folder if planted else self.root / "metrics"
        return {
            "report": folder / "latest.json",
            "diff": folder / "nightly_diff.json",
            "junit": folder / "junit.xml",
            "summary": folder / "summary.md",
            "page": folder / "nightly.html",
            "metrics": metrics / "agent_gym_regressions.prom",
        }

    def folders(self) -> tuple[Path, ...]:
        """Return every folder that files or folders are put into by renaming."""
        places = [*self.outputs(planted=False).values(), *self.outputs(planted=True).values()]
        return tuple(sorted({self.runs, self.baselines, *(path.parent for path in places)}))

    def run_folder(self, run_id: str) -> Path:
        """Return the folder of a run; an id that is a path is refused."""
        return inside(self.runs, run_id, "run")

    def baseline_folder(self, baseline_id: str) -> Path:
        """Return the folder of a baseline; an id that is a path is refused."""
        return inside(self.baselines, baseline_id, "baseline")


def checked_id(name: str, noun: str) -> str:
    """Return a name that is safe as the name of a file on every system, or raise ConfigError.

    Example:
        >>> checked_id("n1", "run")
        'n1'
    """
    if not _ID.fullmatch(name) or _DEVICE.fullmatch(name) or name.endswith("."):
        raise ConfigError(
            f"this cannot be the id of a {noun}",
            found=repr(name[:140]),
            expected="1 to 128 of the letters a-z, A-Z, 0-9, and _ . - after the first",
        )
    return name


def inside(folder: Path, name: str, noun: str) -> Path:
    """Return the path of a name in a folder; a link that leads elsewhere is refused too."""
    path = folder / checked_id(name, noun)
    if path.resolve() != folder.resolve() / name:
        raise ConfigError(
            f"the folder of a {noun} leads out of the workspace",
            where=str(path),
            found=str(path.resolve()),
            remedy="Remove the link",
        )
    return path
