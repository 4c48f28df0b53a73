"""What tests of commands share: a call in this process, a market file, a market by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agent_gym.apps.cli.main import main
from agent_gym.core import registry
from agent_gym.core.registry import Config, Entry
from agent_gym.core.seeds import Seeds
from agent_gym.markets import Bars
from agent_gym.markets.parquet import write_bars
from tests.samples import random_bars

Call = Callable[..., tuple[int, str, str]]
RULES = (
    "baselines",
    "breakout",
    "mean_reversion",
    "momentum",
    "rsi",
    "sma_cross",
    "vol_target",
)
for rule in RULES:
    import_module(f"agent_gym.agents.rules.{rule}")


class WalkConfig(Config):
    """How long the walk is."""

    n_bars: int = 300


class Walk:
    """A market by name: a random walk of the seed."""

    def __init__(self, config: WalkConfig) -> None:
        self._config = config

    def bars(self, seeds: Seeds) -> Bars:
        return random_bars(self._config.n_bars, seeds.root, kind="spot")


def name_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the walk known as ``test/walk`` for one test."""
    monkeypatch.setitem(registry._entries, ("market", "test/walk"), Entry(WalkConfig, Walk))


def make_call(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Return a function that runs a command and returns exit code, stdout and stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["agent-gym", command, *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = capsys.readouterr()
        code: Any = stop.value.code
        return int(code or 0), seen.out, seen.err

    return call


def bars_file(folder: Path, n: int = 300, **choices: Any) -> Path:
    """Write a file of our own format and return its path."""
    path = folder / "walk.parquet"
    write_bars(path, random_bars(n, **choices))
    return path
