"""What a reflexive market asks of its crowd; anything that answers to this may be one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds


@runtime_checkable
class Crowd(Protocol):
    """Traders that watch a market bar by bar and ask for something after each.

    Prices are logarithms; demands are signed and count average daily volumes.
    """

    def begin(self, close: float, sigma: float, seeds: Seeds) -> None:
        """Forget everything and watch a market from its first price on."""

    def decide(self) -> tuple[float, float]:
        """Return the sum of all demands after the last bar, and the sum of their sizes."""

    def settle(self, close: float, high: float, low: float, value: float, fill: float) -> None:
        """Take the next bar: its prices, what the market is worth, and the price of the fills."""


class Nobody:
    """A crowd of none."""

    def begin(self, close: float, sigma: float, seeds: Seeds) -> None:
        """Nobody is there."""

    def decide(self) -> tuple[float, float]:
        """Nobody asks for anything."""
        return 0.0, 0.0

    def settle(self, close: float, high: float, low: float, value: float, fill: float) -> None:
        """Nobody looks."""


def open_crowd(ref: Ref | None) -> Crowd:
    """Return the crowd that a config names."""
    if ref is None:
        return Nobody()
    crowd = make("crowd", ref)
    if not isinstance(crowd, Crowd):
        raise ConfigError(
            "this is no crowd",
            where=f"crowd {ref.use}",
            found=type(crowd).__name__,
            expected="begin, decide and settle",
        )
    return crowd
