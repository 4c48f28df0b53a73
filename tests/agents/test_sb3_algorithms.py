"""What a config says reaches the library, all of it, and nothing else does."""

import inspect
from functools import cache

import gymnasium as gym
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from agent_gym.agents.sb3.algorithms import ALGORITHMS, build_model, schedule
from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.core.errors import ConfigError
from tests.agents.sb3_samples import ALGOS, gym_env, tiny_config

OTHER = {
    "learning_rate": 0.123,
    "gamma": 0.77,
    "net_arch": (5, 6, 7),
    "activation": "elu",
    "n_steps": 24,
    "gae_lambda": 0.66,
    "ent_coef": 0.31,
    "vf_coef": 0.29,
    "max_grad_norm": 0.37,
    "normalize_advantage": None,  # the opposite
    "use_sde": None,
    "batch_size": 12,
    "n_epochs": 3,
    "clip_range": 0.13,
    "clip_range_vf": 0.17,
    "target_kl": 0.019,
    "fused_adam": None,
    "use_rms_prop": None,
    "rms_prop_eps": 0.003,
    "buffer_size": 300,
    "learning_starts": 17,
    "tau": 0.21,
    "train_freq": 3,
    "gradient_steps": 5,
    "action_noise": 0.23,
    "target_entropy": -3.5,
    "target_update_interval": 9,
    "top_quantiles_to_drop_per_net": 4,
    "policy_delay": 5,
    "target_policy_noise": 0.41,
    "target_noise_clip": 0.43,
    "exploration_fraction": 0.47,
    "exploration_initial_eps": 0.83,
    "exploration_final_eps": 0.011,
}
READ = {
    "learning_rate": lambda model: (
        model.lr_schedule(1.0),
        model.policy.optimizer.param_groups[0]["lr"]
        if hasattr(model.policy, "optimizer")
        else model.policy.actor.optimizer.param_groups[0]["lr"],
    ),
    "net_arch": lambda model: [tuple(p.shape) for p in model.policy.parameters()],
    "activation": lambda model: str(model.policy),
    "clip_range": lambda model: model.clip_range(0.5),
    "clip_range_vf": lambda model: model.clip_range_vf and model.clip_range_vf(0.5),
    "use_rms_prop": lambda model: type(model.policy.optimizer).__name__,
    "rms_prop_eps": lambda model: model.policy.optimizer.defaults["eps"],
    "fused_adam": lambda model: (
        model.policy.optimizer.defaults["fused"],
        model.policy.optimizer.defaults["eps"] == 1e-5,  # as without it
    ),
    "buffer_size": lambda model: (model.buffer_size, model.replay_buffer.buffer_size),
    "train_freq": lambda model: model.train_freq.frequency,
    "action_noise": lambda model: model.action_noise and model.action_noise._sigma.tolist(),
    "use_sde": lambda model: (
        (model.use_sde, str(model.policy.action_dist.__class__))
        if hasattr(model.policy, "action_dist")
        else (model.use_sde, model.policy.actor.use_sde)
    ),
    "gamma": lambda model: (
        model.gamma,
        model.rollout_buffer.gamma if hasattr(model, "rollout_buffer") else None,
    ),
    "n_steps": lambda model: (
        model.n_steps,
        model.rollout_buffer.buffer_size
        if hasattr(model, "rollout_buffer")
        else getattr(model.replay_buffer, "n_steps", None),
    ),
    "gae_lambda": lambda model: (model.gae_lambda, model.rollout_buffer.gae_lambda),
    "exploration_fraction": lambda model: model.exploration_schedule(0.9),
    "exploration_initial_eps": lambda model: model.exploration_schedule(1.0),
    "exploration_final_eps": lambda model: model.exploration_schedule(0.0),
}
ELSEWHERE = (
    "use_rms_prop",
    "use_sde",
    "buffer_size",
    "exploration_fraction",
)  # not as it was given
FIELDS = [(algo, field) for algo in ALGOS for field in CONFIGS[algo].model_fields]


@cache
def fitting(algo):
    return gym_env("CartPole-v1" if ALGORITHMS[algo].actions == "discrete" else "Pendulum-v1")


