"""A trained model as an agent: columns by name, actions in the world's words, no surprises."""

import sys

import numpy as np
import pytest
import torch

from agent_gym.agents.sb3.agent import ModelAgent, ModelAgentConfig
from agent_gym.agents.sb3.artifact import load_policy, save_model
from agent_gym.agents.team import Independent
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Ref, entry, make, names
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    ActionSpec,
    EpisodeStart,
    Inspectable,
    Nanos,
    Observation,
    Role,
    Saveable,
)
from agent_gym.envs import ContinuousTargets, DiscreteTargets, MarketEnv, MarketWorld
from agent_gym.envs.gym_world import GymWorld, GymWorldConfig
from agent_gym.evaluation.audit.subject import Greedy
from agent_gym.rollouts import MemorySink, check_agent, play
from tests.agents.sb3_samples import (
    ALGOS,
    FEATURES,
    LEVELS,
    gym_env,
    is_discrete,
    market_config,
    market_model,
    tiny_config,
    trained,
)
from tests.samples import random_bars

TRADER = Role("trader")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    return {algo: (place / algo, market_model(algo, place / algo)) for algo in ALGOS}


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    place = tmp_path_factory.mktemp("games")
    found = {}
    for algo, env in (
        ("ppo", "CartPole-v1"),
        ("sac", "Pendulum-v1"),
        ("td3", "LunarLanderContinuous-v3"),
    ):
        config = tiny_config(algo)
        model = trained(config, gym_env(env))
        save_model(model, place / env, config=config, env={"id": env}, step=1)
        found[env] = (f"sb3/{algo}", place / env, model)
    return found


def agent_of(folder, algo, **more):
    return make("agent", Ref(use=f"sb3/{algo}", params={"model": str(folder), **more}))


def begin(columns, actions=None, seed=0):
    return EpisodeStart(TRADER, tuple(columns), actions or ActionSpec(), Seeds(seed))


def rows(n, width, seed=0):
    return Seeds(seed).child("rows").rng().normal(0.0, 2.0, (n, width))


def actions_of(agent, table):
    return [agent.act(Observation(Nanos(i), row)).action for i, row in enumerate(table)]


def test_every_algorithm_is_registered():
    assert {name for name in names("agent") if name.startswith("sb3/")} == {
        f"sb3/{algo}" for algo in ALGOS
    }
    for algo in ALGOS:
        assert entry("agent", f"sb3/{algo}").config is ModelAgentConfig


@pytest.mark.parametrize("algo", ALGOS)
def test_in_a_world_it_does_what_the_library_does_in_the_environment(models, algo):
    folder, model = models[algo]
    bars, config = random_bars(300, 8), market_config(algo)
    env, sink = MarketEnv(bars, config), MemorySink()
    play(
        MarketWorld(config, bars),
        Independent({TRADER: agent_of(folder, algo)}),
        "e",
        Seeds(1),
        [sink],
    )
    obs, _ = env.reset(seed=0)
    normalizer = model.get_vec_normalize_env()
    for step in sink.steps:
        action, _ = model.predict(normalizer.normalize_obs(obs), deterministic=True)
        assert step.decision.action == (int(action) if is_discrete(algo) else float(action[0]))
        obs, reward, *_ = env.step(action)
        assert reward == step.after.reward
    assert len(sink.steps) == config.episode_bars
    assert len({step.decision.action for step in sink.steps}) > 1


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_columns_are_found_by_name_wherever_they_stand(models, algo):
    folder, _ = models[algo]
    own = load_policy(folder).card.feature_names
    table = rows(40, len(own))
    agent = agent_of(folder, algo)
    agent.reset(begin(own))
    expected = actions_of(agent, table)
    wide = [*reversed(own), "more", "of", "it"]
    padded = np.column_stack([table[:, ::-1], rows(40, 3, seed=9)])
    agent.reset(begin(wide))
    assert actions_of(agent, padded) == expected
    agent.reset(begin(own[::-1]))  # told wrongly, it must decide otherwise
    assert actions_of(agent, table) != expected


def test_a_world_that_lacks_a_column_is_refused_by_its_name(models):
    folder, _ = models["ppo"]
    own = load_policy(folder).card.feature_names
    with pytest.raises(AgentError, match=r"momentum_4.*features"):
        agent_of(folder, "ppo").reset(begin([name for name in own if name != "momentum_4"]))
    world = MarketWorld(market_config("ppo", features=FEATURES[:1]), random_bars(300, 8))
    with pytest.raises(AgentError, match="momentum_4"):
        agent_of(folder, "ppo").reset(world.start(TRADER, Seeds(0)))


