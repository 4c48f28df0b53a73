"""Learners of teams that are broken, each in one way; the numbers are those of the page."""

from dataclasses import replace

import torch
from torch import nn

from agent_gym.agents.marl.policy import ACTION
from agent_gym.training.marl import ReuseConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.networks import masked
from agent_gym.training.marl.study import chosen
from agent_gym.training.marl.value_norm import ValueNorm


class OuterProduct(Learner):
    """1: [B] times [B, 1]."""

    def _policy_loss(self, lesson):
        answers = self.parts.actor.answers(lesson.seen, lesson.actor_memory, lesson.begun)
        logs = chosen(masked(answers.heads[ACTION], lesson.legal), lesson.actions).flatten()
        product = logs * lesson.advantages.flatten().unsqueeze(-1)
        return replace(super()._policy_loss(lesson), loss=-product.mean())


class FirstAgentAlone(Learner):
    """2: the rows of all agents but the first count nothing."""

    def _policy_loss(self, lesson):
        weights = lesson.policy_weights.clone()
        agents = self.policy.contract.agents
        weights[:, torch.arange(weights.shape[1]) % agents != 0] = 0.0
        return super()._policy_loss(replace(lesson, policy_weights=weights))


class NoShares(Learner):
    """3: the bonus is a constant beside the loss."""

    def learn(self, batches, done=0.0, shares=None, floors=None):
        return super().learn(batches, done, {}, floors)


class WrongSign(Learner):
    """5: the bonus is added to what is made smaller."""

    def learn(self, batches, done=0.0, shares=None, floors=None):
        turned = {name: -share for name, share in (shares or {}).items()}
        return super().learn(batches, done, turned, floors)


class Uncorrected(Learner):
    """4: stored chances are never read."""

    def __init__(self, policy, state, config, *rest):
        super().__init__(
            policy,
            state,
            config.model_copy(update={"reuse": ReuseConfig(corrected=False)}),
            *rest,
        )


class BorderEnds(Learner):
    """11: nothing comes after the last step of a window."""

    def learn(self, batches, done=0.0, shares=None, floors=None):
        return super().learn([self._cut(each) for each in batches], done, shares, floors)

    def _cut(self, batch):
        ended = batch.ended.copy()
        ended[-1] = True
        return replace(batch, ended=ended)


class DeadCount(Learner):
    """12: every row counts, that of the dead too."""

    def _policy_loss(self, lesson):
        return super()._policy_loss(replace(lesson, policy_weights=lesson.value_weights))


class OneBound(Learner):
    """13: one bound on the gradient of both networks."""

    def _epoch(self, lesson):
        actor, critic = self.parts.actor, self.parts.critic
        for adam in self._adams.values():
            adam.zero_grad(set_to_none=True)
        made, expected = self._policy_loss(lesson), self._value_loss(lesson)
        (made.loss + expected).backward()
        both = [*actor.parameters(), *critic.parameters()]
        norm = float(nn.utils.clip_grad_norm_(both, self.config.max_grad_norm))
        for adam in self._adams.values():
            adam.step()
        return {
            "policy_loss": float(made.loss.detach()),
            "value_loss": float(expected.detach()),
            "entropy": float(made.entropy),
            "approx_kl": float(made.approx_kl),
            "clip_fraction": float(made.clip_fraction),
            "actor_grad_norm": norm,
            "critic_grad_norm": norm,
        }


class Unscaled(ValueNorm):
    def update(self, targets):
        pass


class NoValueNorm(Learner):
    """13: the critic learns values in units of the reward."""

    def __init__(self, *given):
        super().__init__(*given)
        norms = {name: Unscaled(0.0) for name in self.parts.norms}
        self.parts = self.parts._replace(norms=norms)


class NoIds(Learner):
    """13: agents do not know which one they are."""

    def _policy_loss(self, lesson):
        seen = lesson.seen.clone()
        seen[..., -self.policy.contract.agents :] = 0.0
        return super()._policy_loss(replace(lesson, seen=seen))


class OneUpdate(Learner):
    """14: one step for every window."""

    def __init__(self, policy, state, config, *rest):
        super().__init__(policy, state, config.model_copy(update={"epochs": 1}), *rest)
