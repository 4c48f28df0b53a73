"""The runs that every result is shown beside: same bars, same ledger, costs and timing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_gym.core.registry import Ref
from agent_gym.core.types import Agent
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.figures import SHORT_FIGURES
from agent_gym.evaluation.results import BacktestResults
from agent_gym.markets.bars import Bars

BASELINES = (
    Ref(use="rules/flat"),
    Ref(use="rules/buy-hold"),
    Ref(use="rules/sma-cross"),
    Ref(use="rules/random"),
)
Done: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The run that was asked for and the baselines, by label, in the order of the table."""

    subject: str
    runs: Mapping[str, BacktestResults]

    @property
    def main(self) -> BacktestResults:
        """Return the run that was asked for."""
        return self.runs[self.subject]

    @property
    def baselines(self) -> dict[str, BacktestResults]:
        """Return the other runs by label."""
        return {label: run for label, run in self.runs.items() if label != self.subject}

    def payload(self) -> dict[str, Any]:
        """Return the run in full and the figures of the baselines as plain values."""
        beside = {
            label: {"equity_hash": run.equity_hash, "metrics": run.metrics.as_dict()}
            for label, run in self.baselines.items()
        }
        return self.main.payload() | {"label": self.subject, "baselines": beside}


def compare(
    engine: BacktestEngine,
    bars: Bars,
    agent: Agent | Ref,
    seed: int = 0,
    *,
    beside: Sequence[Ref] = BASELINES,
    done: Done | None = None,
) -> Comparison:
    """Run an agent and the baselines under one engine; a baseline that is the agent runs once."""
    subject = label_of(agent)
    wanted: dict[str, Agent | Ref] = {subject: agent}
    wanted |= {label_of(ref): ref for ref in beside if label_of(ref) != subject}
    runs = {}
    for label, who in wanted.items():
        runs[label] = engine.run(bars, who, seed)
        if done is not None:
            done(label)
    return Comparison(subject, runs)


def label_of(agent: Agent | Ref) -> str:
    """Return the name with the parameters that were set, as a table shows it.

    Example:
        >>> label_of(Ref(use="rules/sma-cross", params={"fast": 10}))
        'rules/sma-cross fast=10'
    """
    if not isinstance(agent, Ref):
        return agent.name
    return " ".join([agent.use, *(f"{name}={value}" for name, value in agent.params.items())])


def short_table(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and one row of text a run, for a terminal."""
    heads = ("agent", *(figure.heading for figure in SHORT_FIGURES))
    rows = [
        (label, *(figure.text(run.metrics) for figure in SHORT_FIGURES))
        for label, run in comparison.runs.items()
    ]
    return heads, rows
