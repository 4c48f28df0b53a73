"""What is said about a work: our rate, the limit, the ratios and whether the goal is met."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_gym.core.manifest import installed_versions
from benchmarks.contest import LIMIT, OURS, Standing


@dataclass
class Row:
    """One work. Rates are better when higher, so a ratio above 1 means that we are faster.

    ``met`` is None where a peer that the goal names is absent: unmeasured is not met.
    """

    work: str
    unit: str
    ours: float
    limit: float
    goal: str
    met: bool | None
    peers: dict[str, float] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def ratio_to_limit(self) -> float:
        """Return ours over the limit."""
        return self.ours / self.limit

    def as_dict(self) -> dict[str, Any]:
        """Return the row as it stands in ``latest.json``."""
        return {
            "unit": self.unit,
            "ours": self.ours,
            "limit": self.limit,
            "ratio_to_limit": self.ratio_to_limit,
            "peers": self.peers,
            "goal": self.goal,
            "met": self.met,
            "measured": self.measured,
            "note": self.note,
        }


@dataclass(frozen=True)
class Goal:
    """The least ratio to the limit and to named peers that counts as met."""

    to_limit: float | None = None
    to_peers: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [] if self.to_limit is None else [f"at least {self.to_limit:.2f} of the limit"]
        parts += [f"at least {least:g}x {name}" for name, least in self.to_peers.items()]
        return ", ".join(parts)

    def met(self, ratio_to_limit: float, peers: dict[str, float]) -> bool | None:
        """Say whether the ratios reach the goal; None if a named peer was not measured."""
        reached = [self.to_limit is None or ratio_to_limit >= self.to_limit]
        reached += [peers[name] >= least for name, least in self.to_peers.items() if name in peers]
        if not all(reached):
            return False
        return True if all(name in peers for name in self.to_peers) else None


def rate_row(
    work: str, unit: str, standings: dict[str, Standing], goal: Goal, note: str = ""
) -> Row:
    """Make a row from the standings of a contest."""
    ours, limit = standings[OURS].best, standings[LIMIT].best
    others = [n for n in standings if n != LIMIT and not n.startswith(OURS)]
    peers = {name: ours / standings[name].best for name in others}
    measured = {name: standing.as_dict() for name, standing in standings.items()}
    met = goal.met(ours / limit, peers)
    return Row(work, unit, ours, limit, str(goal), met, peers, measured, note)


def show(row: Row) -> None:
    """Print one work."""
    verdict = {True: "met", False: "MISSED", None: "not measured"}[row.met]
    print(f"\n{row.work}  [{row.unit}]")
    print(f"  ours {_number(row.ours)}   limit {_number(row.limit)}", end="")
    print(f"   ratio to limit {row.ratio_to_limit:.3g}")
    for name, ratio in row.peers.items():
        print(f"  {ratio:>10,.4g} x {name}")
    for name, figures in row.measured.items():
        if isinstance(figures, dict) and "median" in figures:
            best, median = _number(figures["best"]), _number(figures["median"])
            print(f"      {name:<24} best {best:>10}   median {median:>10}   of {figures['n']}")
    if row.note:
        print(f"  note: {row.note}")
    print(f"  goal: {row.goal}: {verdict}", flush=True)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) >= 1e6 else f"{value:,.6g}"


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "system": platform.platform(),
        "versions": installed_versions(),
    }
