"""What a crowd of echoes is made of."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from agent_gym.agents.echo.families import GENOME_SIZE, ORDER, StrategyType
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

DEFAULT_WEIGHTS = {
    StrategyType.MOMENTUM: 0.15,
    StrategyType.MEAN_REVERSION: 0.10,
    StrategyType.BREAKOUT: 0.10,
    StrategyType.MARKET_MAKER: 0.20,
    StrategyType.TREND_VOL_TARGET: 0.10,
    StrategyType.VALUE: 0.10,
    StrategyType.NOISE: 0.20,
    StrategyType.STOP_CASCADE: 0.05,
}


class EchoConfig(Config):
    """How many echoes there are, of which families, and how they are judged and renewed.

    Example:
        >>> EchoConfig(size=4, weights={"noise": 1.0, "value": 3.0}).mixture.tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.25, 0.0]
    """

    size: int = Field(default=100, ge=0, le=100_000, description="echoes in the crowd")
    weights: dict[StrategyType, float] = Field(
        default=DEFAULT_WEIGHTS,
        description="share of the crowd's capital by family; families left out have none",
    )
    seed: int = Field(default=0, ge=0, description="draws the first parameters of every echo")
    capital_adv: float = Field(
        default=1.0,
        ge=0.0,
        le=1_000.0,
        description="capital of the whole crowd, in average daily volumes",
    )
    cost_bps: float = Field(
        default=5.0, ge=0.0, lt=1_000.0, description="what an echo pays for taking, in its score"
    )
    window_bars: int = Field(
        default=500, ge=16, le=100_000, description="bars over which fitness is measured"
    )
    evolve_every_bars: int | None = Field(
        default=500, ge=1, description="bars from one generation to the next; null: no evolution"
    )
    evolution: Literal["cma", "map_elites"] = Field(
        default="cma", description="search by family: CMA-ES, or an archive of unlike elites"
    )
    candidates: int = Field(
        default=16, ge=4, le=1_000, description="newcomers tried by family and generation"
    )
    elite: float = Field(default=0.2, gt=0.0, lt=1.0, description="share that stays as it is")
    crowding: float = Field(
        default=0.05, ge=0.0, description="fitness lost by one that is wholly like the elite"
    )
    genome: tuple[float, ...] | None = Field(
        default=None,
        description="centre of each family's parameters, 0 to 1, in order; null: anywhere",
    )
    spread: float = Field(
        default=0.1, ge=0.0, le=1.0, description="how far echoes lie from a genome; only with one"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        shares = list(self.weights.values())
        if any(share < 0.0 for share in shares) or sum(shares) <= 0.0:
            raise ValueError("weights are at least 0, and one of them is more")
        used = sum(share > 0.0 for share in shares)
        if 0 < self.size < used:
            raise ValueError(f"size is 0 or at least {used}, one echo for each family in use")
        if self.genome is not None:
            if len(self.genome) != GENOME_SIZE:
                raise ValueError(f"a genome has {GENOME_SIZE} numbers")
            if not all(0.0 <= gene <= 1.0 for gene in self.genome):
                raise ValueError("the numbers of a genome lie from 0 to 1")
        elif self.spread != 0.1:
            raise ValueError("spread changes nothing without a genome")
        return self

    @property
    def mixture(self) -> FloatArray:
        """Return the weights of all families in their order; they add up to 1."""
        shares = np.array([self.weights.get(family, 0.0) for family in ORDER], dtype=np.float64)
        mixture: FloatArray = shares / shares.sum()
        return mixture

    def head_counts(self) -> dict[StrategyType, int]:
        """Return how many echoes each family has: as many as any other one that is in use.

        A weight moves capital, not heads, so that a mixture can change by a little.
        """
        used = [f for f, share in zip(ORDER, self.mixture, strict=True) if share > 0.0]
        each, left = divmod(self.size, len(used))
        return {family: each + (place < left) for place, family in enumerate(used)}
