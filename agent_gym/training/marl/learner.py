"""The learner: batches in, better networks out. It plays nothing and knows no world.

Each batch is studied once with the networks as they are. Then all rows are gone through several
times. Where a batch came from plays no part but for its weight, so any source can join the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.network import Floats
from agent_gym.agents.marl.policy import ACTION
from agent_gym.agents.named_arrays import under
from agent_gym.agents.torch_parts import (
    arrays_of,
    optimizer_arrays,
    put_arrays,
    put_optimizer,
)
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo.loss import categorical_entropy
from agent_gym.training.marl.batch import Arrays, Batch
from agent_gym.training.marl.config import LearnConfig
from agent_gym.training.marl.losses import (
    PolicyLoss,
    PolicyTerms,
    imitation_loss,
    policy_loss,
    value_loss,
)
from agent_gym.training.marl.networks import TeamNetwork, critic_network, masked
from agent_gym.training.marl.returns import effective_share
from agent_gym.training.marl.rows import Rows, joined
from agent_gym.training.marl.study import (
    TEAM_ALONE,
    Heads,
    Parts,
    Study,
    chosen,
    study,
    tensor,
)
from agent_gym.training.marl.value_norm import ValueNorm

ADAM_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class LearnFigures:
    """What the last epoch of an update looked like.

    ``ess`` is the effective share of samples by source, ``used`` the share of the living's rows
    that the policy learned from, ``used_by`` the same by source.
    """

    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    actor_grad_norm: float
    critic_grad_norm: float
    used: float
    ess: Mapping[str, float]
    used_by: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Figures of an update, and what the critic remembers where the first batch ended."""

    figures: LearnFigures
    critic_memory: Floats


