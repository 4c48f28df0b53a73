"""Models of the market in three tiers behind one contract.

``umc/exact`` weighs simple hypotheses by Bayes' rule, ``umc/kalman`` follows one linear hidden
level, ``umc/recurrent`` is a small recurrent network. Validation says which of them is used. A tier
of your own is a class with the contract's methods, registered as kind ``tier``.
"""

from agent_gym.agents.umc.tiers.contract import Forecasts, Series, Tier

__all__ = ["Forecasts", "Series", "Tier"]