def read(model, field):
    return READ.get(field, lambda model: getattr(model, field))(model)


@pytest.fixture(scope="module")
def plain():
    return {algo: build_model(tiny_config(algo), fitting(algo), 0) for algo in ALGOS}


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize(("algo", "field"), FIELDS)
def test_every_field_of_every_config_reaches_the_library(plain, algo, field):
    value = OTHER[field]
    if value is None:
        value = not getattr(tiny_config(algo), field)
    model = build_model(tiny_config(algo, **{field: value}), fitting(algo), 0)
    found = read(model, field)
    assert found != read(plain[algo], field)
    if isinstance(value, float | int) and field not in ELSEWHERE:
        assert value in (found if isinstance(found, tuple | list) else (found,))


@pytest.mark.parametrize("algo", ALGOS)
def test_every_default_is_the_librarys_own(algo):
    known = inspect.signature(ALGORITHMS[algo].model.__init__).parameters
    config = CONFIGS[algo]()
    for name, value in config.model_kwargs().items():
        theirs = known[name].default
        assert value == (theirs if name != "action_noise" else theirs or 0.0), name
    assert config.learning_rate == known["learning_rate"].default
    env = fitting(algo)
    small = {} if config.on_policy else {"buffer_size": 100}
    theirs = ALGORITHMS[algo].model("MlpPolicy", env, device="cpu", seed=1, **small)
    ours = build_model(CONFIGS[algo](**small), env, 1)
    assert str(ours.policy) == str(theirs.policy)
    mine, other = ours.policy.state_dict(), theirs.policy.state_dict()
    assert all((mine[name] == other[name]).all() for name in other)


def test_a_schedule_goes_from_its_start_to_its_end():
    falling = schedule("linear_0.4_0.1")
    assert [falling(left) for left in (1.0, 0.5, 0.0)] == pytest.approx([0.4, 0.25, 0.1], abs=1e-15)
    assert schedule("linear_0.4")(0.0) == 0.0
    config = tiny_config("ppo", learning_rate="linear_0.01_0.001", clip_range="linear_0.3_0.1")
    model = build_model(config, gym_env("CartPole-v1"), 0)
    (group,) = model.policy.optimizer.param_groups
    assert group["lr"] == 0.01
    assert model.clip_range(1.0) == 0.3
    model.learn(64)
    assert group["lr"] == pytest.approx(0.001, abs=1e-15)
    assert model.clip_range(0.0) == pytest.approx(0.1, abs=1e-15)


@pytest.mark.parametrize("algo", ["sac", "td3", "tqc"])
def test_continuous_algorithms_refuse_a_discrete_game_with_the_fix(algo):
    with pytest.raises(ConfigError, match=r"continuous actions.*LunarLanderContinuous-v3"):
        build_model(tiny_config(algo), gym_env("CartPole-v1"), 0)


@pytest.mark.parametrize("algo", ["dqn", "qrdqn"])
def test_discrete_algorithms_refuse_a_continuous_game_with_the_fix(algo):
    with pytest.raises(ConfigError, match=r"discrete actions.*LunarLander-v3"):
        build_model(tiny_config(algo), gym_env("Pendulum-v1"), 0)


def test_exploration_by_state_needs_continuous_actions():
    with pytest.raises(ConfigError, match="use_sde"):
        build_model(tiny_config("ppo", use_sde=True), gym_env("CartPole-v1"), 0)


def test_observations_that_are_no_row_of_floats_are_refused():
    class Grid(gym.Env):
        observation_space = gym.spaces.Discrete(4)
        action_space = gym.spaces.Discrete(2)

    with pytest.raises(ConfigError, match="FlattenObservation"):
        build_model(tiny_config("ppo"), DummyVecEnv([Grid]), 0)


@pytest.mark.parametrize("algo", ALGOS)
def test_the_same_seed_builds_the_same_model(algo):
    def weights(seed):
        state = build_model(tiny_config(algo), fitting(algo), seed).policy.state_dict()
        return b"".join(value.numpy().tobytes() for value in state.values())

    assert weights(1) == weights(1)
    assert weights(1) != weights(2)
