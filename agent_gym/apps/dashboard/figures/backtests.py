"""Saved backtests and sessions: figures of a run and its baselines, and the charts kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_gym.apps.api.service import Service
from agent_gym.evaluation.figures import FIGURES, Figure
from agent_gym.evaluation.saved import (
    SavedBacktest,
    last_fills,
    last_positions,
    read_backtest,
    saved_backtests,
)

FILLS = 50


@dataclass(frozen=True, slots=True)
class BacktestFigures:
    """One backtest.

    Attributes:
        saved: What lies in its folder.
        arms: Figures of the agent and of what stood beside it, by label.
        shown: The figures of the table.
        fills: The last fills, newest first.
        last: Equity, position and cash at the last close.
    """

    saved: SavedBacktest
    arms: dict[str, dict[str, Any]]
    shown: tuple[Figure, ...]
    fills: list[dict[str, Any]]
    last: dict[str, Any]


def backtest_list(service: Service) -> tuple[SavedBacktest, ...]:
    """Return the backtests in the folder that is served."""
    return saved_backtests(service.folder.path)


def backtest_figures(service: Service, name: str) -> BacktestFigures:
    """Return one backtest by its name in the list."""
    folder = service.folder.path
    saved = read_backtest(folder, name)
    results = saved.results
    arms = {str(results.get("label", results["agent"])): results["metrics"]}
    arms |= {label: beside["metrics"] for label, beside in results.get("baselines", {}).items()}
    shown = tuple(
        figure
        for figure in FIGURES
        if any(metrics.get(figure.name) is not None for metrics in arms.values())
    )
    return BacktestFigures(
        saved=saved,
        arms=arms,
        shown=shown,
        fills=last_fills(folder, name, FILLS).to_dicts(),
        last=last_positions(folder, name).to_dicts()[0],
    )
