"""The echo population: a crowd of simple traders that moves the price and learns from it.

It sees a market bar by bar and never trades on an account: the one venue knows nothing of it. A
crowd answers to ``begin``, ``decide`` and ``settle``; whoever makes the prices calls them in turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.echo import kernel, layout
from agent_gym.agents.echo.config import EchoConfig
from agent_gym.agents.echo.crowd_memory import EchoMemory, SeenBars
from agent_gym.agents.echo.evolution import (
    BASIS_POINT,
    Generation,
    Improver,
    Lived,
    echoes_at,
    new_search,
    renew,
)
from agent_gym.agents.echo.families import ORDER, StrategyType, dimension, genome_parts
from agent_gym.agents.echo.scores import live_fitness
from agent_gym.core.errors import AgentError, StoreError
from agent_gym.core.kernels import direct
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

SIGMA_DECAY = 0.5 ** (1.0 / 48.0)
LEAST_SIGMA = 1e-6
KEPT_GENERATIONS = 4_096  # rows of history; the oldest go first
_decide = direct(kernel.decide_all)
_settle = direct(kernel.settle_all)


class EchoPopulation:
    """A crowd of echoes; a demand is signed and counts average daily volumes.

    Example:
        >>> crowd = EchoPopulation(EchoConfig(size=8))
        >>> crowd.begin(0.0, 0.005, Seeds(1))
        >>> net, gross = crowd.decide()
        >>> crowd.settle(0.01, 0.012, 0.0, 0.0, 0.005)
        >>> abs(net) <= gross, crowd.bar
        (True, 1)
    """

    def __init__(self, config: EchoConfig | None = None) -> None:
        self.config = config or EchoConfig()
        self.begin(0.0, LEAST_SIGMA, Seeds(0))

    def begin(self, close: float, sigma: float, seeds: Seeds) -> None:
        """Forget everything and watch a market from its first log price on.

        The config's own seed draws the parameters; ``seeds`` draw what happens in this market.
        """
        config = self.config
        self.bar, self._seeds = 0, seeds
        self._variance = max(sigma, LEAST_SIGMA) ** 2
        self._seen = SeenBars(config.window_bars)
        self._write(close, close, close, close, close)
        self.heads = config.head_counts() if config.size else {}
        self._points = {family: self._first(family, n) for family, n in self.heads.items()}
        parts = [self._new(family) for family in self.heads]
        echoes = np.vstack(parts) if parts else np.zeros((0, layout.ECHO_SLOTS))
        self._memory = EchoMemory(echoes, self._seen, config.cost_bps * BASIS_POINT)
        self._growth: FloatArray = np.zeros((config.window_bars, len(echoes)))
        self._searches: dict[StrategyType, Improver] = {}
        if config.evolve_every_bars is not None:
            self._searches = {family: new_search(config, family) for family in self.heads}
        self.history: deque[Generation] = deque(maxlen=KEPT_GENERATIONS)

    def _first(self, family: StrategyType, n: int) -> FloatArray:
        dice = Seeds(self.config.seed).child("echo", family.value).rng()
        if self.config.genome is None:
            return dice.random((n, dimension(family)))
        centre = genome_parts(np.array(self.config.genome))[family]
        drawn = centre + self.config.spread * dice.standard_normal((n, dimension(family)))
        return np.clip(drawn, 0.0, 1.0)

    def _new(self, family: StrategyType) -> FloatArray:
        points = self._points[family]
        share = float(self.config.mixture[ORDER.index(family)])
        capital = share * self.config.capital_adv / len(points)
        return echoes_at(family, points, capital, self._seeds.child("first", family.value))

    def _write(self, close: float, high: float, low: float, value: float, fill: float) -> None:
        sigma = max(math.sqrt(self._variance), LEAST_SIGMA)
        row = self._seen.ring[self.bar & self._seen.mask]
        row[:] = (close, high, low, sigma, value, 0.0, 0.0, fill)

    @property
    def size(self) -> int:
        """Return how many echoes there are."""
        return self._memory.n

    @property
    def demands(self) -> FloatArray:
        """Return what each echo asked for last; the next decision overwrites it."""
        return self._memory.demands

    @property
    def positions(self) -> FloatArray:
        """Return what each echo holds, in units of its capital."""
        held: FloatArray = self._memory.echoes[:, layout.POSITION].copy()
        return held

    @property
    def points(self) -> Mapping[StrategyType, FloatArray]:
        """Return each family's parameters as points of the unit cube."""
        return self._points

    @property
    def generations(self) -> int:
        """Return how often the crowd was renewed."""
        return max((int(s.kept()[1]["generation"]) for s in self._searches.values()), default=0)

    @property
    def fitness(self) -> FloatArray:
        """Return each echo's growth over the window, less what it shares with its family's best."""
        scores = np.zeros(self.size)
        config = self.config
        for place in self._places().values():
            scores[place] = live_fitness(self._lived()[:, place], config.elite, config.crowding)
        return scores

    @property
    def memory_bytes(self) -> int:
        """Return how much memory the crowd's arrays take."""
        arrays = (self._seen.ring, self._growth, self._memory.echoes, *self._points.values())
        return sum(array.nbytes for array in arrays)

    def decide(self) -> tuple[float, float]:
        """Let every echo decide after the last bar; returns the net demand and its size."""
        _decide(self._memory.address, self.bar)
        return self._memory.net, self._memory.gross

    def settle(self, close: float, high: float, low: float, value: float, fill: float) -> None:
        """Take the next bar, in log prices: growth is booked, and the crowd renewed if it is time.

        Args:
            close: Last price.
            high: Highest price.
            low: Lowest price.
            value: What the market is worth, for those who look at that.
            fill: At which the demands were filled.
        """
        if not (low <= min(close, fill) and max(close, fill) <= high):  # false for NaN as well
            raise AgentError(
                "a bar is not a range of numbers",
                where=f"bar {self.bar + 1}",
                found=(close, high, low, fill),
                expected="low <= close, fill <= high",
            )
        move = close - self._seen.ring[self.bar & self._seen.mask, layout.CLOSE]
        self._variance = SIGMA_DECAY * self._variance + (1.0 - SIGMA_DECAY) * move * move
        self.bar += 1
        self._write(close, high, low, value, fill)
        _settle(self._memory.address, self.bar)
        self._growth[(self.bar - 1) % len(self._growth)] = self._memory.growth[0]
        every = self.config.evolve_every_bars
        if every is not None and self.bar % every == 0 and self.bar > 1:
            self._evolve()

    def _places(self) -> dict[StrategyType, slice]:
        places, start = {}, 0
        for family, n in self.heads.items():
            places[family] = slice(start, start + n)
            start += n
        return places

    def _rows(self) -> NDArray[np.intp]:
        """Return where the bars of the window stand, oldest first."""
        bars = min(self.bar, len(self._growth))
        return np.arange(self.bar - bars, self.bar, dtype=np.intp) % len(self._growth)

    def _lived(self) -> FloatArray:
        lived: FloatArray = self._growth[self._rows()]
        return lived

    def _evolve(self) -> None:
        rows, lived = self._rows(), self._lived()
        for family, place in self._places().items():
            seeds = self._seeds.child("evolve", family.value, self.bar)
            own = Lived(
                family,
                self._memory.echoes[place],
                self._points[family],
                lived[:, place].copy(),
                self._seen,
                self.bar,
            )
            self.history.append(renew(self.config, own, self._searches[family], seeds))
            self._growth[rows, place] = own.growth

    def kept(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and plain values from which the crowd goes on to the bit."""
        arrays = {name: array.copy() for name, array in self._arrays().items()}
        values: dict[str, Any] = {
            "bar": self.bar,
            "variance": self._variance,
            "seeds": {"root": self._seeds.root, "path": list(self._seeds.path)},
            "history": [generation.as_dict() for generation in self.history],
            "searches": {},
        }
        for family, search in self._searches.items():
            own, plain = search.kept()
            arrays |= {f"search/{family.value}/{name}": array for name, array in own.items()}
            values["searches"][family.value] = plain
        return arrays, values

    def put_back(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
        """Go on from what ``kept`` returned; the state of a crowd of another config is refused."""
        for name, mine in self._arrays().items():
            found = arrays.get(name)
            if found is None or found.shape != mine.shape:
                raise StoreError(
                    "the state is not one of this crowd",
                    where=name,
                    found=None if found is None else found.shape,
                    expected=mine.shape,
                )
        for name, mine in self._arrays().items():
            mine.view(np.int64)[...] = np.ascontiguousarray(arrays[name]).view(np.int64)
        self.bar, self._variance = int(values["bar"]), float(values["variance"])
        self._seeds = Seeds(int(values["seeds"]["root"]), tuple(values["seeds"]["path"]))
        self.history.clear()
        self.history.extend(Generation(**row) for row in values["history"])
        for family, search in self._searches.items():
            prefix = f"search/{family.value}/"
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            search.put_back(own, values["searches"][family.value])

    def _arrays(self) -> dict[str, FloatArray]:
        points = {f"points/{family.value}": rows for family, rows in self._points.items()}
        return {
            "echoes": self._memory.echoes,
            "seen": self._seen.ring,
            "growth": self._growth,
            "demands": self._memory.demands,
            **points,
        }


@register("crowd", "echo", EchoConfig)
def echo_crowd(config: EchoConfig) -> EchoPopulation:
    """Build a crowd of echoes."""
    return EchoPopulation(config)
