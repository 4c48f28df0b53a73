"""Risk: parts that hold a target back, the chain they form, and the estimates they need.

A part answers with a Cap and may only bring a target (a signed fraction of equity) nearer to 0.
"""

from agent_gym.exchange.risk.backtests import VarTest, christoffersen, exceedances, kupiec_pof
from agent_gym.exchange.risk.chain import RiskChain, RiskConfig, build_chain
from agent_gym.exchange.risk.drawdown import DrawdownBreaker, DrawdownConfig
from agent_gym.exchange.risk.estimators import (
    TailConfig,
    TailSeries,
    bars_per_day,
    ewma_sigma,
    tail_risk,
)
from agent_gym.exchange.risk.forecast import (
    ConfidenceConfig,
    ConfidenceShrink,
    KellyCap,
    KellyConfig,
)
from agent_gym.exchange.risk.limits import LimitConfig, PositionLimit
from agent_gym.exchange.risk.tails import EsCap, EsConfig, VarCap, VarConfig
from agent_gym.exchange.risk.view import Cap, RiskModel, RiskView, TailRisk

__all__ = [
    "Cap",
    "ConfidenceConfig",
    "ConfidenceShrink",
    "DrawdownBreaker",
    "DrawdownConfig",
    "EsCap",
    "EsConfig",
    "KellyCap",
    "KellyConfig",
    "LimitConfig",
    "PositionLimit",
    "RiskChain",
    "RiskConfig",
    "RiskModel",
    "RiskView",
    "TailConfig",
    "TailRisk",
    "TailSeries",
    "VarCap",
    "VarConfig",
    "VarTest",
    "bars_per_day",
    "build_chain",
    "christoffersen",
    "ewma_sigma",
    "exceedances",
    "kupiec_pof",
    "tail_risk",
]
