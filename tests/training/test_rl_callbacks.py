from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from agent_gym.agents.sb3.artifact import load_policy, policy_of
from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.envs.training_env import make_single_env
from agent_gym.training.rl.callbacks import (
    EarlyStoppingCallback,
    EvaluationCallback,
    Progress,
    ProgressCallback,
    Verdict,
)
from agent_gym.training.rl.config import EarlyStopping
from agent_gym.training.rl.episodes import play_episodes
from agent_gym.training.rl.result import Episode, RunFolder, TrainingResult
from agent_gym.training.rl.seeding import SeedManager, rng_state, set_rng_state, set_seed
from agent_gym.training.rl.setup import make_setup, recipe_of
from agent_gym.training.rl.tables import Table
from agent_gym.training.rl.trainer import Trainer
from tests.training.rl_samples import StopAt, small_config


def progress_at(step: int, looks: list[tuple[int, float]] | None = None, **more: Any) -> Progress:
    fields: dict[str, Any] = {
        "step": step,
        "before": step - 10,
        "total": 1000,
        "iteration": step // 10,
        "losses": {},
        "episodes": [],
        "model": SimpleNamespace(),
        "evaluations": looks or [],
    }
    return Progress(**(fields | more))


# --- early stopping ----------------------------------------------------------------------------


def verdicts(config: EarlyStopping, means: list[float]) -> list[Verdict]:
    callback, looks, found = EarlyStoppingCallback(config), [], []
    for i, mean in enumerate(means, start=1):
        looks.append((10 * i, mean))
        found.append(callback.on_iteration(progress_at(10 * i, looks)))
    return found


def test_stops_at_the_target() -> None:
    assert verdicts(EarlyStopping(target=5.0), [1.0, 4.9, 5.0]) == ["go", "go", "stop"]


def test_stops_when_nothing_better_comes() -> None:
    config = EarlyStopping(patience=2, min_delta=1.0)
    assert verdicts(config, [1.0, 3.0, 3.5, 3.9]) == ["go", "go", "go", "stop"]
    assert verdicts(config, [1.0, 0.5, 2.5, 2.0, 4.0]) == ["go"] * 5


def test_judges_only_right_after_a_look() -> None:
    callback = EarlyStoppingCallback(EarlyStopping(target=5.0))
    assert callback.on_iteration(progress_at(30, [(20, 9.0)])) == "go"
    assert callback.on_iteration(progress_at(30)) == "go"


def test_run_that_stops_early_says_so_and_goes_on_to_nothing(tmp_path: Path) -> None:
    config = small_config("a2c", early_stopping={"target": -1e9})
    result = Trainer(config, 5, tmp_path).train()
    assert (result.status, result.steps) == ("stopped_early", 126)
    paths = RunFolder(tmp_path)
    paths.result.unlink()
    again = Trainer(config, 5, tmp_path, [StopAt(8)]).train()
    assert again.state_hash == result.state_hash
    assert (again.status, again.final_mean) == ("stopped_early", result.final_mean)


def test_stop_of_a_callback_ends_the_run_with_a_look(tmp_path: Path) -> None:
    class Enough:
        def on_iteration(self, progress: Progress) -> Verdict:
            return "stop" if progress.iteration == 2 else None

    result = Trainer(small_config("a2c"), 5, tmp_path, [Enough()]).train()
    assert (result.status, result.steps, result.best_step) == ("stopped_early", 36, 36)
    assert RunFolder(tmp_path).final_episodes.exists()


# --- the best is kept --------------------------------------------------------------------------


def test_best_look_is_kept_and_remembered(tmp_path: Path) -> None:
    means = {10: 1.0, 20: 7.0, 30: 3.0, 40: 7.0}
    kept: list[int] = []
    table = Table(tmp_path / "looks.csv", Episode._fields)
    table.begin()

    def made() -> EvaluationCallback:
        return EvaluationCallback(
            10,
            lambda _, step: [Episode(step, 1, means[step], 5)],
            lambda progress: kept.append(progress.step),
            table,
        )

    first, second = made(), made()
    for step in (10, 20):
        first.on_iteration(progress_at(step))
    second.set_state(json.loads(json.dumps(first.state())))
    for step in (30, 40):
        second.on_iteration(progress_at(step))
    second.look(progress_at(40))
    assert kept == [10, 20]
    assert (second.best_step, second.best_mean) == (20, 7.0)
    assert second.looks == list(means.items())
    assert table.path.read_text().splitlines()[1:] == [f"{s},1,{m},5" for s, m in means.items()]


