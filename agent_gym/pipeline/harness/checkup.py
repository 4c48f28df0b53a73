"""Is the loop whole? Configuration, data, automation and registry, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from agent_gym.core.errors import AgentGymError
from agent_gym.core.registry import Config
from agent_gym.markets.snapshot.public_file import SUFFIX, load_snapshot
from agent_gym.markets.snapshot.sealed import truth_path
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.engine_file import check_engine_file
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.pipeline.automation.snapshot_set import SnapshotSet, refuse_shared
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.harness.snapshots import SETS
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.runtime import verify_served

Area: TypeAlias = Literal["configuration", "data", "automation", "registry"]
State: TypeAlias = Literal["good", "waiting", "bad"]
FIRST_RUN = "Run `agent-gym harness`"
OPEN_BATCHES = 100


class Finding(Config):
    """One thing that was looked at.

    Attributes:
        state: ``waiting`` is nothing wrong: something has not happened yet.
        next_step: What to do about it; empty if there is nothing to do.
    """

    area: Area
    name: str
    state: State
    words: str
    next_step: str = ""


class Checkup(Config):
    """Everything that was looked at."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return all(one.state != "bad" for one in self.findings)

    @property
    def next_steps(self) -> tuple[str, ...]:
        """Return what to do, what is wrong first, each thing once."""
        ranked = sorted(self.findings, key=lambda one: one.state != "bad")
        return tuple(dict.fromkeys(one.next_step for one in ranked if one.next_step))


def check_up(folder: LoopFolder, url: str | None = None) -> Checkup:
    """Look at everything; what cannot even be looked at is a finding as well.

    Args:
        folder: Where the loop lies.
        url: Of the database; SQLite in the folder if it is not given.
    """
    found = [_configuration(), *_snapshots(folder), *_shared(folder)]
    try:
        with folder.opened(AutomationConfig(readiness=_policy()), url=url) as stages:
            found += _opened(stages)
            found.append(_jobs(folder, stages))
    except AgentGymError as error:
        found.append(_failed("data", "store", error))
    return Checkup(findings=tuple(found))


def _opened(stages: Stages) -> Iterator[Finding]:
    looks: tuple[tuple[Area, str, Callable[[Stages], Finding]], ...] = (
        ("data", "trajectories", _trajectories),
        ("data", "outbox", _outbox),
        ("automation", "readiness", _readiness),
        ("automation", "batches", _batches),
        ("registry", "champion", _champion),
        ("registry", "artifacts and history", _artifacts),
        ("registry", "answers", _answers),
    )
    for area, name, look in looks:
        try:
            yield look(stages)
        except AgentGymError as error:
            yield _failed(area, name, error)


def _jobs(folder: LoopFolder, stages: Stages) -> Finding:
    try:
        check_engine_file(folder.workflows(stages.store))
    except AgentGymError as error:
        return _failed("automation", "jobs", error)
    words = "their record is whole"
    return Finding(area="automation", name="jobs", state="good", words=words)


def _policy() -> ReadinessPolicy:
    try:
        return ReadinessPolicy.from_environment()
    except AgentGymError:
        return ReadinessPolicy()


def _configuration() -> Finding:
    try:
        policy = ReadinessPolicy.from_environment()
    except AgentGymError as error:
        return _failed("configuration", "environment", error)
    words = f"training begins with {policy.min_trajectories:,} unused trajectories"
    return Finding(area="configuration", name="environment", state="good", words=words)


def _snapshots(folder: LoopFolder) -> Iterator[Finding]:
    for name in SETS:
        place = folder.snapshots(name)
        paths = sorted(place.glob(f"*{SUFFIX}"))
        if not paths:
            yield Finding(
                area="data",
                name=f"snapshots: {name}",
                state="waiting",
                words=f"there are none in {place}",
                next_step=FIRST_RUN,
            )
            continue
        bad = []
        for path in paths:
            try:
                load_snapshot(path)
            except AgentGymError as error:
                bad.append(f"{path.name}: {error.what}")
            else:
                if not truth_path(path).is_file():
                    bad.append(f"{path.name}: its sealed truth is gone")
        yield Finding(
            area="data",
            name=f"snapshots: {name}",
            state="bad" if bad else "good",
            words="; ".join(bad[:3]) if bad else f"{len(paths)}, all as they were made",
            next_step=f"Remove what is damaged in {place}, then run `agent-gym harness`"
            if bad
            else "",
        )


