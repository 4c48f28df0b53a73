import numpy as np
import pytest

from agent_gym.core import ConfigError, Seeds
from agent_gym.envs import MarketConfig, MarketEnv, MarketVectorEnv, MarketWorld
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.exchange.kernel.layout import PRIVATE_FEATURES
from tests.samples import random_bars

BARS = random_bars(900, 1)
FEATURES = ("momentum_24", "return_z")
OWN = ("trade_age", "position")


def actions_of(step, n):
    return Seeds(step).rng().integers(0, 3, n)


@pytest.mark.parametrize("own", [OWN, (), ("position",), PRIVATE_FEATURES])
def test_every_view_shows_the_chosen_columns_of_the_full_view(own):
    shared = {"features": FEATURES, "episode_bars": 20}
    whole = SB3VecEnv(MarketVectorEnv(4, BARS, **shared))
    slim = SB3VecEnv(MarketVectorEnv(4, BARS, account_features=own, **shared))
    plain = MarketVectorEnv(4, BARS, account_features=own, copy=False, **shared)
    names = (*FEATURES, *PRIVATE_FEATURES)
    picked = [names.index(name) for name in (*FEATURES, *own)]
    for env in (whole, slim):
        env.seed(3)
    full, seen = whole.reset(), slim.reset()
    bare, _ = plain.reset(seed=3)
    assert slim.observation_space.shape == (len(picked),) == plain.single_observation_space.shape
    assert (full[:, picked] == seen).all()
    assert (seen == bare).all()
    moved = False
    for step in range(20):
        acted = actions_of(step, 4)
        full, paid, ended, infos = whole.step(acted)
        seen, also_paid, also_ended, also = slim.step(acted)
        assert (full[:, picked] == seen).all()
        assert (paid == also_paid).all()
        assert (ended == also_ended).all()
        moved |= bool(full[:, -len(PRIVATE_FEATURES)].any())
    assert moved
    assert ended.all()
    last = infos[2]["terminal_observation"]
    assert (last[picked] == also[2]["terminal_observation"]).all()
    assert (whole.reset_lane(1, 7)[picked] == slim.reset_lane(1, 7)).all()


def test_a_single_account_shows_the_same_columns():
    whole, slim = (
        MarketEnv(BARS, features=FEATURES),
        MarketEnv(BARS, features=FEATURES, account_features=OWN),
    )
    assert slim.stage.slim_names == (*FEATURES, *OWN)
    picked = [whole.stage.slim_names.index(name) for name in slim.stage.slim_names]
    full, seen = whole.reset(seed=1)[0], slim.reset(seed=1)[0]
    for step in range(30):
        assert (full[picked] == seen).all()
        assert slim.observation_space.contains(seen)
        full, seen = (env.step(step % 3)[0] for env in (whole, slim))
    assert seen[-1] == full[len(FEATURES)] != 0.0


def test_observations_are_kept_when_the_environment_moves_on():
    env = MarketVectorEnv(2, BARS, account_features=("position",), copy=False)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    env.step(np.array([2, 0]))
    assert (first == kept).all()


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (("positon",), "position"),
        (("position", "position"), "more than once"),
        (("close",), "close"),
    ],
)
def test_a_wrong_column_is_named(own, words):
    with pytest.raises(ConfigError, match=words):
        MarketEnv(BARS, account_features=own)


def test_a_world_shows_all_and_says_so():
    with pytest.raises(ConfigError, match="world shows all"):
        MarketWorld(MarketConfig(account_features=("position",)), BARS)
