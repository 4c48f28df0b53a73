"""The critic of a learner as it is kept beside the policy, for who watches a recorded battle."""

from __future__ import annotations

from agent_gym.agents.marl.critic import CriticCard, TeamCritic, ValueHead
from agent_gym.agents.torch_parts import arrays_of
from agent_gym.training.marl.learner import Learner


def critic_of(learner: Learner) -> TeamCritic:
    """Return the critic as it is now, with the scale of its values."""
    weights, policy = arrays_of(learner.parts.critic), learner.policy
    scales = {name: norm.mean_and_spread for name, norm in learner.parts.norms.items()}
    card = CriticCard(
        policy=policy.version,
        config=policy.config,
        contract=policy.contract,
        state=len(weights["norm.weight"]) - policy.contract.inputs,
        heads=tuple(
            ValueHead(name=name, mean=mean, spread=spread)
            for name, (mean, spread) in scales.items()
        ),
    )
    return TeamCritic(card, weights)