class Learner:
    """Actor, critic, their optimisers and the scale of values.

    Args:
        policy: What the actor begins as.
        state: Width of the state of the whole battle.
        config: How it learns.
        chunk: Steps that memories are trained through; 1 without a memory.
        seeds: Where the critic's first weights come from.
        heads: What the critic expects; the first is the team's own.
    """

    def __init__(
        self,
        policy: TeamPolicy,
        state: int,
        config: LearnConfig,
        chunk: int,
        seeds: Seeds,
        heads: Heads = TEAM_ALONE,
    ) -> None:
        contract, shape = policy.contract, policy.config
        self.config, self._chunk, self._base = config, chunk, policy
        actor = TeamNetwork(contract.inputs, shape, contract.heads)
        put_arrays(actor, policy.weights, "actor")
        width = contract.inputs + (state if config.critic == "state" else 0)
        critic = critic_network(width, shape, heads.names, seeds.child("critic"))
        norms = {name: ValueNorm(config.value_memory) for name in heads.names}
        self.parts = Parts(actor, critic, norms, heads.endless)
        self._adams = {
            name: torch.optim.Adam(
                network.parameters(), lr=config.learning_rate, eps=ADAM_EPSILON, fused=True
            )
            for name, network in self._networks()
        }

    def _networks(self) -> tuple[tuple[str, TeamNetwork], ...]:
        return ("actor", self.parts.actor), ("critic", self.parts.critic)

    @property
    def policy(self) -> TeamPolicy:
        """Return the policy as it is now; training it further changes nothing in the copy."""
        return self._base.with_weights(self.actor_weights)

    @property
    def actor_weights(self) -> Arrays:
        """Return the numbers of the policy as they are now."""
        return arrays_of(self.parts.actor)

    def learn(
        self,
        batches: Sequence[Batch],
        done: float = 0.0,
        shares: Mapping[str, float] | None = None,
        floors: Mapping[str, float] | None = None,
    ) -> Learned:
        """Change both networks by what was played.

        Args:
            batches: The first is what was just played.
            done: Share of the training that lies behind; the learning rate falls with it.
            shares: What value heads beside the first count, by name, as shares of its spread.
            floors: By source, the effective share of samples below which a batch is left out.
        """
        self._set_rate(done)
        studies = [study(each, self.parts, self.config, self._chunk) for each in batches]
        kept = _above(batches, studies, floors or {})
        rows = joined([each.rows for each in kept])
        for name, norm in self.parts.norms.items():
            norm.update(rows.targets[name])
        lesson = _Lesson.of(rows, shares or {}, self.parts.norms)
        for _ in range(self.config.epochs - 1):
            self._epoch(lesson)
        told = self._epoch(lesson)
        alive = sum(int(each.alive.sum()) for each in batches)
        figures = LearnFigures(
            **told,
            used=float(rows.used.sum()) / max(alive, 1),
            ess=_ess(batches, studies),
            used_by=_used(batches, studies, kept),
        )
        return Learned(figures, studies[0].critic_memory)

    def loss_on(self, batches: Sequence[Batch], shares: Mapping[str, float]) -> Tensor:
        """Return the policy's loss on batches, with a gradient; nothing is changed."""
        studies = [study(each, self.parts, self.config, self._chunk) for each in batches]
        rows = joined([each.rows for each in studies])
        return self._policy_loss(_Lesson.of(rows, shares, self.parts.norms)).loss

    def _set_rate(self, done: float) -> None:
        config = self.config
        rate = config.learning_rate * (1.0 - done * (1.0 - config.last_rate))
        for adam in self._adams.values():
            for group in adam.param_groups:
                group["lr"] = rate

    def _epoch(self, lesson: _Lesson) -> dict[str, float]:
        """Take one step with each network; return the figures as they were before it."""
        made = self._policy_loss(lesson)
        actor_norm = self._step("actor", self.parts.actor, made.loss)
        expected = self._value_loss(lesson)
        critic_norm = self._step("critic", self.parts.critic, expected)
        return {
            "policy_loss": float(made.loss.detach()),
            "value_loss": float(expected.detach()),
            "entropy": float(made.entropy),
            "approx_kl": float(made.approx_kl),
            "clip_fraction": float(made.clip_fraction),
            "actor_grad_norm": actor_norm,
            "critic_grad_norm": critic_norm,
        }

    def _policy_loss(self, lesson: _Lesson) -> PolicyLoss:
        answers = self.parts.actor.answers(lesson.seen, lesson.actor_memory, lesson.begun)
        log_probs = masked(answers.heads[ACTION], lesson.legal)
        terms = PolicyTerms(
            log_probs=chosen(log_probs, lesson.actions),
            entropy=categorical_entropy(log_probs),
            drawn=lesson.drawn,
            ratios=lesson.ratios,
            advantages=lesson.advantages,
            weights=lesson.policy_weights,
        )
        made = policy_loss(terms, self.config.clip, self.config.entropy)
        reuse = self.config.reuse
        if reuse is None or reuse.imitation == 0.0:
            return made
        copied = imitation_loss(terms.log_probs, lesson.merits, terms.weights)
        return replace(made, loss=made.loss + reuse.imitation * copied)

    def _value_loss(self, lesson: _Lesson) -> Tensor:
        """Return the sum over value heads."""
        answers = self.parts.critic.answers(lesson.critic_seen, lesson.critic_memory, lesson.begun)
        losses = [
            value_loss(
                answers.heads[name].squeeze(-1),
                lesson.before[name],
                targets,
                lesson.value_weights,
                self.config.clip,
                self.config.huber,
            )
            for name, targets in lesson.targets.items()
        ]
        return torch.stack(losses).sum()

    def _step(self, name: str, network: nn.Module, loss: Tensor) -> float:
        """Take one step down a loss; return the norm of its gradient, before it was cut."""
        self._adams[name].zero_grad(set_to_none=True)
        torch.autograd.backward([loss])
        norm = nn.utils.clip_grad_norm_(network.parameters(), self.config.max_grad_norm)
        if not torch.isfinite(norm):
            raise DataError("a gradient is not a number", where=name, found=float(norm))
        self._adams[name].step()
        return float(norm)

    def state(self) -> Arrays:
        """Return all that decides how it goes on learning."""
        arrays: Arrays = {}
        for name, network in self._networks():
            kept = arrays_of(network) | optimizer_arrays(network, self._adams[name])
            arrays |= {f"{name}/{key}": array for key, array in kept.items()}
        return arrays | {f"norm/{name}": norm.array() for name, norm in self.parts.norms.items()}

    def restore(self, arrays: Arrays) -> None:
        """Go on where another learner stood."""
        for name, network in self._networks():
            kept = under(f"{name}/", arrays)
            put_arrays(network, kept, name)
            put_optimizer(network, self._adams[name], kept)
        for name, norm in self.parts.norms.items():
            norm.restore(arrays[f"norm/{name}"])


