"""The free energy of every level for the next bar alone, for many bars at once.

What the bar shows is the same whatever is held, so of risk + ambiguity only the part that the
preference weighs differs between levels. It has a closed form, and needs no draws.
"""

from __future__ import annotations

import numpy as np

from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.efe import outcome_floor
from agent_gym.agents.umc.mind import Trace
from agent_gym.core.types import FloatArray

BASIS_POINT = 1e-4
LN_2PI = float(np.log(2.0 * np.pi))


def bar_energies(
    config: UMCConfig, trace: Trace, levels: FloatArray, held: FloatArray, weighed: FloatArray
) -> FloatArray:
    """Return risk + ambiguity - lambda x information of each level, one row a bar, in nats.

    Args:
        config: Of the agent.
        trace: What was believed.
        levels: Positions to choose from.
        held: The position before each decision.
        weighed: Lambda times information at each bar.
    """
    told, sigma = trace.told, trace.series.sigma
    spread = (told.chance * (told.variance + told.mean**2)).sum(axis=1) - told.edge**2
    cost = np.abs(levels[None, :] - held[:, None]) * config.cost_bp * BASIS_POINT
    mean = levels[None, :] * told.edge[:, None] - cost
    floor = np.array([outcome_floor(1.0)]) * sigma
    variance = levels[None, :] ** 2 * spread[:, None] + floor[:, None] ** 2
    # Preference.of_kelly: a mean of m, a variance of m sigma, so 1 / sigma nats a unit of return.
    kelly = config.kelly_fraction
    utility = mean - 0.5 / kelly * (variance + mean**2)
    # Densities are of deviations, so that bars of different volatility can be compared.
    flat = 0.5 * (LN_2PI + kelly / sigma + np.log(kelly / sigma))
    energies: FloatArray = flat[:, None] - utility / sigma[:, None] - weighed[:, None]
    return energies