def _shared(folder: LoopFolder) -> Iterator[Finding]:
    present = {name: folder.snapshots(name) for name in SETS}
    sets = {
        name: SnapshotSet.of(place)
        for name, place in present.items()
        if any(place.glob(f"*{SUFFIX}"))
    }
    try:
        refuse_shared(sets.items())
    except AgentGymError as error:
        yield Finding(
            area="data",
            name="snapshots: sets apart",
            state="bad",
            words=f"{error.what}: {error.where}, {error.found}",
            next_step=error.remedy or "",
        )


def _trajectories(stages: Stages) -> Finding:
    report, counts = stages.store.check(), stages.store.counts()
    if not report.whole:
        broken = len(report.damaged) + len(report.missing)
        return Finding(
            area="data",
            name="trajectories",
            state="bad",
            words=f"{broken} of {report.checked} step files are damaged or gone; "
            f"{len(report.trajectories)} trajectories cannot be read and are not trained on",
            next_step="Bring the step files back from a copy, or record anew",
        )
    words = f"{counts.total:,} with {counts.steps:,} steps; all {report.checked} step files whole"
    state: State = "good" if counts.total else "waiting"
    step = "" if counts.total else FIRST_RUN
    return Finding(area="data", name="trajectories", state=state, words=words, next_step=step)


def _outbox(stages: Stages) -> Finding:
    waiting = len(stages.store.outbox.waiting())
    if waiting:
        return Finding(
            area="data",
            name="outbox",
            state="waiting",
            words=f"{waiting} recordings wait for the database",
            next_step="They are delivered as soon as a recorder or the service can reach it",
        )
    return Finding(area="data", name="outbox", state="good", words="nothing waits")


def _readiness(stages: Stages) -> Finding:
    found = stages.readiness()
    if found.ready:
        return Finding(
            area="automation",
            name="readiness",
            state="good",
            words="training may begin",
            next_step="Train: `agent-gym harness`, or let the service do it",
        )
    return Finding(
        area="automation",
        name="readiness",
        state="waiting",
        words=found.reason,
        next_step="Let agents play: `agent-gym harness`, or agent ticks of `agent-gym serve`",
    )


def _batches(stages: Stages) -> Finding:
    newest = stages.store.batches.newest(limit=OPEN_BATCHES)
    under_way = [one.batch_id for one in newest if one.status not in ("completed", "failed")]
    if under_way:
        return Finding(
            area="automation",
            name="batches",
            state="waiting",
            words=f"{len(under_way)} are under way: {', '.join(under_way[:3])}",
            next_step="A job that was cut off goes on when `agent-gym serve` or the harness runs",
        )
    return Finding(
        area="automation", name="batches", state="good", words=f"{len(newest)}, none is under way"
    )


def _champion(stages: Stages) -> Finding:
    champion = stages.deployments.state().champion
    if champion is None:
        return Finding(
            area="registry",
            name="champion",
            state="waiting",
            words="no model serves yet",
            next_step=FIRST_RUN,
        )
    stages.registry.load(champion)
    return Finding(area="registry", name="champion", state="good", words=f"{champion[:12]} serves")


def _artifacts(stages: Stages) -> Finding:
    problems = stages.registry.verify()
    count = len(stages.registry.models())
    if problems:
        return Finding(
            area="registry",
            name="artifacts and history",
            state="bad",
            words="; ".join(problems[:3]),
            next_step="Look closer: `agent-gym registry verify`; go back: "
            "`agent-gym registry rollback`",
        )
    words = f"{count} models; hashes, signatures and the history's chain hold"
    return Finding(area="registry", name="artifacts and history", state="good", words=words)


def _answers(stages: Stages) -> Finding:
    report = verify_served(stages.store, stages.deployments)
    return Finding(
        area="registry",
        name="answers",
        state="good" if report.ok else "bad",
        words=report.words,
        next_step="" if report.ok else "Restart `agent-gym serve`, then tick and verify again",
    )


def _failed(area: Area, name: str, error: AgentGymError) -> Finding:
    return Finding(
        area=area, name=name, state="bad", words=error.what, next_step=error.remedy or str(error)
    )
