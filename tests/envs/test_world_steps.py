"""A world is stepped with legal actions, by roles that still play, until it is over."""

import numpy as np
import pytest

from agent_gym.core import AgentError, Seeds, VenueError
from agent_gym.core.types import Role
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.markets import Bars, Instrument
from tests.samples import random_bars

BARS = random_bars(300, seed=3)
TRADER = Role("trader")


def _world(**fields):
    config = {"episode_bars": 20, "warmup_bars": 0, "random_start": False} | fields
    world = MarketWorld(MarketConfig.model_validate(config), BARS)
    world.reset(Seeds(1))
    return world


def _both(world):
    return (lambda action: world.step({TRADER: action})), world.advance


CONTINUOUS = {"actions": {"kind": "continuous", "low": -1.0, "high": 1.0}}


@pytest.mark.parametrize("action", [1.5, "up", None, np.zeros(2), [1]])
@pytest.mark.parametrize("door", [0, 1])
def test_what_is_no_choice_is_refused_in_words(action, door):
    with pytest.raises(AgentError, match="an action is not legal"):
        _both(_world())[door](action)


@pytest.mark.parametrize("action", ["up", None, np.zeros(2), [1.0]])
@pytest.mark.parametrize("door", [0, 1])
def test_what_is_no_number_is_refused_in_words(action, door):
    with pytest.raises(AgentError, match="an action is not legal"):
        _both(_world(**CONTINUOUS))[door](action)


@pytest.mark.parametrize("fields", [{}, CONTINUOUS])
def test_an_array_of_one_number_counts_as_that_number(fields):
    one, other = _world(**fields), _world(**fields)
    expected = one.advance(1).observation.features
    assert other.advance(np.array([1])).observation.features.tobytes() == expected.tobytes()


def test_an_unknown_role_is_named():
    with pytest.raises(AgentError, match="no such role"):
        _world().step({Role("nobody"): 1})


def test_several_roles_need_step():
    with pytest.raises(VenueError, match="several roles"):
        _world(roles=("a", "b")).advance(1)


def _crashing():
    n = 60
    close = np.where(np.arange(n) < 5, 100.0, 1.0)
    open_ = np.concatenate([close[:1], close[:-1]])
    high, low = np.maximum(open_, close), np.minimum(open_, close)
    prices = (open_, high, low, close)
    return Bars(Instrument(), BARS.period_ns, BARS.ts[:n], *prices, np.full(n, 1e9))


@pytest.mark.parametrize("roles", [("a",), ("a", "b")])
def test_after_ruin_a_role_plays_no_more(roles):
    fields = {
        "roles": roles,
        "episode_bars": 40,
        "warmup_bars": 0,
        "random_start": False,
        "features": (),
        "actions": {"kind": "continuous", "low": 0.0, "high": 1.0},
        "account": {"ruin": 0.5},
    }
    world = MarketWorld(MarketConfig.model_validate(fields), _crashing())
    world.reset(Seeds(1))
    actions = {Role(role): float(role == "a") for role in roles}
    outcome = None
    for _ in range(10):
        outcome = world.step(actions)
        if outcome[Role("a")].terminated:
            break
    assert outcome is not None
    assert outcome[Role("a")].terminated
    with pytest.raises(VenueError, match="the episode is over"):
        world.step(actions)
    if len(roles) == 1:
        with pytest.raises(VenueError, match="the episode is over"):
            world.advance(0.0)
    else:
        assert not world.step({Role("b"): 0.0})[Role("b")].terminated
