"""Traps of the market's model: what is no input of it, and shapes that must not be guessed.

All fifty defects apply here in one form or another, so none is left out. Four have lost the part
that they were found in, and are guarded in the form that is left:

====  ======================================  ====================================================
 D8   a second objective that nobody reads    the reward is what the learned policy climbs
 D16  one action repeated over the past       no action is an input of the market's model at all
 D19  a guess whether numbers are one-hot     nothing is one-hot: an action is a number, a batch has
                                              a shape, and another shape is refused
 D21  the past encoded anew at every bar      memory moves on bar by bar, in any pieces
====  ======================================  ====================================================
"""

import inspect
from dataclasses import fields

import numpy as np
import pytest

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.efe import Actions, Market, outcome, outcome_floor
from agent_gym.agents.umc.policy.actor import Actor
from agent_gym.agents.umc.policy.lessons import Lessons
from agent_gym.agents.umc.tiers import Series, Tier
from agent_gym.agents.umc.tiers.exact import ExactConfig, ExactTier
from agent_gym.agents.umc.tiers.kalman import KalmanConfig, KalmanTier
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.losses import Batch
from agent_gym.agents.umc.tiers.recurrent.network import RecurrentNetwork
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Observation, Role
from agent_gym.envs import DiscreteTargets, MarketConfig, MarketVectorEnv, MarketWorld
from agent_gym.markets.known import draw
from tests.samples import random_bars

BARS, PAST = 1_600, 1_500
DEEDS = ("action", "position", "target", "trade", "held", "order", "policy")


@pytest.fixture(scope="module")
def close():
    return draw(Ref(use="known/m1", params={"n_bars": BARS}), Seeds(1)).bars.close


@pytest.fixture(scope="module")
def agent(close):
    made = UMCAgent(UMCConfig())
    made.fit(begin(ActionSpec(low=-1.0, high=1.0)), {"close": close[:PAST]})
    return made


def begin(actions):
    return EpisodeStart(Role("trader"), ("close",), actions, Seeds(3))


def names_of_deeds(names):
    return [name for name in names if any(deed in name for deed in DEEDS)]


def forecasts_while_acting(agent, close, actions):
    """Return what was foretold at each bar and what was held, in a world of these actions."""
    agent.reset(begin(actions))
    made = [agent.act(Observation(i, close[i : i + 1])) for i in range(400)]
    told = [
        [step.signals[name] for name in ("expected_return", "expected_return_se", "sigma")]
        for step in made
    ]
    return np.array(told), np.array([float(step.action) for step in made])


def moved_by_deeds(returns, held):
    """The defect: a transition that takes the own position for a cause of the next return."""
    return 0.5 * returns + 0.001 * held


def test_d16_d17_what_is_foretold_does_not_hang_on_what_is_done(agent, close):
    free, moved = forecasts_while_acting(agent, close, ActionSpec(low=-1.0, high=1.0))
    shut, still = forecasts_while_acting(agent, close, ActionSpec(low=0.0, high=0.001))
    assert np.abs(moved - still).max() >= 0.5  # other deeds
    assert free.tobytes() == shut.tobytes()  # the same market
    taken_in = [moved_by_deeds(free[:, 0], held) for held in (moved, still)]
    assert taken_in[0].tobytes() != taken_in[1].tobytes()


@pytest.mark.parametrize("tier", [Tier, ExactTier, KalmanTier])
def test_d16_d17_no_door_of_a_model_takes_an_action(tier):
    for door in ("fit", "filter", "begin"):
        assert names_of_deeds(inspect.signature(getattr(tier, door)).parameters) == []
    assert names_of_deeds(["self", "action", "memory"]) == ["action"]


def test_d16_nothing_in_a_row_or_a_batch_is_a_deed():
    for kind in (Series, Batch):
        assert names_of_deeds(field.name for field in fields(kind)) == []
    network = RecurrentNetwork(RecurrentConfig(memory=6, embedding=4, heads=2), 3, Seeds(1))
    assert list(inspect.signature(network.forward).parameters) == ["values", "known", "start"]
    assert network.embed.in_features == 2 * 3  # the columns and where they are not known


def test_d16_the_account_is_no_input_of_the_agents_model(agent):
    shown = {"position", "unrealised_pnl", "growth", "costs", "trade_age", "drawdown"}
    assert not shown & set(UMCConfig().needs)
    assert not shown & set(agent.mind.model.inputs)


