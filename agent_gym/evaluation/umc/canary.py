"""Gate E: a planted leak sets off the alarms, none goes off without one, and time has a direction.

The leak is a column that holds the next bar's return, given to the agent as one of its inputs. The
prefix test must see that the world shows what it cannot know; the leak canary must see that the
agent trades on it. Both look at the same agent without the leak, too, and must be silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import Field
from scipy.stats import t as student
from typing_extensions import override

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Learner,
    Observation,
    Step,
    World,
)
from agent_gym.evaluation.audit.changed_bars import turned_round
from agent_gym.evaluation.audit.finding import Finding
from agent_gym.evaluation.audit.run import Check, audit, guarded
from agent_gym.evaluation.audit.stream import WithColumn
from agent_gym.evaluation.audit.subject import Subject, market_world, next_returns, teach
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.failures import failed_row, failure_of
from agent_gym.evaluation.protocol.pnl import BP, bar_pnl, daily_means
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.umc.bounds import BOUNDS
from agent_gym.evaluation.umc.courses import EMBARGO, PURGE
from agent_gym.evaluation.umc.figure import GateFigure, counted, failed
from agent_gym.evaluation.umc.plan import (
    AGENT,
    COST_BP,
    GatesPlan,
    Judged,
    Letter,
    agent_for,
    flat_costs,
)
from agent_gym.markets.bars import Bars
from agent_gym.markets.resample import resample
from agent_gym.markets.source import open_market
from agent_gym.rollouts.jobs import Job, files_named

LEAK = "next_return"
KNOWN = "_known"
CANARY_BARS = 600
CANARY_SEEDS = 20
REVERSAL = "E.time_reversal"
SYNTHETIC = "synthetic"
GENERATED = Ref(use=f"{SYNTHETIC}/btc-1h")
PREFIX, CANARY = "look-ahead", "leak-canary"
LIGHT = Ref(use=PREFIX, params={"cuts": 1, "series_cuts": 8})


class Taught:
    """An agent that has learned and learns no more; implements Agent."""

    def __init__(self, agent: Agent) -> None:
        self.name = agent.name
        self._agent = agent

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Ask the agent."""
        return self._agent.act(obs)

    def observe(self, step: Step) -> None:
        """Tell the agent."""
        self._agent.observe(step)


