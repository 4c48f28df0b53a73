"""Is it good or bad tonight? Everything that the first page answers, asked at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_gym.apps.api.service import Service
from agent_gym.apps.dashboard.parts import RUN
from agent_gym.apps.dashboard.query import place
from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.pipeline.automation.readiness import Readiness
from agent_gym.pipeline.nightly.history import RunHistory, RunRow
from agent_gym.pipeline.nightly.times import nanoseconds
from agent_gym.pipeline.nightly.trends import Trend, trends
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.pipeline.registry.deployment import RegistryState
from agent_gym.pipeline.registry.models import RegisteredModel

NIGHTS = 60
DAYS = 30
STALE_NS = 26 * HOUR_NS
WORST = 8
NIGHTLY = "agent-gym nightly"


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that a person ought to look at.

    Attributes:
        key: Names the words.
        tone: How bad it is.
        values: What stands in the words.
        href: The place where more is told.
        command: What puts it right.
    """

    key: str
    tone: str
    values: tuple[tuple[str, str], ...] = ()
    href: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class HomeFigures:
    """What home shows.

    Attributes:
        last: The newest run; None if there was none yet.
        success: The newest good run.
        headline: The answer in a few words, and why.
        state: Who serves.
        champion: That model.
        readiness: Whether training may begin.
        nights: The newest runs, oldest first.
        trends: Metrics of the newest run that moved most for the worse.
        recorded: Trajectories of each of the last days, oldest first.
        counts: What the loop has, in numbers.
        concerns: What needs attention, the worst first.
        age_s: Seconds since the newest run ended.
    """

    last: RunRow | None
    success: RunRow | None
    headline: tuple[str, str]
    state: RegistryState
    champion: RegisteredModel | None
    readiness: Readiness
    nights: tuple[RunRow, ...]
    trends: tuple[Trend, ...]
    recorded: tuple[int, ...]
    counts: dict[str, int]
    concerns: tuple[Concern, ...]
    age_s: int | None


def history_of(service: Service) -> RunHistory:
    """Return the runs of the folder that is served."""
    return RunHistory(Workspace(service.folder.path))


def home_figures(service: Service) -> HomeFigures:
    """Ask everything that home shows."""
    history, stages = history_of(service), service.stages
    nights = history.page(limit=NIGHTS)
    last = nights[0] if nights else None
    diff = history.diff() if last is not None else None
    state = stages.deployments.state()
    known = {model.model_hash: model for model in stages.registry.models()}
    figures = service.figures()
    now = stages.clock.now_ns()
    age = None if last is None else now - nanoseconds(last.finished_at)
    counts = figures.trajectories | {f"agents_{k}": v for k, v in figures.agents.items()}
    counts["waiting"] = len(stages.store.outbox.waiting())
    return HomeFigures(
        last=last,
        success=history.last(light="good"),
        headline=_headline(diff, last),
        state=state,
        champion=known.get(state.champion or ""),
        readiness=service.pipeline.check_training_readiness(),
        nights=nights[::-1],
        trends=_trends(history, nights[::-1]),
        recorded=stages.store.recorded_per_day(now, DAYS),
        counts=counts,
        concerns=(*_stopped(history, last), *_concerns(diff, last, age, state, counts)),
        age_s=None if age is None else max(0, age) // SECOND_NS,
    )


def _trends(history: RunHistory, nights: tuple[RunRow, ...]) -> tuple[Trend, ...]:
    """Return how the metrics of the newest run's suite went."""
    same = [night for night in nights if night.suite == nights[-1].suite]
    return trends(same, history.directions())


def _headline(diff: dict[str, Any] | None, last: RunRow | None) -> tuple[str, str]:
    """Return the words of the gate, if they are about the newest run."""
    if diff is None or last is None or diff["candidate"]["run_id"] != last.run_id:
        return "", ""
    return str(diff["headline"]), str(diff["why"])


def _concerns(
    diff: dict[str, Any] | None,
    last: RunRow | None,
    age_ns: int | None,
    state: RegistryState,
    counts: dict[str, int],
) -> tuple[Concern, ...]:
    found = []
    if last is None:
        found.append(Concern("concern.no_night", "unsure"))
    elif age_ns is not None and age_ns > STALE_NS:
        found.append(Concern("concern.stale", "bad", (("hours", str(age_ns // HOUR_NS)),)))
    if diff is not None and last is not None and diff["candidate"]["run_id"] == last.run_id:
        found += _worst(diff, last)
    if state.champion is None:
        found.append(Concern("concern.no_champion", "unsure", href="/dashboard/models"))
    if state.rollout is not None and state.rollout.status == "open":
        values = (("model", state.rollout.model[:12]), ("stage", state.rollout.stage))
        found.append(Concern("concern.rollout", "info", values, "/dashboard/models"))
    for key in ("waiting", "agents_paused"):
        if counts.get(key):
            found.append(Concern(f"concern.{key}", "unsure", (("n", str(counts[key])),)))
    return tuple(found)


def _stopped(history: RunHistory, last: RunRow | None) -> list[Concern]:
    """Return that the newest run was cut off, with the command that it was begun with."""
    if last is None or last.status == "complete":
        return []
    report = history.report() or {}
    own = report.get("run_id") == last.run_id
    command = str(report["command"]) if own else NIGHTLY
    return [Concern("concern.stopped", "bad", (), place(RUN, [("id", last.run_id)]), command)]


def _worst(diff: dict[str, Any], last: RunRow) -> list[Concern]:
    """Return what broke, the worst first; the page of the run has what is left out."""
    broken = [
        Concern("concern.scenario", "bad", (("name", each["scenario"]), ("why", each["why"])))
        for each in diff["failed_scenarios"]
    ]
    for list_name in ("regressions", "errors", "missing_in_new"):
        broken += [
            Concern(
                "concern.metric", "bad", (("name", each["id"]), ("why", each["why"])), each["id"]
            )
            for each in diff[list_name]
        ]
    left = len(broken) - WORST
    if left <= 0:
        return broken
    more = Concern("concern.more", "bad", (("n", str(left)),), place(RUN, [("id", last.run_id)]))
    return [*broken[:WORST], more]
