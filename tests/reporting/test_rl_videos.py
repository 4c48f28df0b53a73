"""Videos show the episodes that are on record, in a form that browsers play."""

from __future__ import annotations

import imageio.v2 as imageio
import numpy as np
import pytest

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.envs.training_env import EnvRecipe
from agent_gym.reporting.rl import read_arms, write_report
from agent_gym.reporting.rl.videos import (
    Frame,
    action_text,
    draws_pictures,
    frame_of,
    pick_episodes,
    record_episode,
)
from agent_gym.reporting.text import number
from agent_gym.training.rl.episodes import play_episodes
from agent_gym.training.rl.trainer import create_trainer_from_config

LANDER = EnvRecipe("LunarLander-v3")
TINY = {
    "algo": "ppo",
    "env": "LunarLander-v3",
    "steps": 256,
    "n_envs": 2,
    "agent": {"n_steps": 128, "batch_size": 64, "n_epochs": 1, "net_arch": [8]},
    "evaluation": {"every": 128, "episodes": 2, "final_episodes": 3},
    "trackers": {"tensorboard": False},
}


class Coasting:
    def predict(self, obs):
        return np.zeros(len(obs), dtype=np.int64)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "ppo"
    create_trainer_from_config(TINY, seed=3, folder=folder / "seed_3").train()
    return folder


def test_a_clip_is_the_episode_of_its_seed(tmp_path):
    (episode,) = play_episodes(Coasting(), LANDER, [7])
    clip = record_episode(Coasting(), LANDER, 7, title="Coasting")
    assert (clip.reward, clip.length, clip.seed) == (episode.reward, episode.length, 7)
    path = tmp_path / "clip.mp4"
    path.write_bytes(clip.mp4)
    with imageio.get_reader(path) as reader:
        known = reader.get_meta_data()
        frames = sum(1 for _ in reader)
    assert known["codec"] == "h264"
    assert known["pix_fmt"].startswith("yuv420p")
    assert all(side % 16 == 0 for side in known["size"])
    assert known["fps"] == 50
    assert frames == clip.length + 1 + 50  # the first picture, and the last held for a second
    assert clip.mp4.index(b"moov") < clip.mp4.index(b"mdat")  # plays before it is loaded


def test_the_strip_tells_what_happened():
    picture = np.full((400, 600, 3), 90, dtype=np.uint8)
    seen = [
        frame_of(Frame(picture, step, "main engine", reward, total))
        for step, reward, total in ((1, 1.0, 1.0), (2, 1.0, 1.0), (1, -1.0, 1.0), (1, 1.0, 9.0))
    ]
    assert all(each.shape == (464, 608, 3) for each in seen)
    assert (seen[0][:400, 4:604] == 90).all()
    assert all((seen[0][400:] != other[400:]).any() for other in seen[1:])


@pytest.mark.parametrize(
    ("action", "recipe", "text"),
    [
        (np.int64(0), LANDER, "coast"),
        (np.array([3]), LANDER, "right engine"),
        (
            np.array([1.0, 0.2]),
            EnvRecipe("LunarLanderContinuous-v3", continuous=True),
            "main 100 %, side off",
        ),
        (
            np.array([-0.1, -0.9]),
            EnvRecipe("LunarLanderContinuous-v3", continuous=True),
            "main off, left 90 %",
        ),
        (np.int64(1), EnvRecipe("CartPole-v1"), "1"),
        (np.array([0.25]), EnvRecipe("Pendulum-v1", continuous=True), "+0.25"),
    ],
)
def test_actions_are_words(action, recipe, text):
    assert action_text(action, recipe) == text


def test_what_draws_nothing_is_refused_in_words():
    recipe = EnvRecipe("market")
    assert not draws_pictures(recipe)
    with pytest.raises(ConfigError, match="draws no pictures"):
        record_episode(Coasting(), recipe, 1)


def test_best_median_and_worst():
    assert pick_episodes([5.0]) == {"best": 0, "median": 0, "worst": 0}
    assert pick_episodes([1.0, 2.0]) == {"best": 1, "median": 0, "worst": 0}
    with pytest.raises(DataError):
        pick_episodes([])


def test_a_trained_model_is_filmed_as_on_record(trained, tmp_path):
    said: list[str] = []
    files = write_report(trained, tmp_path, say=said.append)
    assert [path.name for path in files.videos] == ["best.mp4", "median.mp4", "worst.mp4"]
    assert len(said) == 3
    page = files.page.read_text()
    assert page.count("<video") == 3
    assert len(page) < 5_000_000
    rewards = sorted(read_arms(trained)[0].runs[0].rewards, reverse=True)
    for line, name, reward in zip(said, ("best", "median", "worst"), rewards, strict=True):
        assert line.startswith(f"filmed the {name} episode: return {number(reward)}, ")


def test_an_episode_that_did_not_happen_is_not_filmed(trained, tmp_path):
    arm = read_arms(trained)[0]
    path = arm.runs[0].files.final_episodes
    before = path.read_text()
    lines = before.splitlines()
    head, first, *rest = lines
    cells = first.split(",")
    cells[head.split(",").index("reward")] = "299.0"
    try:
        path.write_text("\n".join((head, ",".join(cells), *rest)) + "\n")
        with pytest.raises(DataError, match="came out differently"):
            write_report(trained, tmp_path)
        assert list(tmp_path.iterdir()) == []
    finally:
        path.write_text(before)