class CanaryJob(Job):
    """One path of a walk, with a leak planted and without."""

    agent: Ref
    seed: int = Field(ge=0)
    bars: int = Field(ge=100)

    @override
    def run(self) -> dict[str, Any]:
        """Return what each alarm said."""
        market = Ref(use="known/n1", params={"n_bars": self.bars})
        bars = open_market(market, Seeds(self.seed))
        row: dict[str, Any] = {"status": "ok", "seed": self.seed, "fingerprint": bars.fingerprint}
        row["without"] = self._alarms(self._honest(bars), (LIGHT, Ref(use=CANARY)))
        leaky = agent_for(self.agent, COST_BP, (LEAK,))
        if leaky == agent_for(self.agent, COST_BP):
            return row | {"with": {}}  # it takes no inputs, so nothing can be planted
        prefix = Subject.named(leaky, bars, world=leaky_world, seed=self.seed)
        row["with"] = self._alarms(prefix, (LIGHT,))
        # Not by way of an audit: its first episode is played in the world without the leak.
        canary = cast(Check, make("check", Ref(use=CANARY)))
        said = guarded(lambda: canary.run(self._canary(leaky, bars)))
        row["with"][CANARY] = _alarm(said)
        return row

    def _honest(self, bars: Bars) -> Subject:
        return Subject.named(agent_for(self.agent, COST_BP), bars, seed=self.seed)

    def _canary(self, leaky: Ref, bars: Bars) -> Subject:
        """Return a subject that has learned from the leak and is played beside it or noise."""

        def taught() -> Agent:
            agent = cast(Agent, make("agent", leaky))
            school = Subject(LEAK, bars, world=leaky_world, seed=self.seed)
            if isinstance(agent, Learner):
                teach(agent, school.watch(bars.rows(0, len(bars) // 2)))
            return Taught(agent)

        return Subject(LEAK, bars, taught, world=_flagged_world, seed=self.seed)

    def _alarms(self, subject: Subject, checks: Sequence[Ref]) -> dict[str, Any]:
        """Return whether each check found an error, and what it said."""
        return {check.name: _alarm(check.findings) for check in audit(subject, checks).checks}


def _alarm(findings: Sequence[Finding]) -> dict[str, Any]:
    wrong = [each for each in findings if each.severity == "error"]
    told = wrong or findings
    return {"fired": bool(wrong), "said": told[0].what if told else ""}


def leaky_world(bars: Bars) -> World:
    """Return the world of an audit with a column that holds the next return."""
    return WithColumn(_flagged_world(bars), LEAK, next_returns(bars))


def _flagged_world(bars: Bars) -> World:
    known = dict.fromkeys(next_returns(bars), 1.0)
    return WithColumn(market_world(bars), LEAK + KNOWN, known)


class ReversalJob(Job):
    """One path, forwards and backwards: learned on its first half, traded on its second."""

    agent: Ref
    market: Ref
    seed: int = Field(ge=0)
    period: str = "1h"

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the file of the market, if it is one."""
        return files_named("market", self.market)

    @override
    def run(self) -> dict[str, Any]:
        """Return the gain of each day, both ways."""
        bars = resample(open_market(self.market, Seeds(self.seed)), self.period)
        ways = {"forward": bars, "reverse": turned_round(bars)}
        row: dict[str, Any] = {"status": "ok", "data": bars.describe()}
        for name, own in ways.items():
            try:
                row[name] = self._days(own).tolist()
            except AgentError as error:
                return row | failed_row(error)
        return row

    def _days(self, bars: Bars) -> FloatArray:
        train = len(bars) // 2 - PURGE - EMBARGO
        test = len(bars) - train - PURGE - EMBARGO
        walk = WalkForward(train=train, test=test, purge=PURGE, embargo=EMBARGO)
        ledger = Ledger(bars, walk, flat_costs(COST_BP), self.seed)
        arm = Arm(label=AGENT, refs=(agent_for(self.agent, COST_BP),))
        pnl = bar_pnl(ledger.trade(arm.label, ledger.decide(arm)))
        return daily_means(ledger.tested.ts[1:], BP * pnl.net)


class Alarms:
    """Gate E."""

    letters: tuple[Letter, ...] = ("E",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return some paths with a planted leak, and one of real bars or else of generated ones."""
        jobs: dict[str, Job] = {
            f"canary, seed {seed}": CanaryJob(agent=plan.agent, seed=seed, bars=CANARY_BARS)
            for seed in plan.numbers()[:CANARY_SEEDS]
        }
        market = GENERATED
        if plan.data is not None:
            market = real_bars(plan.data)
        elif plan.bars is not None:
            market = Ref(use=GENERATED.use, params={"n_bars": plan.bars})
        jobs["time reversal"] = ReversalJob(agent=plan.agent, market=market, seed=plan.first_seed)
        return jobs

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Count the alarms, and ask whether time turned round pays."""
        *planted, turned = rows
        n = len(planted)
        fired = {
            "E.prefix_alarm": [_fired(row["with"], PREFIX) for row in planted],
            "E.canary_alarm": [_fired(row["with"], CANARY) for row in planted],
            "E.false_alarm": [
                any(_fired(row["without"], name) for name in row["without"]) for row in planted
            ],
        }
        figures: dict[str, GateFigure] = {
            name: counted(name, sum(seen), n) for name, seen in fired.items()
        }
        figures[REVERSAL] = reversal_figure(turned)
        return Judged(figures, {"canary": planted, "time_reversal": turned})


def real_bars(path: Path) -> Ref:
    """Return a file as a market; gaps stay, for turned round they are gaps again."""
    return Ref(use="file", params={"path": str(path), "repair": {"gaps": "keep"}})


def reversal_figure(row: dict[str, Any]) -> GateFigure:
    """Return how likely it is by chance to earn so much more when time runs backwards."""
    where = _bars_words(row["data"])
    error = failure_of(row)
    if error is not None:
        return failed(REVERSAL, 1, f"on {where}: {error}")
    ahead, behind = (np.array(row[way]) for way in ("forward", "reverse"))
    words = (
        f"on {where}: net {ahead.mean():.3f} bp a bar forwards, {behind.mean():.3f} backwards, "
        f"{ahead.size} and {behind.size} days, cost {COST_BP:g} bp"
    )
    p = more_likely_by_chance(behind, ahead)
    return GateFigure(p, None, None, BOUNDS[REVERSAL], 1, "none", words)


def _bars_words(data: Mapping[str, Any]) -> str:
    """Name the bars: the file, or that they were generated and are not real."""
    origin = str(data["origin"])
    return f"generated bars {origin}" if data["source"] == SYNTHETIC else origin


def more_likely_by_chance(first: FloatArray, second: FloatArray) -> float:
    """Return Welch's one-sided p of the mean of the first being above that of the second.

    Example:
        >>> more_likely_by_chance(np.zeros(9), np.zeros(9))
        1.0
    """
    parts = [row.var(ddof=1) / row.size for row in (first, second)]
    total = sum(parts)
    gap = float(first.mean() - second.mean())
    if not total > 0.0:
        return 0.0 if gap > 0.0 else 1.0
    freedom = total**2 / sum(
        part**2 / (row.size - 1) for part, row in zip(parts, (first, second), strict=True)
    )
    return float(student.sf(gap / np.sqrt(total), freedom))


def _fired(alarms: Mapping[str, Any], name: str) -> bool:
    return bool(alarms.get(name, {}).get("fired", False))
