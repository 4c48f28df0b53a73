"""The model of the world as it is kept beside the policy, for who watches a recorded battle."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.foresight import MEAN, SPREAD, ForesightCard, TeamForesight
from agent_gym.training.marl.amal.agent import AMALAgent


def foresight_of(agent: AMALAgent, policy: TeamPolicy) -> TeamForesight:
    """Return the model as it is now, with its scale of what is seen."""
    config = agent.config.model
    card = ForesightCard(
        policy=policy.version,
        contract=policy.contract,
        state=agent.state_width,
        core=tuple(map(int, agent.core)),
        heads=config.heads,
        layers=(config.hidden,) * config.layers,
        floor=agent.config.variance_floor,
    )
    scale = agent.model.scale_of_seen
    scales = {MEAN: scale.mean.astype(np.float32), SPREAD: scale.spread.astype(np.float32)}
    return TeamForesight(card, agent.model.weights() | scales)
