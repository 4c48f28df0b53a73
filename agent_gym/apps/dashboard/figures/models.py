"""Models: where they come from, what the gate said, who serves; and how that is changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_gym.apps.api.routes import models as routes
from agent_gym.apps.api.routes.common import ADMIN_REQUEST
from agent_gym.apps.api.service import Service
from agent_gym.apps.dashboard.view import Visit
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.promotion import Verdict
from agent_gym.pipeline.registry.deployment import RegistryState
from agent_gym.pipeline.registry.ledger import HistoryEntry
from agent_gym.pipeline.registry.models import RegisteredModel
from agent_gym.pipeline.registry.refusals import RefusedDeployment
from agent_gym.pipeline.registry.rollout import STAGES, Rollout, Stage

Mark: TypeAlias = tuple[str | None, str, str]
HISTORY = 50


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model of the list, with what the gate said of it."""

    model: RegisteredModel
    verdict: Verdict | None
    serves: str


@dataclass(frozen=True, slots=True)
class ModelList:
    """All models, the newest first, and who serves."""

    rows: tuple[ModelRow, ...]
    state: RegistryState
    history: tuple[HistoryEntry, ...]

    @property
    def versions(self) -> dict[str, str]:
        """The version of each model by its hash."""
        return {row.model.model_hash: row.model.version for row in self.rows}


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """One model.

    Attributes:
        row: The model, its verdict and how it serves.
        lineage: What it was trained from, the nearest first.
        children: What was trained from it.
        history: What happened to it, the newest first.
        manifest: What its artifact says of itself.
        signed_by: Whose signature it has.
        state: Who serves now.
        versions: The version of every model by its hash.
    """

    row: ModelRow
    lineage: tuple[RegisteredModel, ...]
    children: tuple[RegisteredModel, ...]
    history: tuple[HistoryEntry, ...]
    manifest: dict[str, Any]
    signed_by: str
    state: RegistryState
    versions: dict[str, str]


def model_list(service: Service) -> ModelList:
    """Return all models."""
    registry, state = service.stages.registry, service.stages.deployments.state()
    rows = tuple(_row(service, model, state) for model in reversed(registry.models()))
    return ModelList(rows, state, registry.history()[-HISTORY:][::-1])


def model_figures(service: Service, name: str) -> ModelFigures:
    """Return one model by hash or version."""
    registry, state = service.stages.registry, service.stages.deployments.state()
    model = registry.find(name)
    known = {each.model_hash: each for each in registry.models()}
    lineage, at = [], model
    while at.base_model in known and known[at.base_model] not in lineage:
        at = known[at.base_model]
        lineage.append(at)
    artifact = registry.load(model.model_hash)
    return ModelFigures(
        row=_row(service, model, state),
        lineage=tuple(lineage),
        children=tuple(each for each in known.values() if each.base_model == model.model_hash),
        history=tuple(
            entry
            for entry in reversed(registry.history())
            if entry.data.get("model") == model.model_hash
        ),
        manifest=artifact.manifest.model_dump(mode="json"),
        signed_by=artifact.signed_by,
        state=state,
        versions={name: each.version for name, each in known.items()},
    )


@dataclass(frozen=True, slots=True)
class Moves:
    """What can be done about a model, or about all, as things stood when it was asked.

    Attributes:
        model: Hash of the model; empty on the list.
        version: Of that model, or of the one that is on its way.
        stage: Where the model could be taken next; None if nowhere.
        refused: Why it cannot be taken there now: what, found, expected, remedy; empty if it can.
        back: Whether there is something to take back, or this model can be returned to.
        champion: Version of the model that serves after a rollback.
        under_way: Stage of what is on its way; empty if nothing is.
        mark: Who serves and how far the next one is: what must not change before a confirmation.
    """

    model: str
    version: str
    stage: Stage | None
    back: bool
    champion: str
    under_way: str
    mark: Mark
    refused: tuple[str, ...] = field(default=(), compare=False)

    @property
    def deploys(self) -> bool:
        """Whether the model can be taken further as things stand."""
        return self.stage is not None and not self.refused


