"""``--executor`` and ``--address`` on the command line."""

import inspect
import os
from importlib import import_module

import pytest

from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.main import run
from agent_gym.rollouts.choice import chosen

COMMANDS = (
    ("benchmark", "run"),
    ("evaluate", "evaluate"),
    ("experiment", "run"),
    ("experiment", "search"),
    ("gate", "faults"),
    ("gate", "same_code"),
    ("harness", "harness"),
    ("marl_ablation", "ablation"),
    ("marl_compare", "compare"),
    ("marl_diagnose", "diagnose"),
    ("marl_train", "train"),
    ("nightly", "nightly"),
    ("run", "run"),
    ("train", "train"),
    ("umc_ablation", "ablation"),
    ("umc_backtest", "backtest"),
    ("umc_gates", "gates"),
)


@pytest.mark.parametrize(("module", "name"), COMMANDS)
def test_commands_whose_work_is_done_in_jobs_say_where(module, name):
    command = getattr(import_module(f"agent_gym.apps.cli.{module}"), name)
    assert {"executor", "address"} <= set(inspect.signature(command).parameters)


@pytest.mark.parametrize("words", [["--executor", "dask"], ["--address", "head:6379"]])
def test_a_wrong_choice_is_refused_before_anything_is_played(words, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    monkeypatch.delenv("AGENT_GYM_EXECUTOR", raising=False)
    assert run(["run", *words], as_json=False) == 2
    assert "executor" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_choice_holds_while_the_command_runs(monkeypatch):
    monkeypatch.delenv("AGENT_GYM_EXECUTOR", raising=False)
    seen = []

    @on_executor
    def command(word: str) -> None:
        seen.append((word, chosen(), os.environ.get("AGENT_GYM_ADDRESS")))

    command(word="a", executor="ray", address="head:6379")
    command(word="b")
    assert seen == [("a", "ray", "head:6379"), ("b", "local", None)]
