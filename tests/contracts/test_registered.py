"""Every registered thing keeps the contracts that ship with the package."""

import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.core import Ref, Seeds, make, names
from agent_gym.core.types import Role
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketWorld
from agent_gym.markets.bars import PRICE_COLUMNS, Bars
from agent_gym.rollouts import MemorySink, check_agent, check_world, play, trajectory_hash
from tests.agents.sb3_samples import FEATURES, market_model
from tests.samples import random_bars

AGENTS = [name for name in names("agent") if name.startswith(("rules/", "sb3/"))]
ACTIONS = [{"kind": "discrete"}, {"kind": "continuous"}]


def world(bars, actions, *, n=200):
    config = MarketConfig(
        actions=actions, episode_bars=n, random_start=False, warmup_bars=0, features=FEATURES
    )
    return MarketWorld(config, bars)


@pytest.mark.parametrize("actions", ACTIONS)
def test_the_market_world_keeps_the_contract(actions):
    check_world(lambda: world(random_bars(300, 1), actions))


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def ref(name, model_folders):
    """Return how the agent is named; a trained one gets a tiny model of its own."""
    room, _, algo = name.partition("/")
    if room != "sb3":
        return Ref(use=name)
    folder = model_folders / algo
    if not folder.exists():
        market_model(algo, folder)
    return Ref(use=name, params={"model": str(folder)})


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_keeps_the_contract(ref, actions):
    check_agent(lambda: make("agent", ref), lambda: world(random_bars(300, 2), actions))


def poisoned(bars: Bars, after: int) -> Bars:
    """Return bars that are wild, though tradable, after a row."""
    columns = {}
    for name in PRICE_COLUMNS:
        column = getattr(bars, name).copy()
        column[after + 1 :] = 1e9 if name != "low" else 1.0
        columns[name] = column
    rates = bars.extra["funding"].copy()
    rates[after + 1 :] = 0.01
    return Bars(bars.instrument, bars.period_ns, bars.ts, **columns, extra={"funding": rates})


@pytest.mark.parametrize("cut", [60, 150])
@pytest.mark.parametrize("name", AGENTS)
def test_no_agent_and_no_observation_sees_the_future(ref, cut):
    def steps(bars):
        sink = MemorySink()
        team = Independent({Role("trader"): make("agent", ref)})
        play(world(bars, ContinuousTargets()), team, "e", Seeds(3), [sink])
        return sink.steps

    bars = random_bars(300, 3, funding=1e-4)
    clean, dirty = steps(bars), steps(poisoned(bars, cut))
    assert [s.decision.action for s in clean[: cut + 1]] == [
        s.decision.action for s in dirty[: cut + 1]
    ]
    assert trajectory_hash(clean[:cut]) == trajectory_hash(dirty[:cut])
    assert trajectory_hash(clean) != trajectory_hash(dirty)
    assert np.isfinite([s.after.reward for s in dirty]).all()
