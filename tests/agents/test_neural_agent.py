import numpy as np
import pytest
import torch

from agent_gym.agents.neural import NeuralAgent, NeuralConfig, NeuralPolicy, PolicyInputs
from agent_gym.agents.team import Independent
from agent_gym.core import Ref, Seeds, make
from agent_gym.core.errors import AgentError
from agent_gym.core.types import (
    ActionSpec,
    EpisodeStart,
    Inspectable,
    Observation,
    Role,
    Saveable,
)
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.rollouts import MemorySink, check_agent, check_world, play
from agent_gym.training.grpo import NeuralLearner, recorded_of, stack
from agent_gym.training.grpo.signal_market import FEATURES, SignalMarket, SignalWorld
from tests.samples import random_bars

torch.set_num_threads(1)
INPUTS = PolicyInputs(market=("price", "news"), account=("cash",))
NAMES = ("a/price", "a/news", "b/price", "b/news", "account/cash")
ROLE = Role("trader")


def policy(seed=0, spread=3.0, **settings):
    """Return a policy with opinions: larger last weights than a fresh one has."""
    net = NeuralPolicy.create(NeuralConfig(**settings), INPUTS, Seeds(seed))
    last = f"layers.{len(net.config.hidden)}.weight"
    return net.with_weights({last: net.weights[last] * 100 * spread})


def started(net, *, seed=0, actions=None, names=NAMES, deterministic=False):
    agent = NeuralAgent(net, deterministic=deterministic)
    agent.reset(EpisodeStart(ROLE, names, actions or ActionSpec(), Seeds(seed)))
    return agent


def seen(seed=0, n=5):
    return Observation(0, Seeds(seed).child("seen").rng().normal(size=n))


def test_a_decision_says_how_likely_it_was():
    net = policy()
    agent, obs = started(net), seen()
    columns = [[0, 1, 4], [2, 3, 4]]
    log_probs = net.log_probs(obs.features[columns])
    chosen = agent.act(obs)
    picks = [net.config.levels.index(level) for level in chosen.action]
    assert chosen.action.dtype == np.float64
    wanted = sum(log_probs[market, pick] for market, pick in enumerate(picks))
    assert chosen.signals["log_prob"] == pytest.approx(wanted, abs=1e-12)
    assert chosen.signals["entropy"] == pytest.approx(-(np.exp(log_probs) * log_probs).sum())


def test_it_draws_as_often_as_it_says():
    net = policy()
    agent, obs = started(net), seen(4)
    chances = np.exp(net.log_probs(obs.features[[[0, 1, 4], [2, 3, 4]]]))
    drawn = np.array([agent.act(obs).action for _ in range(4000)])
    for market in range(2):
        found = [(drawn[:, market] == level).mean() for level in net.config.levels]
        assert np.abs(found - chances[market]).max() < 0.03


def test_without_chance_it_takes_the_likeliest_and_cannot_be_trained_on():
    net = policy()
    agent, obs = started(net, deterministic=True), seen(2)
    best = net.log_probs(obs.features[[[0, 1, 4], [2, 3, 4]]]).argmax(1)
    decision = agent.act(obs)
    assert decision.action.tolist() == [net.config.levels[i] for i in best]
    assert not decision.signals


