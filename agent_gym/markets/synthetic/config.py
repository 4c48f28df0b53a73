"""What a user says about a market that is to be made."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.markets.synthetic.parameters import Parameters, PresetName, load_parameters

DEFAULT_START_NS = 1_704_067_200_000_000_000  # 2024-01-01 UTC


class SourceConfig(Config):
    """How long a market is and what is changed about its preset."""

    n_bars: int = Field(default=100_000, ge=1)
    start_ns: int = Field(default=DEFAULT_START_NS, ge=0, description="open time of the first bar")
    carry: bool = Field(
        default=True,
        description="let the price rise by the funding that longs pay, so that neither side gains",
    )
    drift: tuple[float, float, float, float] = Field(
        default=(0.0, 0.0, 0.0, 0.0),
        description="drift in standard deviations a bar, in quiet, normal, active and shock "
        "segments; its direction is drawn for each segment before it begins",
    )
    overrides: dict[str, Any] = Field(
        default_factory=dict, description="dotted parameter names and other values for them"
    )


class GeneratorConfig(SourceConfig):
    """Which market is made.

    Example:
        >>> GeneratorConfig(overrides={"start_price": 500.0}).parameters().start_price
        500.0
    """

    preset: PresetName = "btc-1m"

    def parameters(self) -> Parameters:
        """Return the parameters of the preset with the overrides."""
        return load_parameters(self.preset, self.overrides)
