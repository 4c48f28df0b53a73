"""Write an agent: a class with three methods, a config, a contract check, and a record.

Run it with ``python docs/tutorials/02_write_an_agent.py``. The rule is an example, not advice.
"""

import tempfile
from pathlib import Path

from pydantic import Field

from agent_gym.agents import Independent
from agent_gym.core import Config, Ref, Seeds, make, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Role, Step
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketWorld
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.markets.source import open_market
from agent_gym.rollouts import ParquetSink, StepStore, check_agent, run_episode


class DipConfig(Config):
    """Every parameter has a default and limits; an unknown one is an error."""

    depth: float = Field(default=1.5, gt=0, description="fall in deviations that is bought")
    size: float = Field(default=0.5, gt=0, le=1, description="fraction of equity to hold")


class DipBuyer:
    """Buys when the day's momentum is far below 0 and leaves when it is back."""

    name = "tutorial/dip"

    def __init__(self, config: DipConfig) -> None:
        self._config = config

    def reset(self, start: EpisodeStart) -> None:
        self._momentum = start.column("momentum_24")
        self._known = start.column("momentum_24_known")
        self._actions = start.actions
        self._held = 0.0

    def act(self, obs: Observation) -> Decision:
        momentum = float(obs.features[self._momentum])
        if obs.features[self._known]:  # 0 may also mean "not known yet"
            if momentum < -self._config.depth:
                self._held = self._config.size
            elif momentum > 0.0:
                self._held = 0.0
        return Decision(self._actions.encode(self._held), signals={"momentum": momentum})

    def observe(self, step: Step) -> None:
        """This agent does not learn."""


@register("agent", "tutorial/dip", DipConfig)
def dip(config: DipConfig) -> DipBuyer:
    """Make the agent; in a package of your own an entry point announces this module."""
    return DipBuyer(config)


bars = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 3_000}), Seeds(7))
config = MarketConfig(actions=ContinuousTargets(), episode_bars=500)

# The contract: legal and finite, leaves observations alone, same seed gives the same episode.
check_agent(lambda: DipBuyer(DipConfig()), lambda: MarketWorld(config, bars))
print("the agent keeps its contract")

# A backtest by name. The agent has no whole-series form, so this goes step by step.
results = BacktestEngine().run(bars, Ref(use="tutorial/dip", params={"depth": 1.0}))
print(f"{len(results.fills)} fills, return {100 * results.metrics.total_return:.2f} % after costs")

# Episodes at random places of the series, every step on disk, signals included.
team = Independent({Role("trader"): make("agent", Ref(use="tutorial/dip"))})
with tempfile.TemporaryDirectory() as folder:
    with ParquetSink(Path(folder) / "steps") as sink:
        for n in range(4):
            run_episode(MarketWorld(config, bars), team, f"episode-{n}", Seeds(1), [sink])
    store = StepStore.open(Path(folder) / "steps")
    for name, table in store.episodes():
        print(f"{name}: {table.num_rows} steps, reward {sum(table['reward'].to_pylist()):+.4f}")
