"""Agents that could not be judged: who, where, and why; the others go on without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.core.errors import AgentError
from agent_gym.evaluation.baselines import Arm
from agent_gym.rollouts.play import describe_error

FAILED = "failed"  # in the row of a job, in place of figures


@dataclass(frozen=True, slots=True)
class FailedArm:
    """An arm without figures, and the error that it ended with."""

    label: str
    error: AgentError

    def words(self) -> str:
        """Return why there is no verdict."""
        return str(self.error)

    def as_dict(self) -> dict[str, Any]:
        """Return the failure as plain values."""
        return {"label": self.label, **self.error.as_dict()}


def placed(error: AgentError, *places: str) -> AgentError:
    """Return the error with the places it happened in before its own."""
    where = ", ".join(place for place in (*places, error.where or "") if place)
    return AgentError(
        error.what,
        where=where,
        found=error.found,
        expected=error.expected,
        remedy=error.remedy,
    )


def broken(error: Exception, label: str) -> AgentError:
    """Return the failure of an agent whose own code raised: what it raised, and at which line."""
    said = describe_error(error)
    return AgentError(
        "the agent's own code failed",
        where=label,
        found=f"{said['error']}: {said['what']}, raised at {said['raised_at']}",
        remedy="Run agent-gym audit on the agent, or mend that line",
    )


def failed_row(error: AgentError) -> dict[str, Any]:
    """Return a failure as another process sends it."""
    return {FAILED: error.as_dict()}


def failure_of(row: dict[str, Any]) -> AgentError | None:
    """Return the failure that a row holds, None if it holds figures."""
    said = row.get(FAILED)
    if said is None:
        return None
    fields = {name: said[name] for name in ("where", "found", "expected", "remedy")}
    return AgentError(said["what"], **fields)


def without_failed(arms: Sequence[Arm], failed: Sequence[FailedArm]) -> list[Arm]:
    """Return the arms that can be judged; no agent among them is an AgentError.

    A baseline that fails is an error of its own: there would be nothing to compare with.
    """
    labels = {each.label for each in failed}
    for arm in arms:
        if arm.baseline and arm.label in labels:
            raise next(each.error for each in failed if each.label == arm.label)
    left = [arm for arm in arms if arm.label not in labels]
    if failed and all(arm.baseline for arm in left):
        first = failed[0].error
        if len(failed) == 1:
            raise first
        raise AgentError(
            "no agent could be judged",
            where=first.where,
            found="; ".join(each.words() for each in failed),
            remedy=first.remedy,
        )
    return left
