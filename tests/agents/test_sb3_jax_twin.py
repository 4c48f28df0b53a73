from importlib.util import find_spec

import numpy as np
import pytest

from agent_gym.agents.sb3 import jax_twin
from agent_gym.agents.sb3.artifact import load_policy, policy_of, save_model
from agent_gym.agents.sb3.config import PPOConfig, SACConfig, TD3Config
from agent_gym.agents.sb3.jax_twin import build_jax_model, is_jax
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.training_env import describe_env, make_vec_env, resolve_recipe

SMALL = {"net_arch": (7, 5), "learning_starts": 20, "batch_size": 8, "buffer_size": 500}
needs_sbx = pytest.mark.skipif(find_spec("sbx") is None, reason="the extra `fast` is not installed")


def env_and_recipe(env="Pendulum-v1"):
    recipe = resolve_recipe(env, {}, None, "gymnasium", actions="continuous", algo="sac")
    return make_vec_env(recipe, 2, Seeds(1)), recipe


@needs_sbx
@pytest.mark.parametrize("kind", [SACConfig, TD3Config])
def test_the_kept_network_acts_as_the_trained_one(kind, tmp_path):
    config = kind(**SMALL, learning_rate="linear_0.003")
    env, recipe = env_and_recipe()
    model = build_jax_model(config, env, 3)
    assert is_jax(model)
    before = policy_of(model, config=config)
    model.learn(100)
    save_model(model, tmp_path / "model", config=config, env=describe_env(recipe), step=100)
    policy = load_policy(tmp_path / "model")
    seen = Seeds(2).child("seen").rng().normal(size=(200, 3)).astype(np.float32)
    theirs, _ = model.predict(seen, deterministic=True)
    np.testing.assert_allclose(policy.predict(seen), theirs, atol=1e-5)
    assert np.abs(before.predict(seen) - theirs).max() > 1e-3  # it did learn, and is no other


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (PPOConfig(), "not learned in JAX"),
        (SACConfig(**SMALL, target_update_interval=3), "target_update_interval"),
        (SACConfig(**SMALL, use_sde=True), "use_sde"),
    ],
)
def test_what_it_would_not_obey_is_refused(config, words):
    with pytest.raises(ConfigError, match=words):
        build_jax_model(config, env_and_recipe()[0], 0)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    def absent(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(jax_twin, "import_module", absent)
    with pytest.raises(ConfigError, match=r"agent-gym\[fast\]"):
        build_jax_model(SACConfig(**SMALL), env_and_recipe()[0], 0)
