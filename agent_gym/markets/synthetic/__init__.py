"""Markets made by a seed: realistic bars, and the truth behind them kept apart.

Belongs here: the generator, its presets and the truth of what it made. The price walks by compiled
kernels over addressed random numbers; trades, volume and takers follow the price and never lead it.
Hands on: ``SyntheticMarket(bars, truth)``; agents are given the bars alone.
"""

from agent_gym.markets.synthetic.activity import CLASSES
from agent_gym.markets.synthetic.config import DEFAULT_START_NS, GeneratorConfig, SourceConfig
from agent_gym.markets.synthetic.market import SyntheticMarket, generate
from agent_gym.markets.synthetic.parameters import PRESETS, Parameters
from agent_gym.markets.synthetic.source import SyntheticSource
from agent_gym.markets.synthetic.truth import REGIMES, MarketTruth, write_truth

__all__ = [
    "CLASSES",
    "DEFAULT_START_NS",
    "PRESETS",
    "REGIMES",
    "GeneratorConfig",
    "MarketTruth",
    "Parameters",
    "SourceConfig",
    "SyntheticMarket",
    "SyntheticSource",
    "generate",
    "write_truth",
]
