"""What a setting cannot do where it is given is refused, and views keep the contracts of others."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as check_gymnasium
from stable_baselines3.common.env_checker import check_env as check_sb3

from agent_gym.core import ConfigError, DataError, Seeds
from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.types import Role
from agent_gym.envs import GymView, MarketConfig, MarketEnv, MarketVectorEnv, MarketWorld
from agent_gym.exchange.kernel.layout import BAR_FUNDING
from tests.samples import random_bars, without_funding

BARS = random_bars(900, 1)
SMALL_MARKET = {"use": "synthetic/btc-1h", "params": {"n_bars": 600}}
ACTIONS = [
    {"kind": "discrete"},
    {"kind": "continuous"},
    {"kind": "continuous", "low": 0.1, "high": 0.7},
]


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("source", [{}, {"fresh_market": True, "market": SMALL_MARKET}])
def test_a_view_of_a_world_passes_both_checkers(actions, source):
    bars = None if source else BARS
    config = MarketConfig(episode_bars=40, actions=actions, **source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*A Box observation space.*infinity.*")
        # A view is made of a world, which a registered id could not name.
        warnings.filterwarnings("ignore", message=".*not having a spec.*")
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_gymnasium(GymView(MarketWorld(config, bars)))
        check_sb3(GymView(MarketWorld(config, bars)))


ENVIRONMENTS = [MarketEnv, lambda bars=None, **more: MarketVectorEnv(2, bars, **more)]


@pytest.mark.parametrize("make", ENVIRONMENTS)
@pytest.mark.parametrize(
    "fields", [{"roles": ("bull", "bear")}, {"roles": ("bull",)}, {"fresh_market": True}]
)
def test_environments_refuse_what_only_a_world_does(make, fields):
    for said in (fields, {"config": MarketConfig(**fields)}):
        with pytest.raises(ConfigError, match="MarketWorld") as refused:
            make(**said)
        assert next(iter(fields)) in str(refused.value)
    assert make(BARS, roles=("trader",)).config.roles == ("trader",)


DOORS = [*ENVIRONMENTS, lambda bars, **more: MarketWorld(MarketConfig(**more), bars)]


@pytest.mark.parametrize("make", DOORS)
@pytest.mark.parametrize("fields", [{"market": SMALL_MARKET}, {"market_seed": 3}])
def test_bars_and_a_market_are_not_both_taken(make, fields):
    with pytest.raises(ConfigError, match="Leave out the bars, or the market"):
        make(BARS, **fields)
    made = make(None, market=SMALL_MARKET, market_seed=3, episode_bars=64)
    assert len(made.stage.tape) == 600


@pytest.mark.parametrize("make", DOORS)
def test_repeated_features_are_refused(make):
    with pytest.raises(ConfigError, match="Name each feature once") as refused:
        make(BARS, features=("return_z", "momentum_4", "return_z"))
    assert refused.value.as_dict()["found"] == "return_z"


@pytest.mark.parametrize("make", DOORS)
def test_a_perpetual_without_funding_needs_a_word(make):
    bare = without_funding(BARS)
    with pytest.raises(DataError, match="no funding column"):
        make(bare)
    made = make(bare, costs={"missing_funding": "zero"})
    assert not made.stage.tape.rows[:, BAR_FUNDING].any()


def test_a_fresh_market_is_drawn_from_any_market():
    config = MarketConfig(fresh_market=True, market=SMALL_MARKET, episode_bars=20)
    world = MarketWorld(config)
    closes = []
    for seed in (1, 2):
        world.reset(Seeds(seed))
        closes.append(world.stage.tape.bars.close[-1])
    assert closes[0] != closes[1]


def test_world_and_vector_environment_tell_the_period():
    hours, seeds = BARS, Seeds(3)
    minutes = replace(BARS, period_ns=MINUTE_NS, ts=BARS.ts[0] + MINUTE_NS * np.arange(900))
    for bars in (hours, minutes):
        world, env = MarketWorld(MarketConfig(), bars), MarketVectorEnv(2, bars)
        began = env.start(seeds)
        assert world.start(Role("trader"), seeds).period_ns == began.period_ns == bars.period_ns
        assert (began.role, began.seeds) == (Role("trader"), seeds)
        assert began.actions == world.start(Role("trader"), seeds).actions
        assert len(began.feature_names) == env.single_observation_space.shape[0]
