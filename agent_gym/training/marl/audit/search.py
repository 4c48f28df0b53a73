"""Check of the search: fitness of real episodes, selection that holds, a region of behaviour."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.training.marl.amal import AMALAgent
from agent_gym.training.marl.amal.auxiliaries import Probes
from agent_gym.training.marl.amal.probes import returns_anew
from agent_gym.training.marl.amal.space import divergences
from agent_gym.training.marl.audit.bandit import BanditWorlds, bandit_worlds
from agent_gym.training.marl.audit.spies import SpiedWorlds
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.runs import changed
from agent_gym.training.marl.worlds import TeamWorlds, contract_for

STEPS, EPISODES, TEAMS = 80, 100, 8
GENERATIONS = 2


def fitness(subject: TeamSubject) -> Iterator[Finding]:
    """Let teams search a bandit whose best arm is known, and play their best once more."""
    config = changed(
        subject.small,
        {"amal.num_auxiliary_agents": TEAMS, "amal.cem_space": "bias"},
        where=subject.name,
    )
    spied: list[SpiedWorlds] = []

    def spying(config: TeamTrainConfig, n_envs: int) -> TeamWorlds:
        spied.append(SpiedWorlds(BanditWorlds(n_envs)))
        return spied[-1]

    agent = subject.agent(config, spying)
    seeds = Seeds(config.seed).child("audit", "search")
    policy = TeamPolicy.create(config.network, contract_for(BanditWorlds(1), "bandit"), seeds)
    senses = BanditWorlds(4).senses
    probes = Probes(senses.observations, senses.legal, np.ones((4, 1), np.bool_))
    gains = []
    for generation in range(GENERATIONS):
        batch = agent.auxiliaries.play(policy, probes, STEPS)
        agent.auxiliaries.score(batch, np.zeros(batch.ended.shape))
        if generation == 0:
            yield _returns(agent, spied[0])
            yield _region(agent, policy, probes, config)
        chosen = agent.auxiliaries.fitness(policy, probes)
        elites = agent.auxiliaries.search.elites(chosen)
        crowd = agent.auxiliaries.space.crowd(policy, agent.auxiliaries.shifts)
        anew = returns_anew(crowd, config, bandit_worlds, EPISODES, seeds.child("anew", generation))
        gains.append(float(anew[elites].mean() - anew.mean()))
        agent.auxiliaries.search.tell(agent.auxiliaries.shifts, chosen)
        agent.auxiliaries.shifts = agent.auxiliaries.search.ask()
    yield _selection(gains)


def _returns(agent: AMALAgent, worlds: SpiedWorlds) -> Finding:
    """Compare the scores with what the worlds paid; every step there is an episode."""
    paid = np.mean([moment.rewards for moment in worlds.moments], axis=0)
    gap = float(np.abs(paid - agent.auxiliaries.mean_returns()).max())
    if gap > 1e-6:
        return error(
            "Scores of auxiliary teams are not what their episodes paid.",
            "Judge a team by the returns of whole episodes that it played itself",
            gap=gap,
        )
    return fine("Teams are scored by what their own episodes paid.", gap=gap)


def _region(
    agent: AMALAgent, policy: TeamPolicy, probes: Probes, config: TeamTrainConfig
) -> Finding:
    assert config.amal is not None
    crowd = agent.auxiliaries.space.crowd(policy, agent.auxiliaries.shifts)
    found = divergences(crowd, *probes)
    told = {
        "median_kl": float(np.median(found)),
        "wanted": config.amal.cem_kl,
        "most": float(found.max()),
        "allowed": config.amal.cem_max_kl,
    }
    near = 0.5 < told["median_kl"] / told["wanted"] < 2.0
    if told["most"] > told["allowed"] + 1e-6 or not near:
        return error(
            "Auxiliary teams are not held near the primary one by how they behave.",
            "Set the size of shifts by the divergence of behaviour, not by a distance of weights",
            **told,
        )
    return fine("Teams are held near the primary one by how they behave.", **told)


def _selection(gains: list[float]) -> Finding:
    told = {f"gain_{i}": gain for i, gain in enumerate(gains)}
    if min(gains) <= 0.0:
        return error(
            "Teams that were chosen are no better when they play anew.",
            "Rank teams by returns first; novelty and distance of weights say nothing of wins",
            **told,
        )
    return fine("Teams that were chosen are better in episodes nobody chose them by.", **told)
