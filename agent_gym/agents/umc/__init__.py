"""UMC: the active-inference trader.

Belongs here: how it models a market (``tiers`` behind MarketGI, ``macro``), what it prefers and
expects (``efe``), how it plans and learns to act (``planner``, ``policy``), what its orders cost
(``exec_model``) and how much it may pay to learn (``lam``). Imports ``agent_gym.core`` only.
Hands on the agent ``umc`` through the registry, and the names below.
"""

from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.lam import AdaptiveLambdaScheduler, LambdaConfig
from agent_gym.agents.umc.macro import MacroConfig, MacrostateDetector
from agent_gym.agents.umc.market_gi import MarketGI, MarketGIConfig

__all__ = [
    "AdaptiveLambdaScheduler",
    "LambdaConfig",
    "MacroConfig",
    "MacrostateDetector",
    "MarketGI",
    "MarketGIConfig",
    "UMCConfig",
]
