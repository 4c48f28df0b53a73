"""Situations that a desk or an agent is put into, each with figures that say how it did.

Belongs here: what a scenario, a metric and a suite are; the desk scenarios and the market
scenarios; recorded logs as their source; faults that are planted to test whoever judges.
Hands on: an Episode for each seed, with figures, a hash of everything that happened, and nothing
of the wall clock in either.
"""

from agent_gym.evaluation.scenarios.bot import BotConfig
from agent_gym.evaluation.scenarios.metric import Direction, Metric, Tolerance
from agent_gym.evaluation.scenarios.plant import Plant
from agent_gym.evaluation.scenarios.plants import PLANTS
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.suite import (
    ScenarioConfig,
    Suite,
    default_suite,
    fixed_seeds,
    fresh_seeds,
    load_suite,
    play_seed,
)
from agent_gym.evaluation.scenarios.trace import Trace

__all__ = [
    "PLANTS",
    "BotConfig",
    "Direction",
    "Episode",
    "Metric",
    "Plant",
    "Scenario",
    "ScenarioConfig",
    "Subject",
    "Suite",
    "Tolerance",
    "Trace",
    "default_suite",
    "fixed_seeds",
    "fresh_seeds",
    "load_suite",
    "play_seed",
]