def test_a_world_with_more_features_changes_nothing(models):
    folder, _ = models["ppo"]

    def decided(features):
        sink, world = (
            MemorySink(),
            MarketWorld(market_config("ppo", features=features), random_bars(300, 8)),
        )
        play(world, Independent({TRADER: agent_of(folder, "ppo")}), "e", Seeds(1), [sink])
        return [step.decision.action for step in sink.steps]

    assert decided(FEATURES) == decided(("hour_sin", *reversed(FEATURES), "volume_z"))


def test_levels_are_said_in_the_words_of_the_world(models):
    folder, _ = models["ppo"]
    own = load_policy(folder).card.feature_names
    table = rows(60, len(own))
    agent = agent_of(folder, "ppo")
    agent.reset(begin(own, DiscreteTargets(levels=LEVELS).spec()))
    picked = actions_of(agent, table)
    assert len(set(picked)) > 1
    targets = [LEVELS[action] for action in picked]
    agent.reset(begin(own, ContinuousTargets().spec()))
    assert actions_of(agent, table) == targets
    other = DiscreteTargets(levels=(0.5, -1.0, 0.25, 0.0))
    agent.reset(begin(own, other.spec()))
    assert [other.levels[action] for action in actions_of(agent, table)] == targets


def test_a_continuous_model_takes_the_nearest_level(models):
    folder, _ = models["sac"]
    own = load_policy(folder).card.feature_names
    table, agent = rows(60, len(own)), agent_of(folder, "sac")
    agent.reset(begin(own, ContinuousTargets().spec()))
    targets = actions_of(agent, table)
    spec = DiscreteTargets(levels=LEVELS).spec()
    agent.reset(begin(own, spec))
    assert actions_of(agent, table) == [spec.encode(target) for target in targets]
    agent.reset(begin(own, ActionSpec(low=0.0, high=0.1)))
    assert all(0.0 <= action <= 0.1 for action in actions_of(agent, table))


def test_actions_that_mean_nothing_in_a_world_are_refused(models, games):
    own = load_policy(models["ppo"][0]).card.feature_names
    for algo in ("ppo", "sac"):
        with pytest.raises(AgentError, match="mean nothing"):
            agent_of(models[algo][0], algo).reset(begin(own, ActionSpec(n=3)))
    name, folder, _ = games["CartPole-v1"]
    columns = [f"obs_{i}" for i in range(4)]
    for spec in (ActionSpec(), ActionSpec(n=3), DiscreteTargets(levels=(0.0, 1.0)).spec()):
        with pytest.raises(AgentError, match="mean nothing"):
            make("agent", Ref(use=name, params={"model": folder})).reset(begin(columns, spec))


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "LunarLanderContinuous-v3"])
def test_it_plays_games_as_the_library_does(games, env):
    name, folder, model = games[env]
    world, sink = GymWorld(GymWorldConfig(id=env)), MemorySink()
    player = make("agent", Ref(use=name, params={"model": folder}))
    play(world, Independent({Role("player"): player}), "e", Seeds(2), [sink])
    normalizer = model.get_vec_normalize_env()
    for step in sink.steps:
        seen = normalizer.normalize_obs(step.before.features.astype(np.float32))
        action, _ = model.predict(seen[np.newaxis], deterministic=True)
        assert np.array_equal(np.ravel(step.decision.action), np.ravel(action))
    assert len(sink.steps) > 5
    check_agent(
        lambda: make("agent", Ref(use=name, params={"model": folder})),
        lambda: GymWorld(GymWorldConfig(id=env)),
    )


@pytest.mark.parametrize("algo", ALGOS)
def test_the_protocols_hold(models, algo, tmp_path):
    folder, model = models[algo]
    agent = agent_of(folder, algo)
    assert isinstance(agent, Inspectable)
    assert isinstance(agent, Saveable)
    assert isinstance(agent, Greedy)
    assert agent.name == f"sb3/{algo}"
    assert agent.losses() == {"loss": 0.5}
    state = model.policy.state_dict()
    assert agent.weights().keys() == state.keys()
    assert all(state[name].numpy().tobytes() == w.tobytes() for name, w in agent.weights().items())
    agent.save(tmp_path / "again")
    again = agent_of(tmp_path / "again", algo)
    own = agent.card.feature_names
    table = rows(20, len(own))
    for each in (agent, again):
        each.reset(begin(own))
    assert actions_of(again, table) == actions_of(agent, table)