def test_run_keeps_the_best_and_the_last_model(tmp_path: Path) -> None:
    result = Trainer(small_config("ppo"), 5, tmp_path).train()
    paths = RunFolder(tmp_path)
    rows = [line.split(",") for line in paths.evaluations.read_text().splitlines()[1:]]
    means: dict[int, list[float]] = {}
    for step, _, reward, _ in rows:
        means.setdefault(int(step), []).append(float(reward))
    best = max(means, key=lambda step: np.mean(means[step]))
    assert (result.best_step, load_policy(paths.best).card.step) == (best, best)
    assert result.best_mean == pytest.approx(np.mean(means[best]))
    assert load_policy(paths.last).card.step == result.steps == 360
    assert sorted(means) == [144, 288, 360], "each 120 steps, and at the end"
    final = [line.split(",") for line in paths.final_episodes.read_text().splitlines()[1:]]
    assert result.final_mean == pytest.approx(np.mean([float(row[2]) for row in final]))
    assert {int(row[1]) for row in final}.isdisjoint({int(row[1]) for row in rows})
    stored = TrainingResult.model_validate(json.loads(paths.result.read_bytes()))
    assert stored == result
    assert stored.final_low is not None
    assert stored.final_high is not None
    assert stored.final_low <= result.final_mean <= stored.final_high  # type: ignore[operator]


# --- episodes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_episode_depends_on_its_seed_alone_and_can_be_played_by_hand(algo: str) -> None:
    config = small_config(algo)
    recipe = recipe_of(config)
    setup = make_setup(config, 5)
    setup.env.reset()
    policy = policy_of(setup.model, config=config.agent)
    before = rng_state()
    many = play_episodes(policy, recipe, [3, 1, 2], step=9)
    after = rng_state()
    assert all(np.array_equal(before.arrays[name], after.arrays[name]) for name in before.arrays)
    assert before.values == after.values
    assert [episode.seed for episode in many] == [3, 1, 2]
    assert {episode.step for episode in many} == {9}
    assert play_episodes(policy, recipe, [2], step=9) == many[2:]
    env = make_single_env(recipe)
    seen, _ = env.reset(seed=1)
    total, over = 0.0, False
    normalizer = setup.model.get_vec_normalize_env()
    assert normalizer is not None
    while not over:
        action, _ = setup.model.predict(normalizer.normalize_obs(seen), deterministic=True)
        seen, reward, terminated, truncated, _ = env.step(action)
        total, over = total + float(reward), terminated or truncated
    assert total == many[1].reward


# --- seeds -------------------------------------------------------------------------------------


def test_seeds_of_a_run_differ_by_purpose() -> None:
    seeds = SeedManager(1)
    assert len({seeds.model, seeds.environment.as_int(), *seeds.final_seeds(5)}) == 7
    assert seeds.evaluation_seeds(30)[:20] == seeds.evaluation_seeds(20)
    assert seeds.final_seeds(5) != SeedManager(2).final_seeds(5)
    assert not set(seeds.evaluation_seeds(1000)) & set(seeds.final_seeds(1000))


def draws() -> tuple[float, float, float]:
    legacy = float(np.random.normal())  # noqa: NPY002 - the global generator is what is tested
    return legacy, float(np.random.rand()), float(torch.rand(1))  # noqa: NPY002


def test_global_generators_are_put_back() -> None:
    set_seed(3)
    np.random.normal()  # noqa: NPY002 - leaves a second draw in store
    kept = rng_state()
    first = draws()
    assert draws() != first
    set_rng_state(type(kept)(kept.arrays, json.loads(json.dumps(kept.values))))
    assert draws() == first
    set_seed(3)
    assert draws() != first


# --- telling -----------------------------------------------------------------------------------


def test_progress_is_told_once_a_second_with_the_time_left() -> None:
    said: list[str] = []
    clock = ManualClock()
    callback = ProgressCallback(said.append, "ppo", 0, clock)
    for step in range(10, 60, 10):
        clock.sleep_s(0.5)
        callback.on_iteration(progress_at(step, [(20, 3.0)]))
    assert len(said) == 2
    assert (
        said[1] == "ppo: 40 of 1,000 steps | 20 steps/s | 48 s left | greedy 3.0 at 20 (best 3.0)"
    )


def test_tensorboard_files_are_written_on_demand(tmp_path: Path) -> None:
    config = small_config("a2c", steps=18, trackers={"tensorboard": True})
    Trainer(config, 5, tmp_path).train()
    assert [path.name.split(".")[0] for path in RunFolder(tmp_path).tensorboard.iterdir()] == [
        "events"
    ]


def test_tracker_that_is_not_installed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_gym.training.rl.setup.find_spec", lambda _name: None)
    config = small_config("a2c", steps=18, trackers={"tensorboard": False, "wandb": "offline"})
    with pytest.raises(ConfigError, match="pip install wandb"):
        Trainer(config, 5, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_metrics_have_the_losses_of_ppo(tmp_path: Path) -> None:
    Trainer(small_config("ppo"), 5, tmp_path).train()
    header, *rows = RunFolder(tmp_path).metrics.read_text().splitlines()
    assert len(rows) == 5
    first = dict(zip(header.split(","), rows[0].split(","), strict=True))
    for name in ("approx_kl", "clip_fraction", "value_loss", "explained_variance", "clip_range"):
        assert np.isfinite(float(first[name]))
    assert first["step"] == "72"
    assert float(first["learning_rate"]) == pytest.approx(0.003 * (1 - 72 / 360))
    assert first["std"] == ""


def test_result_names_the_variant_that_was_trained_in(tmp_path: Path) -> None:
    result = Trainer(small_config("sac"), 5, tmp_path).train()
    assert result.env == "LunarLanderContinuous-v3"
