"""UMC as a policy of snapshot markets: it has learned from records, and remembers nothing it plays.

Belongs here: the laws by which it expects moves (``law``), what it was taught and by what
(``lessons``), the policy that weighs positions by them (``policy``) and the agent ``umc/market``.
Learning from records is in ``agent_gym.training.umc``.
"""
