"""What a night is asked for, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.baseline import Approval
from agent_gym.pipeline.nightly.crew import TIMEOUT_S


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is played and how.

    Attributes:
        suite: The scenarios.
        subject: Who is under test.
        workers: Processes; no figure depends on it.
        timeout_s: Wall time of a job of a few seeds.
        imports: Modules that register things without an entry point.
        also: Files and folders beside the packages that decide figures, such as prompts or models.
        date: Chooses fresh seeds, such as ``2026-11-16``; None is today (UTC).
        timings: Put wall-clock figures into the outputs; without them equal runs at equal times
            give equal bytes.
        command: The command that asks for the same again.
    """

    suite: Suite
    subject: Subject
    workers: int = 2
    timeout_s: float = TIMEOUT_S
    imports: tuple[str, ...] = ()
    also: tuple[Path, ...] = ()
    date: str | None = None
    timings: bool = True
    command: tuple[str, ...] = ("agent-gym", "nightly")


@dataclass(frozen=True, slots=True)
class NightlyOptions:
    """What the night decides.

    Attributes:
        fail_on_regression: Whether a regression is an exit code of 1, and a way that cannot be
            repeated one of 4.
        fail_on_unsure: Whether a night that is neither good nor bad is an exit code of 1.
        approval: Make this run the baseline, if it may be.
        set_anchor: Make the baseline (the new one, if there is one) the anchor, too.
        policy: How strict the gate is.
    """

    fail_on_regression: bool = False
    fail_on_unsure: bool = False
    approval: Approval | None = None
    set_anchor: bool = False
    policy: GatePolicy = GatePolicy()  # noqa: RUF009 - frozen
