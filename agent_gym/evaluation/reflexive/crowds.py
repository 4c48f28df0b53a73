"""Markets with another crowd: from numbers between 0 and 1 to a config and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from agent_gym.agents.echo import ORDER, EchoConfig
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive import ReflexiveConfig

LEAST_WEIGHT = 1e-3  # no family is ever quite away, or there would be heads without capital


def echo_config(market: ReflexiveConfig) -> EchoConfig:
    """Return what the crowd of a market is made of; only echoes can be searched."""
    if market.crowd is None or market.crowd.use != "echo":
        raise ConfigError(
            "only a market with a crowd of echoes can be searched",
            where="crowd",
            found=None if market.crowd is None else market.crowd.use,
            expected="echo",
        )
    return EchoConfig.model_validate(market.crowd.params)


def with_echoes(market: ReflexiveConfig, **changes: Any) -> ReflexiveConfig:
    """Return the market with other numbers in its crowd."""
    params = {**echo_config(market).model_dump(mode="json", exclude_unset=True), **changes}
    return market.model_copy(update={"crowd": Ref(use="echo", params=params)})


def weights_at(point: FloatArray) -> dict[str, float]:
    """Return the mixture at a point of the unit cube; a square lets a share come near to none."""
    raw = LEAST_WEIGHT + np.clip(point, 0.0, 1.0) ** 2
    shares = raw / raw.sum()
    return {family.value: float(share) for family, share in zip(ORDER, shares, strict=True)}


def point_of(mixture: FloatArray) -> FloatArray:
    """Return a point at which ``weights_at`` gives about this mixture."""
    point: FloatArray = np.sqrt(mixture / mixture.max())
    return point


def between(low: float, high: float, share: float) -> float:
    """Return the number that lies at a share of the way, evenly in its logarithm."""
    return float(low * (high / low) ** min(max(share, 0.0), 1.0))