def moves_of(service: Service, name: str) -> Moves:
    """Return what can be done about a model by hash or version; without a name, about all."""
    registry, deployments = service.stages.registry, service.stages.deployments
    state = deployments.state()
    versions = {each.model_hash: each.version for each in registry.models()}
    if name:
        model = registry.find(name).model_hash
        stage = next_stage(state, model)
        return Moves(
            model=model,
            version=versions[model],
            stage=stage,
            refused=() if stage is None else _told(deployments.refusal(model, stage)),
            back=model in deployments.ways_back(),
            champion=versions[model],
            under_way="",
            mark=mark_of(state),
        )
    rollout = _open(state)
    return Moves(
        model="",
        version="" if rollout is None else versions[rollout.model],
        stage=None,
        back=rollout is not None,
        champion="" if rollout is None else versions[rollout.champion],
        under_way="" if rollout is None else rollout.stage,
        mark=mark_of(state),
    )


def _told(refusal: RefusedDeployment | None) -> tuple[str, ...]:
    if refusal is None:
        return ()
    parts = (refusal.what, refusal.found, refusal.expected, refusal.remedy)
    return tuple("" if part is None else str(part) for part in parts)


def next_stage(state: RegistryState, model: str) -> Stage | None:
    """Return the stage that a model could be taken to, whether or not it may."""
    rollout = _open(state)
    if rollout is not None and rollout.model == model:
        further = STAGES[STAGES.index(rollout.stage) + 1 :]
        return further[0] if further else None
    return None if state.champion == model else "shadow"


def mark_of(state: RegistryState) -> Mark:
    """Return what tells one state from another, however many episodes were seen in between."""
    rollout = _open(state)
    return state.champion, *(("", "") if rollout is None else (rollout.model, rollout.stage))


def deploy(visit: Visit, moves: Moves) -> None:
    """Take a model to the stage that was shown; who asks for it is written down first."""
    _refuse_moved(visit, moves)
    if moves.stage is None:
        raise ConfigError("this model goes nowhere from here", found=moves.version)
    _written_down(visit, "deploy", model=moves.model, stage=moves.stage)
    routes.deploy(visit.service, routes.DeployWish(model=moves.model, stage=moves.stage))


def rollback(visit: Visit, moves: Moves, reason: str) -> None:
    """Take back what was shown, or return to a champion; who asks is written down first."""
    if not reason.strip():
        raise ConfigError("a rollback has a reason", remedy="Say why")
    _refuse_moved(visit, moves)
    target = moves.model or None
    _written_down(visit, "rollback", reason=reason, target=target)
    wish = routes.RollbackWish(reason=reason.strip()[:500], target=target)
    routes.rollback(visit.service, wish)


def _refuse_moved(visit: Visit, moves: Moves) -> None:
    """Raise if somebody else has changed who serves since it was shown."""
    if mark_of(visit.service.stages.deployments.state()) != moves.mark:
        raise RefusedDeployment(
            "who serves has changed since this was shown", remedy="Look again, and decide anew"
        )


def _open(state: RegistryState) -> Rollout | None:
    rollout = state.rollout
    return rollout if rollout is not None and rollout.status == "open" else None


def _written_down(visit: Visit, what: str, **asked: str | None) -> None:
    said = {"name": visit.token_name, "method": what, "path": visit.query.path} | asked
    visit.service.stages.store.events.append(ADMIN_REQUEST, visit.token_id, said)


def _row(service: Service, model: RegisteredModel, state: RegistryState) -> ModelRow:
    rollout = _open(state)
    serves = ""
    if model.model_hash == state.champion:
        serves = "champion"
    elif rollout is not None and rollout.model == model.model_hash:
        serves = rollout.stage
    elif model.model_hash == state.previous:
        serves = "previous"
    return ModelRow(model, service.stages.registry.sealed.verdict(model.model_hash), serves)
