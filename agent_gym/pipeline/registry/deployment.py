"""ModelDeploymentService: who is champion, who is on the way there, and the way back.

Every change is one transaction. Asking for what has already happened has no second effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import func, select

from agent_gym.core.errors import DataError
from agent_gym.evaluation.promotion import Monitor, MonitorDecision, MonitorPolicy, Verdict
from agent_gym.pipeline.registry.ledger import Change, HistoryEntry, Pointer
from agent_gym.pipeline.registry.models import ModelRegistry
from agent_gym.pipeline.registry.moves import (
    crown,
    end,
    former_champions,
    passed,
    read,
    refuse_advance,
    refuse_deploy,
    return_to,
    roll_back,
    scale_of,
    write,
)
from agent_gym.pipeline.registry.refusals import RefusedDeployment
from agent_gym.pipeline.registry.rollout import (
    Rollout,
    RolloutPolicy,
    Stage,
    canary_for,
    read_rollout,
    rollout_of,
)
from agent_gym.pipeline.registry.sealed import verdicts_of
from agent_gym.pipeline.registry.service_rows import (
    close_deployments,
    first_champion,
    mark_champion,
    open_deployment,
)
from agent_gym.pipeline.registry.tables import PAIRS, ROLLOUTS


@dataclass(frozen=True, slots=True)
class RegistryState:
    """Who serves now, and what is under way."""

    champion: str | None
    previous: str | None
    rollout: Rollout | None
    cooldown_until_ns: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "champion": self.champion,
            "previous": self.previous,
            "rollout": None if self.rollout is None else self.rollout.as_dict(),
            "cooldown_until_ns": self.cooldown_until_ns,
        }


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers for an agent, by the first ``position`` entries of the history."""

    model: str
    position: int


