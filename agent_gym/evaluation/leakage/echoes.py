"""The real echoes beside a learner: they live on what it meets, evolve, and trade on by themselves.

First the crowd watches every bar that the learner met, trades on it and is renewed as often as its
config says; its demands reach no price there. Then the fittest of each family found a crowd in a
reflexive market, which goes on from the last close and goes on evolving. All rows that come out of
it are tagged as those of echoes: the closes, and what its orders paid.
"""

from __future__ import annotations

import numpy as np

from agent_gym.agents.echo import GENOME_SIZE, EchoConfig, EchoPopulation
from agent_gym.agents.echo.families import genome_parts
from agent_gym.agents.gate import Source, Tagged, Tags
from agent_gym.core.clock import DAY_NS
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive import ReflexiveConfig, Simulation, simulate
from agent_gym.evaluation.leakage.crowd import CLOSE, MARKER, Columns, draw_marker

PAID, PARTICIPATION, TRADED = "fill_slippage_bp", "fill_participation", "fill_known"
WARMUP_BARS = 200
SPREAD = 0.05  # how far echoes lie from the fittest of their family
BP = 1e4


class EvolvedEchoes:
    """A crowd of echoes as an EchoSource; ``generations`` counts the renewals of its last life.

    Args:
        config: The crowd; it has to evolve.
    """

    def __init__(self, config: EchoConfig) -> None:
        self.config = config
        self.generations = 0

    def __call__(self, seen: Columns, count: int, seeds: Seeds) -> Columns:
        """Let the crowd live through the closes, then return as many bars that it made."""
        close = np.asarray(seen[CLOSE].x, np.float64)
        lived = self._lived(np.log(close), seeds.child("watch"))
        deviation = float(np.diff(np.log(close)).std())
        market = ReflexiveConfig(
            bars=count - 1,
            warmup_bars=WARMUP_BARS,
            sigma=deviation,
            crowd=Ref(use="echo", params=self._founded(lived)),
        )
        made = simulate(market, seeds.child("market"))
        assert isinstance(made.crowd, EchoPopulation)
        self.generations = lived.generations + made.crowd.generations
        tags = Tags.of(Source.ECHO, "echoes", np.arange(count), seen[CLOSE].prov[-1].digest)
        path = made.settled.close / made.bars.close[WARMUP_BARS - 1]
        columns = {CLOSE: close[-1] * path, MARKER: draw_marker(count, seeds)}
        columns |= orders_of(made)
        return {name: Tagged(column, tags) for name, column in columns.items()}

    def _lived(self, log_close: FloatArray, seeds: Seeds) -> EchoPopulation:
        crowd = EchoPopulation(self.config)
        crowd.begin(float(log_close[0]), float(np.diff(log_close).std()), seeds)
        for before, now in zip(log_close[:-1].tolist(), log_close[1:].tolist(), strict=True):
            crowd.decide()
            crowd.settle(now, max(before, now), min(before, now), now, before)
        return crowd

    def _founded(self, lived: EchoPopulation) -> dict[str, object]:
        """Return a crowd around the fittest of each family; one without heads stays in the middle.

        As the founders are chosen, a market of theirs is drawn anew from what was lived.
        """
        genome, start = np.full(GENOME_SIZE, 0.5), 0
        parts, fitness = genome_parts(genome), lived.fitness
        for family, heads in lived.heads.items():
            best = int(fitness[start : start + heads].argmax())
            parts[family][:] = lived.points[family][best]
            start += heads
        said = self.config.model_dump(mode="json")
        return {**said, "genome": genome.tolist(), "spread": SPREAD}


def orders_of(made: Simulation) -> dict[str, FloatArray]:
    """Return what the crowd's net order of each settled bar was and paid, as a trader sees its own.

    The open is what the flow pays; a share of the volume is counted in usual bars.
    """
    bars, first = made.bars, made.warmup_bars
    net = made.net[first:]
    paid = np.log(bars.open[first:] / bars.close[first - 1 : -1])
    return {
        PAID: BP * np.sign(net) * paid,
        PARTICIPATION: np.abs(net) * DAY_NS / bars.period_ns,
        TRADED: (net != 0.0).astype(np.float64),
    }
