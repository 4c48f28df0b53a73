"""One generation of one family: newcomers are played through the last bars, the weak give way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.echo import layout
from agent_gym.agents.echo.config import EchoConfig
from agent_gym.agents.echo.crowd_memory import EchoMemory, SeenBars, new_echoes, set_keys
from agent_gym.agents.echo.families import MOST_PARAMETERS, ORDER, StrategyType, dimension, natural
from agent_gym.agents.echo.kernel import replay
from agent_gym.agents.echo.scores import crowding, live_fitness, measures
from agent_gym.agents.echo.search import Search
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

MOMENTUM_BARS = 24
BASIS_POINT = 1e-4


class Improver(Protocol):
    """What both kinds of search have in common."""

    def ask(self, seeds: Seeds) -> FloatArray: ...
    def kept(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]: ...
    def put_back(self, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Generation:
    """How one family did when it was renewed; fitness is log growth less crowding, by window.

    ``before`` is the mean fitness of the echoes that lived through the window, ``after`` that of
    those who go on, ``best_newcomer`` that of the best point tried, ``replaced`` how many went.
    """

    family: str
    number: int
    bar: int
    before: float
    after: float
    best: float
    best_newcomer: float
    replaced: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for reports."""
        return asdict(self)


def new_search(config: EchoConfig, family: StrategyType) -> Improver:
    """Return the search that the config names; the archive's library is loaded only if named."""
    if config.evolution == "cma":
        return Search(dimension(family), config.candidates)
    elites = import_module("agent_gym.agents.echo.elites")
    made: Improver = elites.Elites(dimension(family), config.candidates)
    return made


def echoes_at(family: StrategyType, points: FloatArray, capital: float, seeds: Seeds) -> FloatArray:
    """Return echoes of one family with parameters at points of the unit cube."""
    n = len(points)
    parameters = np.zeros((n, MOST_PARAMETERS))
    parameters[:, : points.shape[1]] = natural(family, points)
    families = np.full(n, ORDER.index(family), dtype=np.int64)
    echoes = new_echoes(families, parameters, np.full(n, capital))
    dice = seeds.rng()
    set_keys(echoes, dice.integers(2**63 - 1, size=n))
    echoes[:, layout.SIDE] = np.where(dice.random(n) < 0.5, -1.0, 1.0)
    return echoes


@dataclass(frozen=True, slots=True, eq=False)
class Lived:
    """A family's echoes as they lived through the window that newcomers are judged by.

    ``echoes``, ``points`` and ``growth`` are the crowd's own: who is replaced is overwritten there.
    """

    family: StrategyType
    echoes: FloatArray
    points: FloatArray
    growth: FloatArray
    seen: SeenBars
    bar: int


def renew(config: EchoConfig, lived: Lived, search: Improver, seeds: Seeds) -> Generation:
    """Try newcomers, let the search learn from them, and put the better ones in.

    The elite stays as it is. A newcomer takes the place of a worse one with all it holds, so that
    its first demand is the way from there to what it wants itself.
    """
    points = search.ask(seeds.child("ask"))
    capital = float(lived.echoes[0, layout.CAPITAL])
    echoes = echoes_at(lived.family, points, capital, seeds.child("echoes"))
    bars = len(lived.growth)
    trial = EchoMemory(echoes, lived.seen, config.cost_bps * BASIS_POINT, bars)
    replay(trial.address, lived.bar - bars, bars)
    fitness = live_fitness(lived.growth, config.elite, config.crowding)
    rank = np.argsort(-fitness, kind="stable")
    elite = rank[: max(1, round(config.elite * len(rank)))]
    shared = crowding(trial.growth, lived.growth[:, elite])
    tried = trial.growth.sum(axis=0) - config.crowding * shared
    _teach(search, points, tried, trial, lived)
    replaced = _replace(lived, trial, points, tried, fitness, rank[len(elite) :])
    after = live_fitness(lived.growth, config.elite, config.crowding)
    return Generation(
        family=lived.family.value,
        number=int(search.kept()[1]["generation"]),
        bar=lived.bar,
        before=float(fitness.mean()),
        after=float(after.mean()),
        best=float(fitness.max()),
        best_newcomer=float(tried.max()),
        replaced=replaced,
    )


def _teach(
    search: Improver, points: FloatArray, tried: FloatArray, trial: EchoMemory, lived: Lived
) -> None:
    if isinstance(search, Search):
        search.tell(points, -tried)
        return
    bars = len(lived.growth)
    archive: Any = search
    archive.tell(points, -tried, measures(trial.positions, momentum(lived.seen, lived.bar, bars)))


def momentum(seen: SeenBars, bar: int, bars: int) -> FloatArray:
    """Return the sign of the last day's move at each decision of the window."""
    now = seen.column(layout.CLOSE, bar - bars, bars)
    back = np.maximum(np.arange(bar - bars, bar) - MOMENTUM_BARS, 0) & seen.mask
    sign: FloatArray = np.sign(now - seen.ring[back, layout.CLOSE])
    return sign


def _replace(
    lived: Lived,
    trial: EchoMemory,
    points: FloatArray,
    tried: FloatArray,
    fitness: FloatArray,
    weak: NDArray[np.intp],
) -> int:
    """Put the best newcomers in the place of the worst echoes, while they are better."""
    replaced = 0
    best_first = np.argsort(-tried, kind="stable")
    for old, new in zip(weak[::-1], best_first, strict=False):
        if tried[new] <= fitness[old]:
            break
        held = lived.echoes[old, [layout.POSITION, layout.PREVIOUS]].copy()
        lived.echoes[old] = trial.echoes[new]
        lived.echoes[old, [layout.POSITION, layout.PREVIOUS]] = held
        lived.points[old] = points[new]
        lived.growth[:, old] = trial.growth[:, new]
        replaced += 1
    return replaced