@dataclass(frozen=True, slots=True, eq=False)
class _Lesson:
    """Rows as tensors, with scaled advantages and targets: what every epoch goes through."""

    seen: Tensor
    legal: Tensor
    actions: Tensor
    drawn: Tensor
    ratios: Tensor
    advantages: Tensor
    policy_weights: Tensor
    merits: Tensor
    value_weights: Tensor
    begun: Tensor
    actor_memory: Tensor
    critic_seen: Tensor
    critic_memory: Tensor
    targets: dict[str, Tensor]
    before: dict[str, Tensor]

    @classmethod
    def of(cls, rows: Rows, shares: Mapping[str, float], norms: Mapping[str, ValueNorm]) -> _Lesson:
        return cls(
            seen=tensor(rows.seen),
            legal=tensor(rows.legal),
            actions=tensor(rows.actions),
            drawn=tensor(rows.drawn),
            ratios=tensor(rows.ratios),
            advantages=tensor(rows.advantage(shares)),
            policy_weights=tensor(np.where(rows.used, rows.weights, 0.0)),
            merits=tensor(rows.merit() * rows.weights),
            value_weights=tensor(rows.weights),
            begun=tensor(rows.begun),
            actor_memory=tensor(rows.actor_memory[0]),
            critic_seen=tensor(rows.critic_seen),
            critic_memory=tensor(rows.critic_memory[0]),
            targets={n: tensor(norms[n].normalize(each)) for n, each in rows.targets.items()},
            before={n: tensor(each) for n, each in rows.before.items()},
        )


def _above(
    batches: Sequence[Batch], studies: Sequence[Study], floors: Mapping[str, float]
) -> list[Study]:
    """Return the studies of batches that are near enough to what would be done now."""
    return [
        each
        for batch, each in zip(batches, studies, strict=True)
        if batch.source not in floors
        or effective_share(each.rows.ratios, each.rows.used) >= floors[batch.source]
    ]


def _used(
    batches: Sequence[Batch], studies: Sequence[Study], kept: Sequence[Study]
) -> dict[str, float]:
    """Return the share of the living's rows that were learned from, by source."""
    used: dict[str, int] = {}
    alive: dict[str, int] = {}
    for batch, each in zip(batches, studies, strict=True):
        learned = int(each.rows.used.sum()) if any(each is one for one in kept) else 0
        used[batch.source] = used.get(batch.source, 0) + learned
        alive[batch.source] = alive.get(batch.source, 0) + int(batch.alive.sum())
    return {source: used[source] / max(alive[source], 1) for source in used}


def _ess(batches: Sequence[Batch], studies: Sequence[Study]) -> dict[str, float]:
    """Return the effective share of samples by source; the lowest, if it has several batches."""
    found: dict[str, float] = {}
    for batch, (rows, _) in zip(batches, studies, strict=True):
        share = effective_share(rows.ratios, rows.used)
        found[batch.source] = min(share, found.get(batch.source, 1.0))
    return found