def test_markets_are_decided_apart_by_one_network():
    agent = started(policy(), deterministic=True)
    row = seen(3).features
    swapped = row[[2, 3, 0, 1, 4]]
    one, other = agent.act(Observation(0, row)).action, agent.act(Observation(0, swapped)).action
    assert one.tolist() == other[::-1].tolist()


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    def drawn(seed):
        agent = started(policy(), seed=seed)
        return [agent.act(seen(i)).action.tolist() for i in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_refused_by_name(value):
    row = seen().features
    row[3] = value
    with pytest.raises(AgentError, match="b/news"):
        started(policy()).act(Observation(7, row))


def test_worlds_it_cannot_play_are_refused():
    with pytest.raises(AgentError, match="mean nothing"):
        started(policy(), actions=ActionSpec(n=3, levels=(-1.0, 0.0, 1.0)))
    with pytest.raises(AgentError, match="outside"):
        started(policy(), actions=ActionSpec(low=0.0, high=1.0))
    with pytest.raises(AgentError, match="forbidden"):
        started(policy()).act(Observation(0, seen().features, np.array([True])))


def test_it_is_registered_and_named_by_its_folder(tmp_path):
    net = policy()
    net.save(tmp_path / "m")
    agent = make("agent", Ref(use="neural/market", params={"model": str(tmp_path / "m")}))
    assert agent.name == "neural/market"
    assert agent.version == net.version
    still = Ref(use="neural/market", params={"model": str(tmp_path / "m"), "deterministic": True})
    assert isinstance(agent, Saveable)
    assert isinstance(agent, Inspectable)
    calm = make("agent", still)
    calm.reset(EpisodeStart(ROLE, NAMES, ActionSpec(), Seeds(0)))
    assert calm.act(seen()).signals is None


def test_loading_another_policy_changes_who_decides(tmp_path):
    agent = started(policy(seed=1))
    policy(seed=2).save(tmp_path / "m")
    agent.load(tmp_path / "m")
    assert agent.version == policy(seed=2).version
    fresh = started(policy(seed=2))
    assert [agent.act(seen(i)).action.tolist() for i in range(9)] == [
        fresh.act(seen(i)).action.tolist() for i in range(9)
    ]
    agent.save(tmp_path / "again")
    assert NeuralPolicy.load(tmp_path / "again").version == agent.version


def test_the_signal_world_and_the_agent_keep_the_contract():
    market = SignalMarket()
    net = market.policy(Seeds(0))
    check_world(lambda: SignalWorld(market))
    check_agent(lambda: NeuralAgent(net), lambda: SignalWorld(market))
    check_agent(lambda: NeuralAgent(net, deterministic=True), lambda: SignalWorld(market))


@pytest.mark.parametrize("actions", [{"kind": "discrete"}, {"kind": "continuous"}])
def test_it_plays_a_market_of_bars_too(actions):
    config = MarketConfig(actions=actions, episode_bars=60, random_start=False, warmup_bars=0)
    bars = random_bars(100, 1)
    names = MarketWorld(config, bars).start(ROLE, Seeds(0)).feature_names
    sample = np.abs(Seeds(0).rng().normal(100, 10, (50, len(names))))
    net = NeuralPolicy.create(NeuralConfig(), PolicyInputs(market=names), Seeds(0), sample)
    check_agent(lambda: NeuralAgent(net), lambda: MarketWorld(config, bars))


def test_what_was_recorded_is_what_the_trainer_computes():
    """The log-probability of acting (numpy) is that of training (torch) to 1e-6 and far better."""
    market = SignalMarket()
    base = market.policy(Seeds(3))
    last = "layers.1.weight"
    net = base.with_weights({last: base.weights[last] * 200})
    agent, steps = NeuralAgent(net), []
    for episode in range(6):
        sink = MemorySink()
        play(SignalWorld(market), Independent({ROLE: agent}), f"e{episode}", Seeds(1), [sink])
        steps.append(sink.steps)
    batch = stack(
        [
            recorded_of(
                one, id=f"t{i}", group_key="g", version=agent.version, feature_names=FEATURES
            )
            for i, one in enumerate(steps)
        ]
    )
    learner = NeuralLearner(net)
    with torch.no_grad():
        found = learner.evaluate(batch)
    assert np.abs(found.log_prob.numpy() - batch.log_probs).max() < 1e-12
    entropies = [[step.decision.signals["entropy"] for step in one] for one in steps]
    assert np.abs(found.entropy.numpy() - entropies).max() < 1e-12
    assert batch.drawn.all()
