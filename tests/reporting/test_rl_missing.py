"""What the table of the lander says of itself: who learned it, what is missing, how to add it."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from agent_gym.apps.cli.train_options import TrainJob, asked_config
from agent_gym.reporting.rl.aims import AIMS, completing, gaps, missing_section
from agent_gym.reporting.rl.commands import training_command
from agent_gym.reporting.rl.plots import learning_curves
from agent_gym.reporting.rl.results import algorithm_of, results_page, results_table
from agent_gym.reporting.rl.runs import read_arms
from agent_gym.reporting.rl.sections import seeds_table
from agent_gym.training.rl.arms import trainer_config
from agent_gym.training.rl.config import TrainerConfig, read_mapping, read_trainer_config
from agent_gym.training.rl.experiment_config import shipped_config, shipped_trainings
from tests.reporting.run_samples import write_arm, write_run


def shipped(name, **changes):
    return trainer_config(read_mapping(shipped_config(name)), changes, where=name)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    few = {"iterations": 5, "finals": 20}
    write_arm(folder / "lander-ppo", 5, 265.0, config=shipped("lander-ppo"), **few)
    sac = shipped("lander-sac", learner="sbx", threads=2)
    write_run(folder / "lander-sac", 0, level=290.0, config=sac, **few)
    td3 = shipped("lander-td3", **{"learner": "sbx", "agent.action_noise": 0.1})
    write_arm(folder / "lander-td3", 5, 100.0, config=td3, **few)
    return folder


def test_who_learned_is_told_in_the_table_and_in_the_settings(stored):
    rows = results_table([stored])
    assert [row["learner"] for row in rows] == ["sb3", "sbx", "sbx"]
    page = results_page(rows, "x")
    assert "| SAC (SBX) | " in page
    assert "| TD3 (SBX) | " in page
    assert "| PPO | " in page
    assert "learned in JAX by SBX" in page
    sac = page[page.index("**SAC (SBX), 300k") :]
    for word in ("`learner: sbx`", "`threads: 2`", "`continuous: auto`"):
        assert word in sac[: sac.index("**TD3")]
    ppo = page[page.index("**PPO, 250k") : page.index("**SAC (SBX), 300k")]
    assert "learner" not in ppo
    assert "SBX" not in results_page(rows[:1], "x")


def test_the_environment_of_a_row_is_told_where_it_is_not_as_usual(tmp_path):
    config = TrainerConfig(env_params={"gravity": -5.0}, backend="envpool")
    write_run(tmp_path / "moon", 0, config=config)
    rows = results_table([tmp_path])
    page = results_page(rows, "x")
    assert "`env_params.gravity: -5`" in page
    assert "`backend: envpool`" in page
    assert algorithm_of(rows[0]) == "PPO (envpool)"


def test_the_page_says_what_is_missing_and_which_command_brings_it(stored):
    rows = results_table([stored])
    page = results_page(rows, "x")
    part = page[page.index("## What is missing") : page.index("## Seeds")]
    assert "A2C (aim 180) has no row: `agent-gym train --config lander-a2c --seeds 5`" in part
    assert "PPO at 1M (aim 270) has no row" in part
    assert "SAC, 300k, lander-sac has 1 seed, and 5 are the least" in part
    assert "--config lander-sac --set learner=sbx --set threads=2 --seeds 5`" in part
    assert "TD3, 300k, lander-td3 misses its aim" in part
    assert "PPO, 250k" not in part
    assert "`make results LEARNER=sbx`" in part
    assert (
        "lander-td3 is of other settings than lander-td3 has now (agent.action_noise=0.1)" in part
    )
    assert part.count("\n- ") == 6  # SAC has two threads where the shipped one has one


def test_nothing_is_missing_where_all_aims_are_reached():
    rows = [
        {
            "algo": aim.algo,
            "steps": aim.steps or 300_000,
            "seeds": 5,
            "iqm": aim.level,
            "learner": "sb3",
            "name": aim.config,
            "command": f"agent-gym train --config {aim.config} --set learner=sbx",
            "folder": f"x/{aim.config}",
        }
        for aim in AIMS
    ]
    assert gaps(rows) == []
    assert "Nothing: every aim is reached" in missing_section(rows)
    assert "make results" not in missing_section(rows)
    assert len(gaps([rows[0] | {"iqm": 249.9, "seeds": 4}, *rows[1:]])) == 2
    assert completing(rows) == "make results"


def test_aims_are_of_shipped_trainings():
    for aim in AIMS:
        config = read_trainer_config(shipped_config(aim.config))
        assert config.algo == aim.algo
        assert aim.steps in (None, config.steps)


def test_a_command_gives_the_very_settings_of_an_arm(stored, tmp_path):
    arms = {arm.name: arm for arm in read_arms(stored)}
    told = {name: training_command(arm, 5) for name, arm in arms.items()}
    assert told["lander-ppo"] == "agent-gym train --config lander-ppo --seeds 5 --seed 1"
    assert "--set learner=sbx" in told["lander-td3"]
    assert "--set agent.action_noise=0.1" in told["lander-td3"]
    assert "--seeds 1" in training_command(arms["lander-sac"])
    for name, command in told.items():
        words = shlex.split(command)
        pairs = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
        made = asked_config(TrainJob(config=words[words.index("--config") + 1]), pairs)
        assert made.model_dump(mode="json") == arms[name].settings


def test_settings_far_from_any_shipped_are_told_by_their_file(tmp_path):
    write_run(tmp_path / "mine", 0, config=TrainerConfig(env="CartPole-v1", algo="dqn"))
    (arm,) = read_arms(tmp_path)
    stored = f"{tmp_path}/mine/seed_0/config.json"
    command = f"agent-gym train --config {stored} --name mine --seeds 1"
    assert training_command(arm) == command


@pytest.mark.parametrize("name", shipped_trainings())
def test_a_shipped_config_is_known_without_settings_that_came_later(tmp_path, name):
    config = read_trainer_config(shipped_config(name))
    for seed in (0, 1):
        path = write_run(tmp_path / name, seed, config=config, iterations=2, finals=3, every=10**6)
        if seed:
            continue
        for file in ("config.json", "result.json"):
            said = json.loads((path / file).read_text())
            inside = said.get("config", said)
            del inside["threads"], inside["learner"]
            (path / file).write_text(json.dumps(said))
    (arm,) = read_arms(tmp_path)
    assert training_command(arm) == f"agent-gym train --config {name} --seeds 2"


def test_the_band_is_shown_whole(tmp_path):
    for seed, level in enumerate((-2_000.0, 240.0, 250.0, 260.0, 1_500.0)):
        write_run(tmp_path / "wide", seed, level=level, iterations=5, finals=5)
    arms = read_arms(tmp_path)
    (panel,) = learning_curves(arms).axes
    (band,) = panel.collections
    heights = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
    bottom, top = panel.get_ylim()
    assert bottom <= heights.min()
    assert heights.max() <= top


def test_tables_scroll_in_a_box_that_keys_can_reach(stored):
    html = seeds_table(read_arms(stored))
    assert html.count('<div class="wide" tabindex="0"') == html.count("<table>") == 1
