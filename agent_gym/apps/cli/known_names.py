"""Every name that can be said on the command line, without importing what is behind it."""

from __future__ import annotations

from pathlib import Path

import agent_gym
from agent_gym.core.registry import names

CONFIGS = Path(agent_gym.__file__).parent / "configs"
TEAMS = ("amal", "ippo", "mappo", "mappo-reuse", "mappo-short", "official")
"""Shipped trainings of teams; they are no agents of the registry."""
MAPS = ("1m_vs_1m", "3m", "8m", "2s_vs_1sc", "2s3z", "3s_vs_5z")
"""Maps of battles, as ``agent_gym.envs.battle`` has them; a test compares the two."""
_SYNTHETIC = "synthetic/"
_EXPERIMENT = ("base:", "arms:", "grid:", "search:")


def agents() -> tuple[str, ...]:
    """Return the names of agents."""
    return names("agent")


def agents_and_teams() -> tuple[str, ...]:
    """Return the names of agents and of the shipped trainings of teams."""
    return tuple(sorted((*names("agent"), *TEAMS)))


def markets() -> tuple[str, ...]:
    """Return the names of markets."""
    return names("market")


def presets() -> tuple[str, ...]:
    """Return the presets of synthetic markets."""
    found = (name for name in names("market") if name.startswith(_SYNTHETIC))
    return tuple(name.removeprefix(_SYNTHETIC) for name in found)


def scenarios() -> tuple[str, ...]:
    """Return the names of scenarios."""
    return names("scenario")


def maps() -> tuple[str, ...]:
    """Return the names of the maps of battles."""
    return MAPS


def trainings() -> tuple[str, ...]:
    """Return the names of the shipped trainings."""
    return tuple(path.stem for path in _shipped() if not _is_experiment(path))


def experiments() -> tuple[str, ...]:
    """Return the names of the shipped experiments."""
    return tuple(path.stem for path in _shipped() if _is_experiment(path))


def _shipped() -> list[Path]:
    return sorted((CONFIGS / "rl").glob("*.yaml"))


def _is_experiment(path: Path) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(line.startswith(_EXPERIMENT) for line in lines)
