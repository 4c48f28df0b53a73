"""A few seeds of one scenario as a job for another process; every seed gives a row."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from pydantic import Field
from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.scenario import Episode, Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, play_seed
from agent_gym.pipeline.nightly.imported import loaded_installed, loaded_packages
from agent_gym.rollouts.jobs import Job, files_named
from agent_gym.rollouts.play import Failure, Status, attempt

LONGEST_ERROR = 500
_BEFORE = frozenset(name.partition(".")[0] for name in sys.modules)  # loaded for nobody's sake


class EpisodesJob(Job):
    """Plays seeds of a scenario, one after the other; a failed seed is a row that says why."""

    scenario: ScenarioConfig
    desk: Ref
    agent: Ref
    plant: str | None = None
    bot: BotConfig | None = None
    seeds: tuple[int, ...] = Field(min_length=1)

    @override
    def run(self) -> dict[str, Any]:
        """Play all seeds."""
        subject = Subject(self.desk, self.agent, self.plant, self.bot)
        rows = [episode_row(self.scenario, subject, seed) for seed in self.seeds]
        if parent_process() is not None:  # a worker has nothing loaded but what it plays
            said = {"loaded": loaded_packages() | loaded_installed(_BEFORE)}
            rows = [_not_the_user(row) | said for row in rows]
        failed = [row["status"] for row in rows if row["status"] != "ok"]
        return self._answer(failed[0] if failed else "ok", rows)

    @override
    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return failed rows for all seeds: which of them ended the process is not known."""
        text = None if failure is None else error_text(failure)
        if text is not None and len(self.seeds) > 1:
            text += f" (lost together: seeds {', '.join(map(str, self.seeds))})"
        return self._answer(status, [failed_row(seed, status, text) for seed in self.seeds])

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the model of the agent and the code of the bot."""
        bot = () if self.bot is None or self.bot.folder is None else (self.bot.folder,)
        return (*files_named("agent", self.agent), *bot)

    def _answer(self, status: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"status": status, "scenario": self.scenario.name, "episodes": rows}


def episode_row(scenario: ScenarioConfig, subject: Subject, seed: int) -> dict[str, Any]:
    """Play one seed and return its row of plain values."""
    clock = SystemClock()
    start_s = clock.monotonic_s()
    rows: list[dict[str, Any]] = []
    status, failure = attempt(lambda: rows.append(_row(play_seed(scenario, subject, seed), seed)))
    if not rows:
        rows.append(failed_row(seed, status, None if failure is None else error_text(failure)))
    return rows[0] | {"duration_s": round(clock.monotonic_s() - start_s, 6)}


def _not_the_user(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a worker: nobody can press Ctrl-C there, so the subject raised it."""
    if row["status"] != "interrupted":
        return row
    return row | {"status": "error", "error": "KeyboardInterrupt: raised by what was played"}


def error_text(failure: Mapping[str, str | None]) -> str:
    """Return a recorded failure as one line.

    Example:
        >>> error_text({"error": "ValueError", "what": "no", "raised_at": "a.py:3"})
        'ValueError: no (a.py:3)'
    """
    parts = [f"{failure.get('error')}: {failure.get('what')}"]
    parts.extend(
        f"{name} {failure[name]}" for name in ("where", "found", "expected") if failure.get(name)
    )
    if failure.get("raised_at"):
        parts.append(f"({failure['raised_at']})")
    text = " ".join(" ".join(parts).split())
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."


def _row(episode: Episode, seed: int) -> dict[str, Any]:
    if not episode.trajectory_hash:
        raise AgentError("a scenario gave no trajectory hash", where=f"seed {seed}")
    return {
        "seed": seed,
        "status": "ok",
        "metrics": _finite(episode.metrics, "metric"),
        "trajectory_hash": str(episode.trajectory_hash),
        "events": int(episode.events),
        "notes": [str(note) for note in episode.notes],
        "perf": _finite(episode.perf, "perf"),
        "error": None,
    }


def _finite(figures: Mapping[str, float | None], noun: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name, value in figures.items():
        if value is not None and not math.isfinite(value):
            raise AgentError(f"a {noun} is not finite", where=name, found=value)
        found[name] = None if value is None else float(value)
    return found


def failed_row(seed: int, status: Status, error: str | None) -> dict[str, Any]:
    """Return the row of a seed that gave no figures."""
    return {
        "seed": seed,
        "status": status,
        "metrics": {},
        "trajectory_hash": "",
        "events": 0,
        "notes": [],
        "perf": {},
        "error": error,
        "duration_s": 0.0,
    }


def episode_jobs(
    scenario: ScenarioConfig, subject: Subject, seeds: Sequence[int], at_once: int
) -> list[EpisodesJob]:
    """Return the jobs of a scenario, a few seeds each."""
    return [
        EpisodesJob(
            scenario=scenario,
            desk=subject.desk,
            agent=subject.agent,
            plant=subject.plant,
            bot=subject.bot,
            seeds=tuple(seeds[at : at + at_once]),
        )
        for at in range(0, len(seeds), at_once)
    ]
