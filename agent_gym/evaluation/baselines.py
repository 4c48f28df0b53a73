"""The runs that every result is shown beside: same bars, same ledger, costs and timing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config, Ref
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

GRID_FAST, GRID_SLOW = (6, 12, 24, 48), (72, 120, 240, 480)
CASH, BUY_HOLD, BEST_SMA = "cash", "buy & hold", "best SMA on train"


class Arm(Config):
    """One thing that is tested: an agent, or several configurations of which training picks one."""

    label: str
    refs: tuple[Ref, ...] = Field(min_length=1)
    baseline: bool = False


def reference_arms(*, allow_short: bool) -> tuple[Arm, ...]:
    """Return the rules that every agent is measured against, on both sides where that is allowed.

    Random positions with the same turnover belong to an agent; see ``protocol.permutation``.
    """
    sides: dict[str, Any] = {"allow_short": True} if allow_short else {}
    crossing = {"fast": 24, "slow": 120}
    fixed = {
        CASH: Ref(use="rules/flat"),
        BUY_HOLD: Ref(use="rules/buy-hold"),
        "volatility target": Ref(use="rules/vol-target"),
        "SMA(24,120)": Ref(use="rules/sma-cross", params=crossing | sides),
        "momentum 168": Ref(use="rules/momentum", params={"lookback": 168} | sides),
        "z-score reversion": Ref(use="rules/mean-reversion", params=sides),
    }
    grid = tuple(
        Ref(use="rules/sma-cross", params={"fast": fast, "slow": slow} | sides)
        for fast in GRID_FAST
        for slow in GRID_SLOW
    )
    arms = [Arm(label=label, refs=(ref,), baseline=True) for label, ref in fixed.items()]
    return (*arms, Arm(label=BEST_SMA, refs=grid, baseline=True))


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
