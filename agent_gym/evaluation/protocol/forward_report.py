"""What a walk forward says about each arm: intervals over days, differences, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import BUY_HOLD, CASH, Arm, label_of
from agent_gym.evaluation.protocol.account import Decided, Ledger
from agent_gym.evaluation.protocol.permutation import random_timing
from agent_gym.evaluation.protocol.pnl import Unit, bar_pnl, daily_means
from agent_gym.evaluation.protocol.report import ArmReport
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Trial
from agent_gym.evaluation.protocol.verdict import Evidence, family_level, judge
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.statistics import Interval, mean_interval, paired_interval, spa

UNIT: Unit = "growth"
REPS = 5_000  # the ends of an interval at a family level lie far out


class Daily(Protocol):
    """An arm and the days of its growth."""

    @property
    def arm(self) -> Arm: ...
    @property
    def net_days(self) -> FloatArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class Traded:
    """One arm after its run: the ledger and the days of its growth."""

    arm: Arm
    decided: Decided
    run: BacktestResults
    net_days: FloatArray
    gross_days: FloatArray

    @classmethod
    def of(cls, arm: Arm, decided: Decided, run: BacktestResults) -> Traded:
        pnl, ts = bar_pnl(run), run.bars.ts[1:]
        net, gross = (daily_means(ts, pnl.bars_bp(part, UNIT)) for part in ("net", "gross"))
        return cls(arm, decided, run, net, gross)


def report_on(
    each: Traded,
    trial: Trial,
    traded: Sequence[Traded],
    ledger: Ledger,
    standings: Standings,
    draws: int,
) -> ArmReport:
    """Return everything about one arm; an agent is judged, a baseline is not."""
    seeds = Seeds(ledger.seed).child("evaluate", each.arm.label)
    net = mean_interval(each.net_days, seeds.child("net"))
    versus = against(each, traded, seeds)
    verdict, p_random, unknown, draws_made = None, None, None, None
    if not each.arm.baseline:
        drawn = random_timing(ledger.tape, each.decided.targets, ledger.config, seeds, draws)
        p_random, unknown, draws_made = drawn.p_value, drawn.unknown, drawn.draws
        unseen = standings.unseen_growth(trial.id)
        evidence = Evidence(
            net=net, versus=versus, p_random=p_random, p_unknown=unknown, unseen=unseen
        )
        verdict = judge(standings, trial.id, evidence)
    return ArmReport(
        label=each.arm.label,
        baseline=each.arm.baseline,
        agent=trial.plan.agent,
        standing=standings.of(trial.id),
        net=net,
        gross=mean_interval(each.gross_days, seeds.child("gross")),
        verdict=verdict,
        p_random=p_random,
        p_unknown=unknown,
        random=draws_made,
        versus=versus,
        folds=tuple(_folds(each, ledger))
        if len(each.arm.refs) > 1 or not each.arm.baseline
        else (),
        lockbox_growth=standings.lockbox_growth(trial.id),
        run=each.run,
    )


def against(each: Daily, traded: Sequence[Daily], seeds: Seeds) -> dict[str, Interval]:
    """Return the difference of an agent to each baseline, at a level that holds for all of them."""
    beside = [other for other in traded if other.arm.baseline and not each.arm.baseline]
    level = family_level(len(beside))
    return {
        other.arm.label: paired_interval(
            each.net_days,
            other.net_days,
            seeds.child("versus", other.arm.label),
            level=level,
            reps=REPS,
        )
        for other in beside
    }


def superiority(traded: Sequence[Daily], seed: int) -> dict[str, dict[str, float]]:
    """Return the p-values of all agents together against each baseline that holds or sits out."""
    agents = [each for each in traded if not each.arm.baseline]
    found = {}
    for other in traded:
        if other.arm.label in (CASH, BUY_HOLD) and other.net_days.size > 2:
            seeds = Seeds(seed).child("evaluate", "spa", other.arm.label)
            losses = -np.column_stack([each.net_days for each in agents])
            tested = spa(-other.net_days, losses, seeds)
            found[other.arm.label] = {
                "lower": tested.lower,
                "consistent": tested.consistent,
                "upper": tested.upper,
            }
    return found


def _folds(each: Traded, ledger: Ledger) -> tuple[dict[str, Any], ...]:
    """Return the net of each fold, and what was chosen for it where there was a choice."""
    if each.arm.baseline and len(each.arm.refs) == 1:
        return ()
    bars_bp = bar_pnl(each.run).bars_bp("net", UNIT)
    first = ledger.folds[0].test.start
    found = []
    for fold, ref in zip(ledger.folds, each.decided.chosen, strict=True):
        rows = slice(fold.test.start - first, fold.test.stop - first)
        row: dict[str, Any] = {
            "first_ns": int(ledger.bars.ts[fold.test.start]),
            "net_bp_per_bar": float(bars_bp[rows].mean()),
        }
        if len(each.arm.refs) > 1:
            row["chosen"] = label_of(ref)
        found.append(row)
    return tuple(found)
