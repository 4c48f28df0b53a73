"""The moves of the pointer, each within a transaction that is under way, and what forbids them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from agent_gym.core.clock import SECOND_NS
from agent_gym.evaluation.promotion import Verdict
from agent_gym.pipeline.registry.ledger import Change
from agent_gym.pipeline.registry.refusals import RefusedDeployment
from agent_gym.pipeline.registry.rollout import STAGES, Rollout, RolloutPolicy, Stage, read_rollout
from agent_gym.pipeline.registry.service_rows import (
    close_deployments,
    mark_archived,
    mark_champion,
    open_deployment,
)
from agent_gym.pipeline.registry.tables import ROLLOUTS
from agent_gym.rollouts.database.model_tables import DeploymentStatus


def refuse_deploy(change: Change, current: Rollout | None, model: str) -> None:
    """Raise unless a rollout may begin now."""
    pointer = change.pointer
    if pointer.champion is None:
        raise RefusedDeployment("there is no champion to win against", remedy="Install one")
    if pointer.champion == model:
        raise RefusedDeployment("this model is the champion already", found=model[:12])
    if current is not None and current.status == "open" and current.stage != "full":
        raise RefusedDeployment(
            "another rollout is under way",
            found=f"{current.model[:12]} in {current.stage}",
            remedy="Advance it or roll it back first",
        )
    if change.at_ns < pointer.cooldown_until_ns:
        left = (pointer.cooldown_until_ns - change.at_ns) / SECOND_NS
        raise RefusedDeployment(
            "the registry cools down after a rollback", found=f"{left:.0f} s are left"
        )
    _refuse_failed(change, model)


def _refuse_failed(change: Change, model: str) -> None:
    """Raise if a model was rolled back: it never serves again, whatever was said of it before."""
    failed = select(ROLLOUTS.c.reason).where(
        ROLLOUTS.c.model == model, ROLLOUTS.c.status == "rolled_back"
    )
    if (row := change.connection.execute(failed).first()) is not None:
        raise RefusedDeployment(
            "this model was rolled back before", found=row.reason, remedy="Train another one"
        )


def refuse_advance(current: Rollout, stage: Stage, policy: RolloutPolicy) -> None:
    """Raise unless a rollout may go to a stage now."""
    if STAGES.index(stage) != STAGES.index(current.stage) + 1:
        raise RefusedDeployment(
            "stages are taken one after the other", found=f"{current.stage} -> {stage}"
        )
    least = policy.min_pairs_shadow if current.stage == "shadow" else policy.min_pairs_canary
    if current.stage_pairs < least:
        raise RefusedDeployment(
            f"too little was seen of it in {current.stage}",
            found=f"{current.stage_pairs} paired episodes",
            expected=f"at least {least}",
        )


def roll_back(change: Change, current: Rollout, reason: str, cooldown_s: float) -> None:
    """Take a rollout back: it serves nobody, and the champion is the one it began with."""
    pointer = change.pointer
    end(change, current, "rolled_back", reason)
    close_deployments(change, current.model, "rolled_back", reason)
    mark_archived(change, current.model)
    if current.stage == "full":
        pointer.champion, pointer.previous = current.champion, None
        open_deployment(change, current.champion, "full", 1.0)
        mark_champion(change, current.champion)
    _cool_down(change, current.model, current.stage, reason, cooldown_s)


def return_to(
    change: Change, current: Rollout | None, wanted: str, reason: str, cooldown_s: float
) -> None:
    """Make a former champion serve again, whatever is under way."""
    pointer = change.pointer
    if wanted == pointer.champion:
        if current is None or current.status != "open" or current.stage == "full":
            raise RefusedDeployment("this model is the champion already", found=wanted[:12])
        roll_back(change, current, reason, cooldown_s)
        return
    was = select(ROLLOUTS.c.id).where(ROLLOUTS.c.champion == wanted)
    if change.connection.execute(was).first() is None:
        raise RefusedDeployment(
            "this model was never champion", found=wanted[:12], remedy="Deploy it instead"
        )
    _refuse_failed(change, wanted)
    left = pointer.champion or ""
    if current is not None and current.status == "open":
        end(change, current, "rolled_back", reason)
        close_deployments(change, current.model, "rolled_back", reason)
        mark_archived(change, current.model)
    failed = {"status": "rolled_back", "reason": reason, "ended_ns": change.at_ns}
    change.connection.execute(ROLLOUTS.update().where(ROLLOUTS.c.model == left).values(failed))
    crown(change, wanted, "rolled_back", reason)
    open_deployment(change, wanted, "full", 1.0)
    _cool_down(change, left, "full", reason, cooldown_s)


def former_champions(connection: Connection) -> frozenset[str]:
    """Return the models that others were rolled out against and that were never taken back."""
    failed = select(ROLLOUTS.c.model).where(ROLLOUTS.c.status == "rolled_back")
    were = select(ROLLOUTS.c.champion).where(ROLLOUTS.c.champion.not_in(failed))
    return frozenset(connection.scalars(were))


def _cool_down(change: Change, model: str, stage: str, reason: str, cooldown_s: float) -> None:
    pointer = change.pointer
    pointer.cooldown_until_ns = change.at_ns + round(cooldown_s * SECOND_NS)
    change.say("rolled back", model=model, stage=stage, reason=reason, champion=pointer.champion)


def passed(verdicts: Sequence[Verdict], model: str, champion: str | None) -> Verdict:
    """Return the verdict that lets a model through against a champion; raise if there is none.

    A candidate that has failed once against this champion does not try again on another sealed set:
    whoever tries often enough gets through by luck.
    """
    if not verdicts:
        raise RefusedDeployment(
            "the gate has not judged this model",
            found=model[:12],
            remedy="Evaluate it on a sealed set and record the verdict",
        )
    against = [verdict for verdict in verdicts if verdict.champion == champion]
    if failed := [verdict for verdict in against or verdicts if not verdict.promoted]:
        raise RefusedDeployment(
            "the gate has not let this model through",
            found=failed[0].sentence,
            remedy="Train another one",
        )
    if not against:
        raise RefusedDeployment(
            "the model has won against another champion",
            found=verdicts[-1].champion[:12],
            expected=(champion or "none")[:12],
            remedy="Judge it against the champion of today",
        )
    return against[-1]


def scale_of(verdict: Verdict) -> float:
    """Return how much sealed differences vary, which the watch is scaled by."""
    spread = verdict.check("superiority").figures["sd"]
    assert isinstance(spread, float | int)
    mean = verdict.check("superiority").figures["mean"]
    assert isinstance(mean, float | int)
    # Sealed pairs that all differ by the same have no spread; their size is the scale then.
    return float(spread) or abs(float(mean))


def crown(change: Change, model: str, status: DeploymentStatus, reason: str | None = None) -> None:
    """Put a model in the champion's place; the old one is kept and serves nobody."""
    left = change.pointer.champion
    if left is not None:
        close_deployments(change, left, status, reason)
        mark_archived(change, left)
    change.pointer.champion, change.pointer.previous = model, None
    mark_champion(change, model)


def end(change: Change, rollout: Rollout, status: str, reason: str | None) -> None:
    """Write that a rollout is over."""
    write(change, rollout.id, status=status, reason=reason, ended_ns=change.at_ns)
    change.pointer.rollout_id = None


def write(change: Change, rollout_id: int, **values: Any) -> None:
    """Change some columns of a rollout."""
    change.connection.execute(ROLLOUTS.update().where(ROLLOUTS.c.id == rollout_id).values(values))


def read(change: Change, rollout_id: int) -> Rollout:
    """Return a rollout that is there."""
    found = read_rollout(change.connection, rollout_id)
    assert found is not None  # it was written in this transaction
    return found