def world_of_three():
    config = MarketConfig(actions=DiscreteTargets(levels=(-1.0, 0.0, 1.0)), episode_bars=20)
    return config, random_bars(300, 2)


def guessed(actions, kinds=3):
    """The defect: what ends in as many numbers as there are actions is taken for one-hot."""
    actions = np.asarray(actions)
    return actions if actions.shape[-1] == kinds else np.eye(kinds)[actions]


def test_d19_three_actions_for_three_accounts_are_three_actions():
    config, bars = world_of_three()
    env = MarketVectorEnv(3, bars, config)
    env.reset(seed=1)
    env.step(np.array([0, 1, 2]))
    held = np.sign(env.lanes.state["pos"])
    assert held.tolist() == [-1.0, 0.0, 1.0]
    assert guessed([0, 1, 2]).shape == (3,)  # one row where three were meant
    assert guessed([0, 1]).shape == (2, 3)


@pytest.mark.parametrize("wrong", [[0, 1], [[0, 1, 2]], [[0], [1], [2]], np.eye(3, dtype=int)])
def test_d19_a_batch_of_another_shape_is_refused(wrong):
    config, bars = world_of_three()
    env = MarketVectorEnv(3, bars, config)
    env.reset(seed=1)
    with pytest.raises(AgentError, match="wrong shape"):
        env.step(np.asarray(wrong))


@pytest.mark.parametrize("wrong", [np.array([0, 1, 2]), np.array([0.0, 1.0, 0.0]), 3, 0.5])
def test_d19_one_account_takes_one_whole_number(wrong):
    config, bars = world_of_three()
    world = MarketWorld(config, bars)
    world.reset(Seeds(1))
    with pytest.raises(AgentError, match="not legal"):
        world.advance(wrong)


def lessons(**changes):
    bars = 4
    parts = {
        "states": np.zeros((bars, 2)),
        "worth": np.zeros((bars, 3)),
        "unit_cost": np.zeros(bars),
        "returns_ahead": np.zeros(bars),
        "cost": 0.001,
        "levels": np.array([-1.0, 0.0, 1.0]),
    }
    return Lessons(**parts | changes)


@pytest.mark.parametrize(
    "wrong",
    [{"worth": np.zeros((3, 4))}, {"states": np.zeros(4)}, {"unit_cost": np.zeros((4, 1))}],
)
def test_d19_lessons_of_another_shape_are_refused(wrong):
    assert len(lessons()) == 4
    with pytest.raises(DataError, match="shape"):
        lessons(**wrong)


def test_d19_the_actor_and_the_free_energy_refuse_what_does_not_fit():
    rng = Seeds(1).rng()
    actor = Actor(
        {
            "weight_0": rng.normal(size=(1, 3, 4)),
            "bias_0": np.zeros((1, 1, 4)),
            "weight_1": rng.normal(size=(1, 4, 3)),
            "bias_1": np.zeros((1, 1, 3)),
            "normaliser/mean": np.zeros(2),
            "normaliser/deviation": np.ones(2),
            "levels": np.array([-1.0, 0.0, 1.0]),
        }
    )
    targets, chances = actor.decide(np.zeros((5, 2)), actor.begin())
    assert (targets.shape, chances.shape) == ((5,), (5, 3))
    for states, memory in ((np.zeros((5, 3)), np.zeros(1)), (np.zeros((5, 2)), np.zeros(5))):
        with pytest.raises(DataError, match="shape"):
            actor.decide(states, memory)
    floor = outcome_floor(0.01)
    with pytest.raises(DataError, match="one target and one cost"):
        Actions(np.eye(3), np.zeros((3, 3)), floor)
    three = Actions(np.array([-1.0, 0.0, 1.0]), np.zeros(3), floor)
    with pytest.raises(DataError, match="one row an action"):
        outcome(three, Market.of_heads(np.zeros((2, 2)), np.ones((2, 2))))


def test_d19_a_series_of_other_inputs_is_refused():
    config = KalmanConfig()
    rng = Seeds(2).rng()
    past = Series(rng.normal(size=300), np.ones(300), np.ones(300), rng.normal(size=(300, 2)), "ab")
    tier = KalmanTier(config)
    tier.fit(past, Seeds(1))
    other = Series(past.returns, np.ones(300), np.ones(300), past.inputs[:, :1], ("a",))
    with pytest.raises((AgentError, DataError)):
        tier.filter(other, tier.begin())
    exact = ExactTier(ExactConfig())
    exact.fit(past, Seeds(1))
    assert exact.filter(past, exact.begin()).chance.shape == (300, len(exact.heads))
