"""The two market makers behind one interface."""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, TypeAlias, assert_never

from pydantic import Field

from agent_gym.core.kernels import door
from agent_gym.core.registry import Config
from agent_gym.exchange.prediction import curves
from agent_gym.exchange.prediction.curves import (
    cpmm_cost,
    cpmm_gap,
    cpmm_price,
    cpmm_slack,
    lmsr_cost,
    lmsr_gap,
    lmsr_price,
    lmsr_slack,
)


class LmsrConfig(Config):
    """Logarithmic market scoring rule; the larger ``b``, the less a trade moves the price."""

    kind: Literal["lmsr"] = "lmsr"
    b: float = Field(default=100.0, gt=0.0, le=1e6, description="liquidity; the loss is b ln 2")


class CpmmConfig(Config):
    """Constant-product maker with two pools of YES and NO shares."""

    kind: Literal["cpmm"] = "cpmm"
    pool: float = Field(
        default=100.0, gt=0.0, le=1e6, description="geometric mean of the pools; the largest loss"
    )


MakerConfig: TypeAlias = Annotated[LmsrConfig | CpmmConfig, Field(discriminator="kind")]


class MarketMaker(Protocol):
    """A price curve: ``gap`` is the number of YES shares less the number of NO shares."""

    def slack(self, gap: float) -> float: ...
    def price(self, gap: float) -> float: ...
    def gap(self, price: float) -> float: ...
    def cost(self, gap: float, shares: float) -> float: ...


class Lmsr:
    """The logarithmic market scoring rule."""

    def __init__(self, config: LmsrConfig) -> None:
        self._b = config.b

    def slack(self, gap: float) -> float:
        """Return what the maker holds beyond its largest debt, up to a constant."""
        return _lmsr_slack(gap, self._b)

    def price(self, gap: float) -> float:
        """Return the price of YES."""
        return _lmsr_price(gap, self._b)

    def gap(self, price: float) -> float:
        """Return the gap at which YES has this price."""
        return _lmsr_gap(price, self._b)

    def cost(self, gap: float, shares: float) -> float:
        """Return the integral of the price over the shares."""
        return _lmsr_cost(gap, shares, self._b)


class Cpmm:
    """The constant-product maker."""

    def __init__(self, config: CpmmConfig) -> None:
        self._pool = config.pool

    def slack(self, gap: float) -> float:
        """Return what the maker holds beyond its largest debt: the smaller pool."""
        return _cpmm_slack(gap, self._pool)

    def price(self, gap: float) -> float:
        """Return the price of YES."""
        return _cpmm_price(gap, self._pool)

    def gap(self, price: float) -> float:
        """Return the gap at which YES has this price."""
        return _cpmm_gap(price, self._pool)

    def cost(self, gap: float, shares: float) -> float:
        """Return the integral of the price over the shares."""
        return _cpmm_cost(gap, shares, self._pool)


def make_maker(config: MakerConfig) -> MarketMaker:
    """Return the maker that a config names."""
    match config:
        case LmsrConfig():
            return Lmsr(config)
        case CpmmConfig():
            return Cpmm(config)
        case _:
            assert_never(config)


@door("float64(float64, float64)", parts=(curves,))
def _lmsr_slack(gap: float, scale: float) -> float:
    return lmsr_slack(gap, scale)


@door("float64(float64, float64)", parts=(curves,))
def _lmsr_price(gap: float, scale: float) -> float:
    return lmsr_price(gap, scale)


@door("float64(float64, float64)", parts=(curves,))
def _lmsr_gap(price: float, scale: float) -> float:
    return lmsr_gap(price, scale)


@door("float64(float64, float64, float64)", parts=(curves,))
def _lmsr_cost(gap: float, shares: float, scale: float) -> float:
    return lmsr_cost(gap, shares, scale)


@door("float64(float64, float64)", parts=(curves,))
def _cpmm_slack(gap: float, scale: float) -> float:
    return cpmm_slack(gap, scale)


@door("float64(float64, float64)", parts=(curves,))
def _cpmm_price(gap: float, scale: float) -> float:
    return cpmm_price(gap, scale)


@door("float64(float64, float64)", parts=(curves,))
def _cpmm_gap(price: float, scale: float) -> float:
    return cpmm_gap(price, scale)


@door("float64(float64, float64, float64)", parts=(curves,))
def _cpmm_cost(gap: float, shares: float, scale: float) -> float:
    return cpmm_cost(gap, shares, scale)
