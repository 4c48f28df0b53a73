"""UMC: the active-inference trader.

Belongs here: how it models a market (``tiers`` behind MarketGI, ``macro``), what it prefers and
expects (``efe``), how it plans and learns to act (``planner``, ``policy``), what its orders cost
(``exec_model``), how much it may pay to learn (``lam``), and its policy of snapshots
(``snapshots``). Imports ``agent_gym.core`` and its neighbours among the agents.
Hands on the agents ``umc`` and ``umc/market`` through the registry; who needs a part imports its
module, so that what plays does not load what learns.
"""
