"""Active inference as arithmetic: expected free energy of actions, from distributions alone.

Nothing here learns, draws without being given a seed, or keeps anything from call to call.
"""

from agent_gym.agents.information import (
    Mixture,
    conditional_entropy,
    entropy,
    gaussian_entropy,
    gaussian_kl,
    information_gain_linear,
    information_lower_bound,
    information_upper_bound,
    label_information,
    normal_draws,
    parameter_information,
    row_mixture,
    stratified_draws,
)
from agent_gym.agents.umc.efe.discrete import (
    DiscreteWorld,
    discrete_efe,
    dobrushin,
    kl_contraction,
)
from agent_gym.agents.umc.efe.free_energy import (
    BAR_DRAWS,
    FreeEnergy,
    g_lambda,
    least,
    mean_free_energy,
    outcome_ambiguity,
    outcome_risk,
    pragmatic_cost,
    relative,
    state_information,
)
from agent_gym.agents.umc.efe.outcomes import Actions, Market, outcome
from agent_gym.agents.umc.efe.preference import Preference, outcome_floor, trading_cost
from agent_gym.agents.umc.efe.regret import (
    RegretSteps,
    affordable_lambda,
    regret,
    regret_steps,
)

__all__ = [
    "BAR_DRAWS",
    "Actions",
    "DiscreteWorld",
    "FreeEnergy",
    "Market",
    "Mixture",
    "Preference",
    "RegretSteps",
    "affordable_lambda",
    "conditional_entropy",
    "discrete_efe",
    "dobrushin",
    "entropy",
    "g_lambda",
    "gaussian_entropy",
    "gaussian_kl",
    "information_gain_linear",
    "information_lower_bound",
    "information_upper_bound",
    "kl_contraction",
    "label_information",
    "least",
    "mean_free_energy",
    "normal_draws",
    "outcome",
    "outcome_ambiguity",
    "outcome_floor",
    "outcome_risk",
    "parameter_information",
    "pragmatic_cost",
    "regret",
    "regret_steps",
    "relative",
    "row_mixture",
    "state_information",
    "stratified_draws",
    "trading_cost",
]
