"""The table of the lander: right rows in the right order, honest about what is missing."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli.results import app
from agent_gym.core.errors import DataError
from agent_gym.reporting.rl.published import published
from agent_gym.reporting.rl.results import results_page, results_table
from agent_gym.reporting.rl.writing import write_lander_results
from agent_gym.training.rl.config import TrainerConfig, read_trainer_config
from agent_gym.training.rl.experiment_config import shipped_config
from tests.reporting.run_samples import write_arm, write_run

CONFIGS = {
    "td3": TrainerConfig(algo="td3", env="LunarLanderContinuous-v3", steps=300_000),
    "sac": TrainerConfig(algo="sac", env="LunarLanderContinuous-v3", steps=300_000),
    "a2c": TrainerConfig(algo="a2c", steps=200_000, normalize={"observations": True}),
    "ppo_1m": TrainerConfig(algo="ppo", steps=1_000_000, agent={"gamma": 0.999}),
    "ppo": TrainerConfig(algo="ppo", steps=250_000, agent={"gamma": 0.999}),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored")
    for name, config in CONFIGS.items():
        write_arm(folder / name, 5, 250.0, config=config, iterations=30)
    write_run(folder / "cart", 1, config=TrainerConfig(env="CartPole-v1"))
    return folder


def test_a_row_for_each_config_of_the_lander(stored):
    rows = results_table([stored])
    assert [(row["algo"], row["steps"]) for row in rows] == [
        ("ppo", 250_000),
        ("ppo", 1_000_000),
        ("a2c", 200_000),
        ("sac", 300_000),
        ("td3", 300_000),
    ]
    for row in rows:
        assert {"algo", "env", "steps", "seeds", "iqm", "low", "high"} <= set(row)
        assert row["seeds"] == len(row["per_seed"]) == 5
        assert row["low"] < row["iqm"] < row["high"]
        assert row["episodes"] == 100
    assert [row["published"]["mean"] for row in rows] == [242.1, 242.1, 155.8, 260.4, 207.5]
    assert rows == json.loads(json.dumps(rows))


def test_seeds_that_failed_and_steps_that_were_taken_are_told(tmp_path):
    write_arm(tmp_path / "a", 4, 250.0, iterations=30)
    write_run(tmp_path / "a", 5, level=-15.0, iterations=30)
    (row,) = results_table([tmp_path])
    text = results_page([row], "x")
    assert "did not come to 200" in text
    assert f"seed 5 with {row['per_seed'][4]['mean']:.1f}" in text
    assert "seed 4 with" not in text
    taken = row | {"steps": 250_000, "steps_taken": 251_904}
    assert "| 250k (251,904 taken) |" in results_page([taken], "x")


def test_every_final_episode_lies_beside_the_table(stored, tmp_path):
    rows = write_lander_results([stored], tmp_path, "x")
    lines = (tmp_path / "lunar_lander_episodes.csv").read_text().splitlines()
    assert lines[0] == "run,training_seed,episode_seed,reward,length"
    assert len(lines) == 1 + sum(row["seeds"] * row["episodes"] for row in rows)


def test_continuous_games_have_their_own_figures():
    assert published("ppo", "LunarLanderContinuous-v3").mean == 270.9
    assert published("ppo", "LunarLander-v3", continuous=True).mean == 270.9
    assert published("ppo", "Ant-v5") is None


def test_missing_seeds_are_told_and_one_seed_has_no_interval(tmp_path):
    write_run(tmp_path / "a", 1)
    write_run(tmp_path / "a", 2, status="interrupted")
    write_run(tmp_path / "b", 1, status="error")
    (row,) = results_table([tmp_path])
    assert (row["seeds"], row["low"], row["high"]) == (1, None, None)
    assert row["missing"] == [{"seed": 2, "status": "interrupted"}]
    page = results_page([row], "agent-gym results lander")
    assert "1 seed; not counted: 2 (interrupted)" in page


def test_a_run_counts_once(stored):
    with pytest.raises(DataError, match="given twice"):
        results_table([stored, stored / "ppo"])


def test_other_games_are_no_landers(stored):
    with pytest.raises(DataError, match="no run of the lunar lander"):
        results_table([stored / "cart"])


def test_the_command_writes_table_page_and_picture(stored, tmp_path):
    words = ["lander", "--from", str(stored), "--out", str(tmp_path / "docs"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "docs/lunar_lander.json").read_text())
    assert json.loads(done.stdout)["rows"] == rows == results_table([stored])
    page = (tmp_path / "docs/lunar_lander.md").read_text()
    for row in rows:
        assert f"**{row['iqm']:.1f}**" in page
    assert "242.1 at 1M" in page
    assert "`gamma: 0.999`" in page
    assert "`normalize.observations: True`" in page
    assert "](lunar_lander.svg)" in page
    assert (tmp_path / "docs/lunar_lander.svg").read_bytes().startswith(b"<?xml")
    first = {path.name: path.read_bytes() for path in (tmp_path / "docs").iterdir()}
    assert CliRunner().invoke(app, words).exit_code == 0
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "docs").iterdir()}


def test_every_line_of_the_table_has_as_many_cells(stored):
    lines = [
        line for line in results_page(results_table([stored]), "x").splitlines() if "|" in line
    ]
    assert {line.count("|") for line in lines} == {11, 3}


def test_a_shipped_config_is_called_by_its_name(tmp_path):
    config = read_trainer_config(shipped_config("lander-ppo"))
    write_arm(tmp_path / "mine", 2, config=config, iterations=5)
    write_run(tmp_path / "other", 0, config=config.model_copy(update={"n_envs": 8}))
    rows = results_table([tmp_path])
    assert [row["command"].split("--config ")[1] for row in rows] == [
        "lander-ppo --name mine --seeds 5 --seed 1",
        "lander-ppo --set n_envs=8 --name other --seeds 5",
    ]


def test_nothing_is_written_where_nothing_is_finished(tmp_path):
    write_run(tmp_path / "runs", 1, status="error")
    words = ["lander", "--from", str(tmp_path / "runs"), "--out", str(tmp_path / "docs")]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, DataError)
    assert not (tmp_path / "docs").exists()


def test_the_page_command_writes_a_page(stored, tmp_path):
    words = ["page", str(stored / "ppo"), "--out", str(tmp_path), "--no-videos", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["videos"] == []
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
