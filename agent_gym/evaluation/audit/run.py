"""Run checks on a subject and collect what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast

from agent_gym.core.registry import Config, Ref, make, names
from agent_gym.evaluation.audit.finding import AuditReport, CheckReport, Finding, error, unchecked
from agent_gym.evaluation.audit.subject import Subject
from agent_gym.rollouts.play import attempt

NO_AGENT = "A world is audited on its own: there is no agent to look at."
NOT_PLAYED = "The agent could not play an episode, so there is nothing to look at."


class Plain(Config):
    """The config of a check that has nothing to set."""


class Check(Protocol):
    """Looks for one kind of defect; registered under the kind ``check``.

    ``wants_agent`` is False for a check that also makes sense for a world on its own.
    """

    @property
    def looks_for(self) -> str: ...
    @property
    def wants_agent(self) -> bool: ...
    def run(self, subject: Subject) -> Iterable[Finding]: ...


def audit(subject: Subject, checks: Sequence[str | Ref] | None = None) -> AuditReport:
    """Run the named checks, or all that are known, and report what each has found.

    Whatever an agent or a world raises becomes an error finding; an audit itself does not fail.
    """
    chosen = names("check") if checks is None else checks
    refs = [Ref(use=each) if isinstance(each, str) else each for each in chosen]
    made = [(ref.use, cast(Check, make("check", ref))) for ref in refs]
    broken = guarded(lambda: _first_episode(subject))
    reports = []
    for name, check in made:
        findings = _run(check, subject) if not broken else (unchecked(NOT_PLAYED),)
        reports.append(CheckReport(name, check.looks_for, findings))
    if broken:
        reports.insert(0, CheckReport("plays", "an agent that plays an episode", broken))
    return AuditReport(subject.name, subject.bars.describe(), subject.seed, tuple(reports))


def guarded(work: Callable[[], Iterable[Finding]]) -> tuple[Finding, ...]:
    """Return all findings up to the end, or up to the failure, which is one more finding."""
    found: list[Finding] = []

    def collect() -> None:
        for each in work():
            found.append(each)  # noqa: PERF402 (what came before a failure is kept)

    status, failure = attempt(collect)
    if status == "interrupted":
        raise KeyboardInterrupt
    if failure is not None:
        found.append(
            error(
                f"It stopped with {failure['error']}: {failure['what']}.",
                "Mend what raises, then audit again",
                raised_at=str(failure.get("raised_at")),
            )
        )
    return tuple(found)


def _first_episode(subject: Subject) -> Iterable[Finding]:
    if not subject.stream.steps:
        yield error("The world ended before the first decision.", "Give it more bars", steps=0)


def _run(check: Check, subject: Subject) -> tuple[Finding, ...]:
    if subject.factory is None and check.wants_agent:
        return (unchecked(NO_AGENT),)
    return guarded(lambda: check.run(subject))
