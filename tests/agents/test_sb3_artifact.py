"""A model in a folder: the same bits come back, damage is named, nothing in it is run."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from stable_baselines3.common.vec_env import VecNormalize

from agent_gym.agents.sb3 import artifact
from agent_gym.agents.sb3.algorithms import build_model
from agent_gym.agents.sb3.artifact import (
    load_policy,
    policy_of,
    read_card,
    save_model,
    save_policy,
    verify_model,
)
from agent_gym.agents.sb3.folder import atomic_folder, settled
from agent_gym.agents.sb3.foreign import unsafe_load_foreign_zip
from agent_gym.core.errors import AgentError, ConfigError, DataError, StoreError
from agent_gym.core.seeds import Seeds
from tests.agents.sb3_samples import (
    ALGOS,
    gym_env,
    is_discrete,
    market_model,
    market_vec,
    market_words,
    tiny_config,
    trained,
)

CHANCE = ("ppo", "a2c", "sac", "tqc")
FILES = ("model.json", "policy.safetensors", "normalizer.npz")


def cases():
    for algo in ALGOS:
        yield algo, "LunarLander-v3" if is_discrete(algo) else "LunarLanderContinuous-v3"
        yield algo, "CartPole-v1" if is_discrete(algo) else "Pendulum-v1"
        yield algo, "market"
    for algo in ("ppo", "a2c"):
        yield algo, "LunarLanderContinuous-v3"


def vec(algo, env, *, normalize=True):
    return (
        market_vec(algo, normalize=normalize)
        if env == "market"
        else gym_env(env, normalize=normalize)
    )


def observations(env, n=64):
    rng = Seeds(1).child("obs").rng()
    rows = rng.normal(0.0, 2.0, (n, env.observation_space.shape[0]))
    rows[::7] *= 100.0  # so that the cut of the normaliser is met
    rows[1::2] = -rows[::2]
    return rows.astype(env.observation_space.dtype)


def theirs(model, obs, *, deterministic=True):
    env = model.get_vec_normalize_env()
    given = obs if env is None else env.normalize_obs(obs)
    return model.predict(given, deterministic=deterministic)[0]


def assert_same_bits(first, second):
    assert (first.dtype, first.shape) == (second.dtype, second.shape)
    assert first.tobytes() == second.tobytes()


def global_states():
    return (
        torch.get_rng_state().numpy().tobytes(),
        str(np.random.get_state()),  # noqa: NPY002 - the global one is what is watched
        str(sys.modules["random"].getstate()),
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "best"
    market_model("ppo", folder)
    return folder


@pytest.fixture
def copied(saved, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in saved.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("algo", "env"), list(cases()))
def test_saved_and_loaded_it_predicts_what_the_library_predicts(algo, env, normalize, tmp_path):
    config, played = tiny_config(algo), vec(algo, env, normalize=normalize)
    model = trained(config, played)
    words = market_words(algo) if env == "market" else {"id": env}
    save_model(model, tmp_path / "m", config=config, env=words, step=64)
    policy = load_policy(tmp_path / "m")
    obs = observations(played)
    for n in (1, 2, 5, 64):
        assert_same_bits(policy.predict(obs[:n]), theirs(model, obs[:n]))
    assert len(np.unique(policy.predict(obs))) > 1
    if normalize:  # else the test could not tell that it is used
        raw = model.predict(obs, deterministic=True)[0]
        assert raw.tobytes() != policy.predict(obs).tobytes()
    assert {path.name for path in (tmp_path / "m").iterdir()} == {
        *FILES[: 3 if normalize else 2],
        "model.zip",
    }


@pytest.mark.parametrize("sde", [False, True])
@pytest.mark.parametrize("algo", CHANCE)
def test_drawn_actions_are_the_librarys_under_the_same_seed(algo, sde):
    config = tiny_config(algo, use_sde=sde)
    model = trained(config, gym_env("Pendulum-v1"), shaken=False)
    policy, obs = policy_of(model, config=config), observations(model.env, 6)
    assert_same_bits(policy.predict(obs), theirs(model, obs))
    before = global_states()
    drawn = policy.predict(obs, deterministic=False, seed=11)
    assert global_states() == before
    assert_same_bits(drawn, policy.predict(obs, deterministic=False, seed=11))
    assert drawn.tobytes() != policy.predict(obs, deterministic=False, seed=12).tobytes()
    torch.manual_seed(11)
    if sde:
        (model.policy if config.on_policy else model.policy.actor).reset_noise(6)
    assert_same_bits(drawn, theirs(model, obs, deterministic=False))


def test_drawing_needs_a_seed_and_a_policy_with_chance_in_it(saved):
    policy = load_policy(saved)
    obs = np.zeros((1, policy.card.observations.width), np.float32)
    with pytest.raises(AgentError, match="seed"):
        policy.predict(obs, deterministic=False)
    config = tiny_config("dqn")
    greedy = policy_of(build_model(config, gym_env("CartPole-v1"), 0), config=config)
    with pytest.raises(AgentError, match="no chance"):
        greedy.predict(np.zeros((1, 4), np.float32), deterministic=False, seed=1)


def test_only_rewards_normalised_leaves_observations_as_they_are(tmp_path):
    config = tiny_config("ppo")
    env = VecNormalize(gym_env("CartPole-v1", normalize=False), norm_obs=False)
    model = trained(config, env)
    save_model(model, tmp_path / "m", config=config, env={}, step=1)
    policy, obs = load_policy(tmp_path / "m"), observations(env)
    assert_same_bits(policy.predict(obs), model.predict(obs, deterministic=True)[0])
    assert policy.normalizer.statistics["ret_var"] == env.ret_rms.var


def test_loading_and_predicting_leave_the_global_generators_alone(saved):
    before = global_states()
    policy = load_policy(saved)
    policy.predict(np.zeros((3, policy.card.observations.width), np.float32))
    assert global_states() == before


def test_a_snapshot_does_not_follow_the_training(tmp_path):
    config = tiny_config("sac")
    model = trained(config, gym_env("Pendulum-v1"))
    policy, obs = policy_of(model, config=config), observations(model.env)
    before = policy.predict(obs)
    model.learn(64, reset_num_timesteps=False)
    assert_same_bits(policy.predict(obs), before)
    assert theirs(model, obs).tobytes() != before.tobytes()


def test_the_card_says_what_the_model_is(saved):
    card = read_card(saved)
    assert (card.format, card.algo, card.step) == ("agent_gym.model/1", "ppo", 64)
    assert card.config == tiny_config("ppo")
    assert card.feature_names[:2] == ("return_z", "momentum_4")
    assert card.levels == (-1.0, 0.0, 0.5)
    assert card.losses == {"loss": 0.5}
    assert set(card.hashes) == {*FILES, "model.zip"}
    assert verify_model(saved) == card


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_refused_and_the_file_named(copied, name):
    path = copied / name
    content = path.read_bytes()
    for at in {0, 1, len(content) // 3, len(content) // 2, len(content) - 2, len(content) - 1}:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(DataError, match=name):
            load_policy(copied)
    path.write_bytes(content)
    load_policy(copied)
    path.unlink()
    with pytest.raises(DataError, match=name):
        load_policy(copied)


def test_no_single_byte_of_a_card_can_change_unseen(copied):
    path = copied / "model.json"
    content = path.read_bytes()
    for at in range(0, len(content), 5):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(DataError, match=r"model\.json"):
            read_card(copied)


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_a_malicious_zip_is_never_opened_but_by_the_door_that_says_so(copied, tmp_path):
    marker = tmp_path / "it ran"
    model = build_model(tiny_config("ppo"), gym_env("CartPole-v1"), 0)
    model.bomb = Bomb(marker)
    buffer = BytesIO()
    model.save(buffer)
    (copied / "model.zip").write_bytes(buffer.getvalue())
    load_policy(copied)
    with pytest.raises(DataError, match=r"model\.zip"):
        verify_model(copied)
    assert not marker.exists()
    unsafe_load_foreign_zip(copied / "model.zip", "ppo")
    assert marker.exists()


def test_a_model_without_its_zip_acts_all_the_same(copied):
    expected = load_policy(copied).weights()
    (copied / "model.zip").unlink()
    assert load_policy(copied).weights().keys() == expected.keys()


def test_the_zip_is_the_librarys_own(saved):
    model = unsafe_load_foreign_zip(saved / "model.zip", "ppo")
    ours = load_policy(saved).weights()
    state = model.policy.state_dict()
    assert all(state[name].numpy().tobytes() == value.tobytes() for name, value in ours.items())


def test_a_foreign_zip_of_another_kind_is_refused(saved, tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'ppo'"):
        unsafe_load_foreign_zip(saved / "model.zip", "pp")
    with pytest.raises(DataError, match="no such file"):
        unsafe_load_foreign_zip(tmp_path / "none.zip", "ppo")
    with pytest.raises(ConfigError, match="no sac model"):
        unsafe_load_foreign_zip(saved / "model.zip", "sac")
    (tmp_path / "text.zip").write_text("no zip at all")
    with pytest.raises(ConfigError, match="no ppo model"):
        unsafe_load_foreign_zip(tmp_path / "text.zip", "ppo")


def test_a_failed_save_leaves_the_old_model_and_nothing_else(copied, saved, monkeypatch):
    policy, before = load_policy(saved), sorted(copied.parent.rglob("*"))
    content = {path.name: path.read_bytes() for path in copied.iterdir()}

    def full(self, text, encoding=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match="No space left"):
        save_policy(policy, copied)
    assert sorted(copied.parent.rglob("*")) == before
    assert {path.name: path.read_bytes() for path in copied.iterdir()} == content


def test_a_save_takes_the_place_of_the_old_model_whole(copied, saved):
    save_policy(load_policy(saved), copied)
    assert sorted(path.name for path in copied.iterdir()) == sorted(FILES)
    assert [path.name for path in copied.parent.iterdir()] == ["copy"]


def test_killed_between_the_two_renames_the_old_model_is_found(copied, saved):
    aside = copied.with_name(".copy.before")
    copied.rename(aside)
    assert settled(copied) == aside
    assert load_policy(copied).card == read_card(saved)
    with pytest.raises(ZeroDivisionError), atomic_folder(copied):
        raise ZeroDivisionError
    assert verify_model(copied) == read_card(saved)
    assert not aside.exists()


def test_writers_of_the_same_folder_do_not_disturb_one_another(tmp_path):
    def write(number):
        with atomic_folder(tmp_path / "model") as place:
            for name in ("a", "b"):
                (place / name).write_text(str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    (folder,) = tmp_path.iterdir()
    assert (folder / "a").read_text() == (folder / "b").read_text()


def test_a_folder_with_other_things_in_it_is_left_alone(saved, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match=r"thesis\.tex"):
        save_policy(load_policy(saved), tmp_path)
    assert (tmp_path / "thesis.tex").exists()
    with pytest.raises(StoreError, match="a file"):
        save_policy(load_policy(saved), tmp_path / "thesis.tex")


def test_names_and_levels_must_fit_the_model():
    config = tiny_config("ppo")
    model = build_model(config, gym_env("CartPole-v1"), 0)
    with pytest.raises(ConfigError, match="a name each"):
        policy_of(model, config=config, env={"feature_names": ["a", "b"]})
    with pytest.raises(ConfigError, match="a name each"):
        policy_of(model, config=config, env={"feature_names": ["a", "b", "c", "c"]})
    with pytest.raises(ConfigError, match="target position"):
        policy_of(model, config=config, env={"levels": [0.0, 0.5, 1.0]})


def test_observations_of_another_shape_are_refused(saved):
    policy = load_policy(saved)
    for shape in ((policy.card.observations.width,), (2, 3)):
        with pytest.raises(AgentError, match="do not fit"):
            policy.predict(np.zeros(shape))


def test_weights_of_another_network_are_refused(saved):
    policy = load_policy(saved)
    other = policy.card.model_copy(update={"agent": policy.card.agent | {"net_arch": [9, 9]}})
    with pytest.raises(DataError, match="another network"):
        artifact.Policy(other, policy.tensors(), policy.normalizer)
