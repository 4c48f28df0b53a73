"""Replays and small teams, made once."""

from functools import cache

import numpy as np

from agent_gym.agents.marl import NetworkConfig, TeamContract, TeamPolicy
from agent_gym.agents.marl.critic import CriticCard, TeamCritic, ValueHead
from agent_gym.agents.marl.network import HeadShape, first_weights
from agent_gym.core import Seeds
from agent_gym.envs.battle import MAPS, contract_of
from agent_gym.evaluation.battle import PolicyPlayer, ScriptPlayer, Start, record


@cache
def scripted(name="3m", script="focus", seed=7, episode=1):
    """Return the replay of a script."""
    return record(ScriptPlayer(script), MAPS[name], Start(seed, episode))


@cache
def team(name="3m", seed=0, *, recurrent=False):
    """Return a policy that was never trained, but has likes and dislikes."""
    contract = contract_of(MAPS[name])
    made = TeamContract(
        map=name,
        agents=len(MAPS[name].agents),
        observation=contract.observation,
        actions=contract.actions,
    )
    shape = NetworkConfig(hidden=8, recurrent=recurrent)
    first, rng = TeamPolicy.create(shape, made, Seeds(seed)), Seeds(seed).child("shaken").rng()
    return first.with_weights(
        {
            key: (array + 0.3 * rng.standard_normal(array.shape)).astype(array.dtype)
            for key, array in first.weights.items()
        }
    )


def critic(policy, heads=("team",), seed=5):
    """Return a critic that judges a policy, with scales of its own."""
    contract = policy.contract
    card = CriticCard(
        policy=policy.version,
        config=policy.config,
        contract=contract,
        state=len(contract_of(MAPS[contract.map]).state),
        heads=tuple(ValueHead(name=name, mean=3.0, spread=2.0) for name in heads),
    )
    shapes = {name: HeadShape(1, 1.0) for name in heads}
    inputs = card.state + contract.inputs
    return TeamCritic(card, first_weights(inputs, policy.config, shapes, Seeds(seed)))


@cache
def thought(name="3m"):
    """Return the replay of a team that tells its value and an information bonus."""
    policy = team(name)
    watches = {"information_bonus": lambda batch, actions: np.full(batch.n_envs, 0.25)}
    player = PolicyPlayer(policy, critic(policy), watches=watches)
    return record(player, MAPS[name], Start(3, 2))
