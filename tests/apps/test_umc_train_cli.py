"""``agent-gym umc train`` as a command: what it writes, says, refuses and goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from agent_gym.apps.cli.umc_train import train
from agent_gym.apps.cli.umc_train_view import fit_words, shown_training
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.umc_walk import open_run
from agent_gym.markets.parquet import write_bars
from agent_gym.training.umc import TrainEvent
from agent_gym.training.umc.records import FitEvent
from tests.samples import random_bars

app = typer.Typer()
app.command()(train)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "walk.parquet"
    write_bars(path, random_bars(700, 5, kind="spot"))
    return path


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def said(*words: object) -> dict[str, Any]:
    result = call(*words, "--json")
    assert result.exit_code == 0, result.exception
    payload: dict[str, Any] = json.loads(result.stdout)
    return payload


def test_one_agent_learns_from_all_bars(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    payload = said("--data", data, "--out", out, "--tiers", "exact", "--seed", 2)
    assert payload["verdict"] is None
    assert (out / "agent" / "weights.safetensors").exists()
    assert [row["folder"] for row in payload["folds"]] == ["agent"]
    assert payload["manifest"]["seeds"] == [2]
    assert "--tiers exact" in payload["manifest"]["command"]
    kept = json.loads((out / "training.json").read_text())
    assert kept["folds"] == payload["folds"]


def test_a_walk_is_trained_judged_and_can_be_explained(tmp_path: Path, data: Path) -> None:
    out, trials = tmp_path / "out", tmp_path / "trials.jsonl"
    walk = ("--walk", "--train", "15d", "--test", "5d", "--lockbox", "2d", "--draws", 20)
    words = ("--data", data, "--out", out, *walk, "--embargo", 24, "--registry", trials)
    payload = said(*words, "--tiers", "exact", "--echo-size", 0)
    assert len(payload["folds"]) == len(payload["verdict"]["folds"]) > 1
    assert payload["verdict"]["agent"]["use"] == "umc"
    assert trials.exists()
    run = open_run(out / "walk")
    assert len(run.bars) == 700 - 48
    shown = call(*words, "--tiers", "exact", "--echo-size", 0)
    assert shown.exit_code == 0
    assert "umc/exact" in shown.stdout


def test_another_training_goes_there_only_anew(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "out"
    words = ("--data", data, "--out", out, "--tiers", "exact")
    said(*words)
    refused = call(*words, "--seed", 1)
    assert isinstance(refused.exception, ConfigError)
    assert "--no-resume" in str(refused.exception)
    assert said(*words, "--seed", 1, "--no-resume")["manifest"]["seeds"] == [1]


@pytest.mark.parametrize(
    "words", [("--test", "5d"), ("--echo-size", 0), ("--registry", "trials.jsonl")]
)
def test_options_of_a_walk_are_refused_without_one(data: Path, words: tuple[str, ...]) -> None:
    refused = call("--data", data, *words)
    assert isinstance(refused.exception, ConfigError)
    assert refused.exception.found == words[0]


def test_who_stops_it_is_told_how_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = FitEvent("fit/0/umc/actor", 5, 10, 0.25, done=False)

    def stopped() -> None:
        with shown_training(tmp_path) as tell:
            tell(TrainEvent(1, 2))
            tell(TrainEvent(1, 2, fit))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "the same command goes on from there" in capsys.readouterr().err
    assert fit_words("fit/3/umc/model/umc/recurrent") == "recurrent"


def test_a_folder_with_other_files_is_refused(tmp_path: Path, data: Path) -> None:
    refused = call("--data", data, "--out", tmp_path).exception
    assert isinstance(refused, ConfigError)
    assert refused.where == str(tmp_path)
    assert refused.found == data.name
    assert "run.json" in str(refused.expected)
