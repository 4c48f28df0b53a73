"""Prediction markets: price curves for kernels, the two makers, and a market with accounts."""

from agent_gym.exchange.prediction.makers import (
    Cpmm,
    CpmmConfig,
    Lmsr,
    LmsrConfig,
    MakerConfig,
    MarketMaker,
    make_maker,
)
from agent_gym.exchange.prediction.market import (
    Holding,
    PredictionConfig,
    PredictionMarket,
    Side,
    Trade,
)

__all__ = [
    "Cpmm",
    "CpmmConfig",
    "Holding",
    "Lmsr",
    "LmsrConfig",
    "MakerConfig",
    "MarketMaker",
    "PredictionConfig",
    "PredictionMarket",
    "Side",
    "Trade",
    "make_maker",
]
