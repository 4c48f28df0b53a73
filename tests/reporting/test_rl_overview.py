"""Trainings at a glance: names, progress, checkpoints, and videos that are really there."""

import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.reporting.rl.overview import experiment_names, experiment_progress, videos_in
from scripts.seed_dashboard import seed_training
from tests.reporting.run_samples import write_run


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    seed_training(folder)
    return folder


def test_every_seed_is_told(root):
    assert experiment_names(root) == ("lander",)
    seeds = experiment_progress(root, "lander")
    assert [(each.arm, each.seed) for each in seeds] == [
        (arm, seed) for arm in ("a2c", "ppo") for seed in range(3)
    ]
    running = seeds[2]
    assert running.status == "unfinished"
    assert running.score is None
    assert running.steps == 90_000 < running.total == 200_000
    assert running.checkpoints == (10_000, 60_000)
    done = seeds[0]
    assert done.steps == done.total
    assert done.curve[-1][0] == done.total
    assert done.score == pytest.approx(120.0, abs=10.0)


def test_a_run_of_the_trainer_is_found(tmp_path):
    write_run(tmp_path / "experiments" / "mine", 4)
    (seed,) = experiment_progress(tmp_path, "mine")
    assert (seed.arm, seed.seed, seed.status) == ("mine", 4, "done")


@pytest.mark.parametrize("name", ["nothing", "..", "../experiments", "lander/ppo", ""])
def test_a_name_that_is_no_training_is_refused(root, name):
    with pytest.raises(ConfigError, match="no such training"):
        experiment_progress(root, name)


def test_only_videos_of_the_folder_are_shown(tmp_path):
    outside = tmp_path / "secret.mp4"
    outside.write_bytes(b"x")
    root = tmp_path / "results"
    (root / "videos").mkdir(parents=True)
    (root / "experiments" / "a" / "videos").mkdir(parents=True)
    (root / "videos" / "one.mp4").write_bytes(b"x")
    (root / "experiments" / "a" / "videos" / "two.mp4").write_bytes(b"x")
    (root / "videos" / "link.mp4").symlink_to(outside)
    (root / "videos" / "notes.txt").write_text("x")
    assert list(videos_in(root)) == ["experiments/a/videos/two.mp4", "videos/one.mp4"]
    assert videos_in(tmp_path / "nothing") == {}


def test_no_training_is_no_error(tmp_path):
    assert experiment_names(tmp_path) == ()