def test_what_it_hands_out_cannot_change_it(models):
    folder, _ = models["ppo"]
    agent = agent_of(folder, "ppo")
    own = agent.card.feature_names
    agent.reset(begin(own))
    table = rows(20, len(own))
    before = actions_of(agent, table)
    for weights in agent.weights().values():
        weights[...] = 0.0
    agent.losses()["loss"] = 7.0  # type: ignore[index]
    assert actions_of(agent, table) == before
    assert agent.losses() == {"loss": 0.5}


def test_load_takes_the_other_model_before_and_after_a_reset(models, tmp_path):
    config = tiny_config("ppo")
    other = tmp_path / "other"
    market_model("ppo", other, normalize=False)
    assert config.algo == "ppo"
    folder, _ = models["ppo"]
    fresh = agent_of(other, "ppo")
    own = fresh.card.feature_names
    table, start = rows(40, len(own)), begin(own)
    fresh.reset(start)
    expected = actions_of(fresh, table)
    for order in ("load", "reset"):
        agent = agent_of(folder, "ppo")
        agent.reset(start)
        assert actions_of(agent, table) != expected
        if order == "reset":
            agent.reset(start)
        agent.load(other)
        if order == "load":
            agent.reset(start)
        assert actions_of(agent, table) == expected


def test_the_name_must_match_the_model(models):
    folder, _ = models["ppo"]
    with pytest.raises(ConfigError, match=r"Name it sb3/ppo"):
        agent_of(folder, "a2c")
    with pytest.raises(ConfigError, match=r"Name it sb3/sac"):
        agent_of(folder, "ppo").load(models["sac"][0])


@pytest.mark.parametrize("algo", ALGOS)
def test_act_is_pure_and_leaves_the_global_generators_alone(models, algo):
    agent = agent_of(models[algo][0], algo)
    own = agent.card.feature_names
    table = rows(10, len(own))
    agent.reset(begin(own))
    before = (
        torch.get_rng_state().numpy().tobytes(),
        str(np.random.get_state()),  # noqa: NPY002 - the global one is what is watched
        str(sys.modules["random"].getstate()),
    )
    kept = table.copy()
    first = actions_of(agent, table)
    assert actions_of(agent, table[::-1]) == first[::-1]  # nothing is remembered
    assert (table == kept).all()
    assert before == (
        torch.get_rng_state().numpy().tobytes(),
        str(np.random.get_state()),  # noqa: NPY002
        str(sys.modules["random"].getstate()),
    )


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_drawn_actions_follow_the_seed_of_the_episode(models, algo):
    agent = agent_of(models[algo][0], algo, deterministic=False)
    own = agent.card.feature_names
    middle = load_policy(models[algo][0]).normalizer.statistics["obs_mean"]
    table = np.tile(middle, (60, 1))  # where all actions are about as good

    def drawn(seed):
        agent.reset(begin(own, seed=seed))
        return actions_of(agent, table)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 1
    agent.act_greedily()
    assert len(set(drawn(1))) == 1


@pytest.mark.parametrize("algo", ["td3", "dqn", "qrdqn"])
def test_chance_is_refused_where_there_is_none(models, algo):
    with pytest.raises(ConfigError, match="changes nothing"):
        agent_of(models[algo][0], algo, deterministic=False)


def test_what_is_not_a_number_is_refused_by_the_name_of_its_column(models):
    agent = agent_of(models["ppo"][0], "ppo")
    own = agent.card.feature_names
    agent.reset(begin([*own, "unused"]))
    row = np.zeros(len(own) + 1)
    row[-1] = np.nan
    agent.act(Observation(Nanos(0), row))
    row[1] = np.inf
    with pytest.raises(AgentError, match="momentum_4"):
        agent.act(Observation(Nanos(7), row))


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_contract_holds_in_a_market(models, deterministic):
    folder, _ = models["a2c"]
    for actions in (ContinuousTargets(), DiscreteTargets()):
        check_agent(
            lambda: agent_of(folder, "a2c", deterministic=deterministic),
            lambda actions=actions: MarketWorld(
                market_config("a2c", actions=actions), random_bars(300, 8)
            ),
        )


def test_the_classes_are_named_by_their_algorithm():
    found = {each.algo: each.__name__ for each in ModelAgent.__subclasses__()}
    assert found["qrdqn"] == "QRDQNAgent"
    assert set(found) == set(ALGOS)
