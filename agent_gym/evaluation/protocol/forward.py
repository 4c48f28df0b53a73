"""Walk-forward evaluation on one series: real data, or a synthetic one that stands in for it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Config
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.decisions import DecideJob, decided_of, decided_row
from agent_gym.evaluation.protocol.failures import (
    FailedArm,
    failure_of,
    placed,
    without_failed,
)
from agent_gym.evaluation.protocol.forward_report import (
    UNIT,
    Traded,
    report_on,
    superiority,
)
from agent_gym.evaluation.protocol.lockbox import LOCKBOX, Lockbox, Opening
from agent_gym.evaluation.protocol.permutation import DRAWS
from agent_gym.evaluation.protocol.pnl import trial_returns
from agent_gym.evaluation.protocol.report import Evaluation
from agent_gym.evaluation.protocol.setting import Setting, held_out, members, named, stretch
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, TrialPlan
from agent_gym.evaluation.results import BacktestResults
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import write_bars

NAME = "walk-forward"


class ForwardPlan(Config):
    """Segments, costs and what is held out."""

    walk: WalkForward
    config: BacktestConfig = BacktestConfig()
    lockbox: int = Field(default=0, ge=0, description="rows at the end that are held out")
    release: str | None = Field(default=None, description="open the lockbox for this release")
    who: str = Field(default="unknown", description="who opens it")
    seed: int = Field(default=0, ge=0)
    draws: int = Field(default=DRAWS, ge=1, description="random positions beside each arm")


def evaluate_forward(
    bars: Bars, arms: Sequence[Arm], plan: ForwardPlan, setting: Setting
) -> Evaluation:
    """Walk every arm over the bars before the lockbox, register the trials and judge the agents."""
    seen, box = held_out(bars, plan.lockbox, setting.registry)
    setting.registry.check()
    _check_release(plan, box)
    ledger = Ledger(bars.rows(0, seen), plan.walk, plan.config, plan.seed)
    asked = arms
    traded, failed = _trade(ledger, asked, plan, setting)
    arms = [each.arm for each in traded]
    protocol = {"name": NAME, **plan.walk.model_dump(by_alias=True), "lockbox": plan.lockbox}
    market = stretch(ledger.bars, ledger.first + 1, len(ledger.bars))
    outcomes = [_outcome(each.arm, each.run, market, protocol, plan) for each in traded]
    outcomes += _grid_outcomes(ledger, arms, market, protocol, plan)
    entries = setting.registry.register(outcomes)[: len(traded)]
    opening = None
    if plan.release is not None and box is not None:
        opening, late = _open(box, bars, [arm for arm in arms if not arm.baseline], plan, setting)
        failed += late
    judged = {arm.label for arm in without_failed(asked, failed)}
    standings = Standings(setting.registry)
    reports = [
        report_on(each, trial, traded, ledger, standings, plan.draws)
        for each, trial in zip(traded, entries, strict=True)
        if each.arm.label in judged
    ]
    config = {
        "arms": {arm.label: named(arm) for arm in asked},
        "backtest": plan.config.model_dump(mode="json"),
        "protocol": protocol,
    }
    return Evaluation(
        protocol=protocol | {"folds": len(ledger.folds)},
        market=market.as_dict() | {"bars": len(ledger.bars) - ledger.first - 1},
        unit=UNIT,
        arms=reports,
        manifest=describe(
            argv=list(setting.command),
            config=config,
            data=bars.describe(),
            seeds=(plan.seed,),
            commit=setting.commit,
        ),
        lockbox=None if box is None else box.facts(plan.lockbox),
        opening=opening,
        spa=superiority([each for each in traded if each.arm.label in judged], plan.seed),
        failed=tuple(failed),
    )


def _check_release(plan: ForwardPlan, box: Lockbox | None) -> None:
    if plan.release is None:
        return
    if box is None:
        raise ConfigError(
            "there is no lockbox to open", found="--lockbox 0", expected="rows that are held out"
        )
    box.refuse_again(plan.release)


def _trade(
    ledger: Ledger, arms: Sequence[Arm], plan: ForwardPlan, setting: Setting
) -> tuple[list[Traded], list[FailedArm]]:
    """Return the run of every arm that has one, in order, and the others."""
    if setting.jobs == 1:
        rows = []
        for number, arm in enumerate(arms, start=1):
            rows.append(decided_row(ledger, arm))
            if setting.done is not None:
                setting.done(number, len(arms))
    else:
        with tempfile.TemporaryDirectory(prefix="agent-gym-") as folder:
            file = Path(folder) / "bars.parquet"
            write_bars(file, ledger.bars)
            jobs = [
                DecideJob(
                    arm=arm, bars_file=file, walk=plan.walk, config=plan.config, seed=plan.seed
                )
                for arm in arms
            ]
            rows = setting.work(jobs, [arm.label for arm in arms])
    found, failed = {}, []
    for arm, row in zip(arms, rows, strict=True):
        error = failure_of(row)
        if error is None:
            found[arm.label] = decided_of(row)
        else:
            failed.append(FailedArm(arm.label, error))
    left = without_failed(arms, failed)
    runs = [(arm, found[arm.label]) for arm in left]
    return [Traded.of(arm, each, ledger.trade(arm.label, each)) for arm, each in runs], failed


def _outcome(
    arm: Arm, run: BacktestResults, market: Stretch, protocol: dict[str, Any], plan: ForwardPlan
) -> Outcome:
    returns, per_year = trial_returns(run)
    trial = TrialPlan(
        agent=named(arm),
        label=arm.label,
        market=market,
        protocol=protocol,
        costs=plan.config.model_dump(mode="json"),
        seeds=(plan.seed,),
    )
    return Outcome(trial, returns, per_year)


def _grid_outcomes(
    ledger: Ledger,
    arms: Sequence[Arm],
    market: Stretch,
    protocol: dict[str, Any],
    plan: ForwardPlan,
) -> list[Outcome]:
    """Return the configurations that training chose from: they were tried, so they count."""
    return [
        _outcome(arm, ledger.trade(arm.label, ledger.decide(arm)), market, protocol, plan)
        for arm in members(arms)
    ]


def _open(
    box: Lockbox, bars: Bars, agents: Sequence[Arm], plan: ForwardPlan, setting: Setting
) -> tuple[Opening, list[FailedArm]]:
    """Record the opening, then test the agents on what was held out; they learn from all before."""
    opening = box.open(str(plan.release), plan.who, tuple(arm.label for arm in agents))
    gap = plan.walk.gap
    walk = WalkForward(
        train=len(bars) - plan.lockbox - gap,
        test=plan.lockbox,
        purge=plan.walk.purge,
        embargo=plan.walk.embargo,
    )
    ledger = Ledger(bars, walk, plan.config, plan.seed)
    protocol = {"name": LOCKBOX, "release": plan.release, **walk.model_dump(by_alias=True)}
    runs, failed = [], []
    for arm in agents:
        try:
            runs.append((arm, ledger.trade(arm.label, ledger.decide(arm))))
        except AgentError as error:
            failed.append(FailedArm(arm.label, placed(error, "lockbox")))
    setting.registry.register([_outcome(arm, run, box.market, protocol, plan) for arm, run in runs])
    return opening, failed
