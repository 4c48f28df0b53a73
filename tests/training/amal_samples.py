"""Small trainings of AMAL."""

from agent_gym.agents.marl import NetworkConfig
from agent_gym.training.marl import AmalConfig, LearnConfig, ReuseConfig, WorldModelConfig
from agent_gym.training.marl.amal import amal_for
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.worlds import battle_worlds
from tests.training.marl_samples import small

TINY = WorldModelConfig(heads=3, hidden=16, updates=4, batch=32)
MEMORY = NetworkConfig(hidden=16, recurrent=True)


def tiny_model(**changes):
    """Return a model that learns in no time."""
    return TINY.model_copy(update=changes)


def amal(**changes):
    """Return settings that let every part act within a few iterations."""
    given = {
        "model": TINY,
        "num_auxiliary_agents": 4,
        "evolution_frequency": 2,
        "auxiliary_share": 0.5,
        "late_share": 0.5,
        "cem_probes": 8,
        "cem_episodes": 0.0,
        "cem_space": "subspace",
        "cem_elites": 0.5,
        "cem_kl": 0.1,
        "cem_max_kl": 0.5,
    }
    return AmalConfig(**(given | changes))


def small_amal(training=None, **changes):
    """Return a training of AMAL of seconds on 3m."""
    given = {"learn": LearnConfig(epochs=2, reuse=ReuseConfig()), "amal": amal(**changes)}
    return small(**(given | (training or {})))


def session_of(config):
    """Return a session with AMAL in it."""
    return Session(config, battle_worlds, amal_for(config, battle_worlds))
