"""Information in nats: what an observation says about which of several heads is right.

Belongs here: mixtures of Gaussians, and closed forms and bounds of their information, as plain
arithmetic. Nothing here learns, draws without being given a seed, or keeps anything.
Hands on: what both the active inference of ``agents.umc`` and the bonus of a team's training need.
"""

from agent_gym.agents.information.bounds import (
    gaussian_kl,
    information_gain_linear,
    information_lower_bound,
    information_upper_bound,
    moment_information,
    parameter_information,
)
from agent_gym.agents.information.mixtures import (
    Mixture,
    conditional_entropy,
    entropy,
    gaussian_entropy,
    label_information,
    normal_draws,
    row_mixture,
    stratified_draws,
)

__all__ = [
    "Mixture",
    "conditional_entropy",
    "entropy",
    "gaussian_entropy",
    "gaussian_kl",
    "information_gain_linear",
    "information_lower_bound",
    "information_upper_bound",
    "label_information",
    "moment_information",
    "normal_draws",
    "parameter_information",
    "row_mixture",
    "stratified_draws",
]