class ModelDeploymentService:
    """Moves models through shadow, canary and full service, and takes them back."""

    def __init__(
        self,
        registry: ModelRegistry,
        policy: RolloutPolicy | None = None,
        monitor: MonitorPolicy | None = None,
    ) -> None:
        self.registry = registry
        self.policy, self.monitor = policy or RolloutPolicy(), monitor or MonitorPolicy()
        self._ledger = registry.ledger

    # Reading.

    def state(self) -> RegistryState:
        """Return who serves now."""
        with self._ledger.look() as (connection, pointer):
            return _state(pointer, read_rollout(connection, pointer.rollout_id))

    def served(self, agent_id: str) -> str:
        """Return the hash of the model that answers for an agent."""
        return self.answering(agent_id).model

    def answering(self, agent_id: str) -> Answering:
        """Return the model that answers for an agent, and how long the history is that says so."""
        with self._ledger.look() as (connection, pointer):
            model = canary_for(connection, pointer.rollout_id, agent_id) or pointer.champion
        if model is None:
            raise RefusedDeployment(
                "no model serves yet", remedy="Install a first champion, then ask again"
            )
        return Answering(model, pointer.history_length)

    def last_rollout(self, model: str) -> Rollout | None:
        """Return the newest rollout of a model, under way or ended; None if there was none."""
        newest = select(ROLLOUTS).where(ROLLOUTS.c.model == model).order_by(ROLLOUTS.c.id.desc())
        with self._ledger.look() as (connection, _):
            row = connection.execute(newest.limit(1)).first()
        return None if row is None else rollout_of(row)

    def ways_back(self) -> frozenset[str]:
        """Return the former champions that a rollback may name: never those taken back."""
        with self._ledger.look() as (connection, pointer):
            return former_champions(connection) - {pointer.champion or ""}

    def refusal(self, model: str, stage: Stage) -> RefusedDeployment | None:
        """Return why a model cannot be taken to its next stage now; None if it can.

        It is what ``deploy`` or ``advance`` would raise; nothing changes.
        """
        with self._ledger.trial() as change:
            current = read_rollout(change.connection, change.pointer.rollout_id)
            try:
                if stage == "shadow":
                    _let_through(change, current, model)
                else:
                    refuse_advance(_under_way(current, model), stage, self.policy)
            except RefusedDeployment as error:
                return error
        return None

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return everything that has happened, oldest first."""
        return self._ledger.history()

    # Changing.

    def install(self, model: str) -> RegistryState:
        """Make a model the first champion; there is nothing to compare it with yet.

        Asking again has no effect, even if another model has won against it since.
        """
        model = self.registry.load(model).model_hash
        with self._ledger.change() as change:
            pointer = change.pointer
            if pointer.champion is not None and first_champion(change) != model:
                raise RefusedDeployment(
                    "there is a champion already",
                    found=pointer.champion[:12],
                    remedy="Deploy the model: it has to win against the champion first",
                )
            if pointer.champion is None:
                pointer.champion = model
                open_deployment(change, model, "full", 1.0)
                mark_champion(change, model)
                change.say("installed", model=model)
        return self.state()

    def deploy(self, model: str) -> Rollout:
        """Begin the rollout of a model in shadow, if the gate has let it through.

        Raises:
            RefusedDeployment: It has no verdict, a bad one or one against another champion; another
                rollout is under way; the registry cools down; or it was rolled back before.
        """
        model = self.registry.load(model).model_hash
        with self._ledger.change() as change:
            pointer = change.pointer
            current = read_rollout(change.connection, pointer.rollout_id)
            if current is not None and current.model == model and current.status == "open":
                return current
            scale = scale_of(_let_through(change, current, model))
            if current is not None:  # fully served and now replaced as the one that is watched
                end(change, current, "replaced", None)
            count = change.connection.scalar(select(func.count()).select_from(ROLLOUTS)) or 0
            values = {
                "id": count + 1,
                "model": model,
                "champion": pointer.champion,
                "stage": "shadow",
                "status": "open",
                "percent": self.policy.canary_percent,
                "salt": sha256(f"{count + 1} {model}".encode()).hexdigest()[:16],
                "stage_pairs": 0,
                "monitor": Monitor.start(scale, self.monitor).to_dict(),
                "reason": None,
                "started_ns": change.at_ns,
                "ended_ns": None,
            }
            change.connection.execute(ROLLOUTS.insert().values(values))
            pointer.rollout_id = count + 1
            open_deployment(change, model, "shadow", 0.0)
            change.say("deployed", model=model, rollout=count + 1, stage="shadow")
            return read(change, count + 1)

    def advance(self, stage: Stage, model: str | None = None) -> Rollout:
        """Take the rollout to the next stage; being there already is no second effect.

        Args:
            stage: Where to.
            model: The model that is meant; the rollout of another one is not touched.
        """
        under_way = self.state().rollout
        if under_way is not None and under_way.stage != stage:
            self.registry.load(under_way.model)  # it may have been changed since the rollout began
        with self._ledger.change() as change:
            current = read_rollout(change.connection, change.pointer.rollout_id)
            current = _under_way(current, model)
            if current.stage == stage:
                return current
            refuse_advance(current, stage, self.policy)
            write(change, current.id, stage=stage, stage_pairs=0)
            close_deployments(change, current.model, "replaced")
            share = 1.0 if stage == "full" else current.percent / 100.0
            open_deployment(change, current.model, stage, share)
            change.say("advanced", model=current.model, rollout=current.id, stage=stage)
            if stage == "full":
                crown(change, current.model, "replaced")
                change.pointer.previous = current.champion
            return read(change, current.id)

    def observe(
        self, episode_key: str, champion: float, challenger: float, model: str | None = None
    ) -> MonitorDecision:
        """Count one episode that both sides have played; harm that it shows rolls back at once.

        Args:
            episode_key: Names the episode; the same one again counts once.
            champion: Return of the model that was champion when the rollout began.
            challenger: Return of the model that is rolled out.
            model: That model; a pair of another one is refused.
        """
        with self._ledger.change() as change:
            current = _last_rollout(change)
            _refuse_another(current, model)
            seen = change.connection.execute(
                select(PAIRS).where(
                    PAIRS.c.rollout_id == current.id, PAIRS.c.episode_key == episode_key
                )
            ).one_or_none()
            if seen is not None:
                if (seen.champion, seen.challenger) != (champion, challenger):
                    raise DataError(
                        "an episode was told before with other returns",
                        where=episode_key,
                        found=(champion, challenger),
                        expected=(seen.champion, seen.challenger),
                    )
                return current.monitor.decision()
            if current.status != "open":
                raise RefusedDeployment("no rollout is under way", found=current.status)
            watch = current.monitor.add(champion, challenger)
            values = (current.id, episode_key, champion, challenger, change.at_ns)
            change.connection.execute(PAIRS.insert().values(values))
            write(change, current.id, monitor=watch.to_dict(), stage_pairs=current.stage_pairs + 1)
            decision = watch.decision()
            if decision.action == "roll_back":
                roll_back(change, current, f"automatic: {decision.words}", self.policy.cooldown_s)
            return decision

    def rollback(self, reason: str, target: str | None = None) -> RegistryState:
        """Take back what is under way, or the last champion, in one transaction.

        Args:
            reason: Why; it is written into the history.
            target: Another model that was champion before; by default the one before this.
        """
        if not reason.strip():
            raise RefusedDeployment("a rollback has a reason", remedy="Say why")
        wanted = None if target is None else self.registry.load(target).model_hash
        with self._ledger.change() as change:
            current = read_rollout(change.connection, change.pointer.rollout_id)
            if wanted is not None:
                return_to(change, current, wanted, reason, self.policy.cooldown_s)
            elif current is None or current.status != "open":
                raise RefusedDeployment(
                    "there is nothing to roll back",
                    remedy="Name the champion to return to with a target",
                )
            else:
                roll_back(change, current, reason, self.policy.cooldown_s)
        return self.state()


def _let_through(change: Change, current: Rollout | None, model: str) -> Verdict:
    """Return the verdict with which a rollout may begin now; raise if it may not."""
    refuse_deploy(change, current, model)
    return passed(verdicts_of(change.connection, model), model, change.pointer.champion)


def _under_way(current: Rollout | None, model: str | None) -> Rollout:
    """Return the rollout that can go on; raise if there is none, or that of another model."""
    if current is None or current.status != "open":
        raise RefusedDeployment("no rollout is under way", remedy="Deploy a model first")
    _refuse_another(current, model)
    return current


def _refuse_another(current: Rollout, model: str | None) -> None:
    if model is not None and model != current.model:
        raise RefusedDeployment(
            "another model is rolled out", found=current.model[:12], expected=model[:12]
        )


def _last_rollout(change: Change) -> Rollout:
    row = change.connection.execute(select(ROLLOUTS).order_by(ROLLOUTS.c.id.desc())).first()
    if row is None:
        raise RefusedDeployment("no rollout is under way", remedy="Deploy a model first")
    return rollout_of(row)


def _state(pointer: Pointer, rollout: Rollout | None) -> RegistryState:
    return RegistryState(pointer.champion, pointer.previous, rollout, pointer.cooldown_until_ns)
