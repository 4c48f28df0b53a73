"""Causal features: 18 numbers a bar and a mask that says which of them are known.

A value at bar t depends on bars 0..t alone, to the bit. Unknown is NaN and False in the mask, never
a silent 0. One compiled pass makes a whole series, a piece of it or a live bar.
"""

from agent_gym.markets.features.config import FEATURES, FeatureConfig
from agent_gym.markets.features.stream import BarRow, FeatureStream, compute_features
from agent_gym.markets.features.table import FeatureTable

__all__ = [
    "FEATURES",
    "BarRow",
    "FeatureConfig",
    "FeatureStream",
    "FeatureTable",
    "compute_features",
]
