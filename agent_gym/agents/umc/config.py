"""What can be said about a UMC agent; every field acts."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from agent_gym.agents.umc.exec_model import SlippagePrior
from agent_gym.agents.umc.lam import LambdaConfig
from agent_gym.agents.umc.macro import MacroConfig
from agent_gym.agents.umc.market_gi import MarketGIConfig
from agent_gym.agents.umc.policy import ActorConfig
from agent_gym.core.registry import Config


class UMCConfig(Config):
    """How UMC models the market, what it prefers, and what it reckons a trade to cost.

    Example:
        >>> UMCConfig(inputs=("signal_mispricing",)).needs
        ('close', 'signal_mispricing', 'signal_mispricing_known')
    """

    inputs: tuple[str, ...] = Field(
        default=(), description="columns of the world that may lead the price"
    )
    model: MarketGIConfig = Field(
        default=MarketGIConfig(), description="models of the market to choose from"
    )
    macro: MacroConfig | None = Field(
        default=None, description="macrostates whose beliefs are inputs of the model; null: none"
    )
    actor: ActorConfig | None = Field(
        default=None,
        description="a learned policy that decides where it surely grew more on held-out bars than "
        "the planner did; null: the planner decides",
    )
    lam: LambdaConfig = Field(default=LambdaConfig(), description="weight of information")
    execution: SlippagePrior = Field(
        default=SlippagePrior(),
        description="what is believed of slippage, where the world shows what orders paid",
        json_schema_extra={"acts_on": "worlds that show what orders paid"},
    )
    levels: tuple[float, ...] = Field(
        default=(-1.0, -0.5, 0.0, 0.5, 1.0),
        min_length=2,
        description="positions to choose from, as fractions of equity, one of them 0",
    )
    cost_bp: float = Field(
        default=5.0, ge=0.0, lt=1_000.0, description="cost of a trade it reckons with"
    )
    kelly_fraction: float = Field(
        default=1.0,
        gt=0.0,
        le=10.0,
        description="1 prefers the highest growth, less of it a steadier one; a Kelly cap of the "
        "account comes on top of it",
    )
    resize_bars: int = Field(
        default=24, ge=1, description="bars after which an open short is brought back to its size"
    )
    folder: Path | None = Field(
        default=None, description="folder of an agent that has learned; null: it learns by fit()"
    )

    @field_validator("levels")
    @classmethod
    def _rising(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        if sorted(set(levels)) != list(levels) or 0.0 not in levels:
            raise ValueError("levels rise, and one of them is 0")
        return levels

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if len(set(self.inputs)) != len(self.inputs) or "close" in self.inputs:
            raise ValueError("every input is named once, and close is none of them")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the columns that are read, with the flags that say where they are known."""
        regimes = () if self.macro is None else self.macro.inputs
        named = dict.fromkeys((*self.inputs, *regimes))
        return ("close", *(part for name in named for part in (name, f"{name}_known")))
