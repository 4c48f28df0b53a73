"""Combinatorial purged cross-validation that plays: every choice of groups is learned and tested.

For each combination an agent learns (or is chosen from its grid) on the rows that lie far enough
from all tested groups, before and after them, and trades each tested group in an account of its
own. The accounts make up as many paths over the whole series as each row is tested. That shows how
much a result hangs on what was learned from; it is no record of what could have been earned, as
most paths learn from what came later.

One entry in the registry stands for an arm: the path in the middle by Sharpe ratio. Its figures,
its differences to the baselines' paths and its timing are judged by the rules of ``verdict``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from pydantic import Field

from agent_gym.core.manifest import describe
from agent_gym.core.registry import Config
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.combinatorial_report import Combined, report_on
from agent_gym.evaluation.protocol.decisions import decided_of
from agent_gym.evaluation.protocol.failures import FailedArm, failure_of, without_failed
from agent_gym.evaluation.protocol.forward_report import UNIT, superiority
from agent_gym.evaluation.protocol.paths import Path, Paths, Piece, places
from agent_gym.evaluation.protocol.permutation import DRAWS
from agent_gym.evaluation.protocol.pieces import Pieces, PiecesJob, is_fixed, pieces_row
from agent_gym.evaluation.protocol.pnl import bar_pnl
from agent_gym.evaluation.protocol.report import Evaluation
from agent_gym.evaluation.protocol.setting import Setting, held_out, members, named, stretch
from agent_gym.evaluation.protocol.splits import Combinatorial
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, TrialPlan
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import write_bars

NAME = "combinatorial"


class CombinatorialPlan(Config):
    """Groups, costs and what is held out."""

    split: Combinatorial = Combinatorial()
    config: BacktestConfig = BacktestConfig()
    lockbox: int = Field(default=0, ge=0, description="rows at the end that are held out")
    seed: int = Field(default=0, ge=0)
    draws: int = Field(default=DRAWS, ge=1, description="random positions beside each agent")


def evaluate_combinatorial(
    bars: Bars, arms: Sequence[Arm], plan: CombinatorialPlan, setting: Setting
) -> Evaluation:
    """Test every combination, put the paths together, register the trials, judge the agents."""
    seen, box = held_out(bars, plan.lockbox, setting.registry)
    setting.registry.check()
    pieces = Pieces(bars.rows(0, seen), plan.split, plan.config, plan.seed)
    pieces.check()
    asked = list(arms)
    tried = [*asked, *members(asked)]
    made = zip(tried, _rows(pieces, tried, plan, setting), strict=True)
    rows = {arm.model_dump_json(): own for arm, own in made}
    failed = _failed(asked, rows)
    arms = without_failed(asked, failed)
    found = [
        _combined(pieces, arm, rows[arm.model_dump_json()], plan) for arm in (*arms, *members(arms))
    ]
    protocol = {"name": NAME, **plan.split.model_dump(), "lockbox": plan.lockbox}
    market = stretch(pieces.bars, 1, len(pieces.bars))
    outcomes = [_outcome(each, market, protocol, plan) for each in found]
    entries = setting.registry.register(outcomes)
    standings = Standings(setting.registry)
    judged = found[: len(arms)]
    counts = {"combinations": len(pieces.choices), "paths": plan.split.paths}
    config = {
        "arms": {arm.label: named(arm) for arm in asked},
        "backtest": plan.config.model_dump(mode="json"),
        "protocol": protocol,
    }
    return Evaluation(
        protocol=protocol | counts,
        market=market.as_dict() | {"bars": len(pieces.bars) - 1},
        unit=UNIT,
        arms=[
            report_on(each, trial, judged, pieces, standings, plan.draws)
            for each, trial in zip(judged, entries, strict=False)
        ],
        manifest=describe(
            argv=list(setting.command),
            config=config,
            data=bars.describe(),
            seeds=(plan.seed,),
            commit=setting.commit,
        ),
        lockbox=None if box is None else box.facts(plan.lockbox),
        spa=superiority(judged, plan.seed),
        failed=tuple(failed),
    )


def _rows(
    pieces: Pieces, arms: Sequence[Arm], plan: CombinatorialPlan, setting: Setting
) -> list[list[dict[str, Any]]]:
    """Return what each arm decides under each combination; of fixed arms, on all groups at once."""
    numbers: list[list[int | None]] = [
        [None] if is_fixed(arm) else list(range(len(pieces.choices))) for arm in arms
    ]
    work = [(arm, n) for arm, own in zip(arms, numbers, strict=True) for n in own]
    if setting.jobs == 1:
        rows = []
        for done, (arm, number) in enumerate(work, start=1):
            rows.append(pieces_row(pieces, arm, number))
            if setting.done is not None:
                setting.done(done, len(work))
    else:
        with tempfile.TemporaryDirectory(prefix="agent-gym-") as folder:
            file = File(folder) / "bars.parquet"
            write_bars(file, pieces.bars)
            jobs = [
                PiecesJob(
                    arm=arm,
                    number=number,
                    bars_file=file,
                    split=plan.split,
                    config=plan.config,
                    seed=plan.seed,
                )
                for arm, number in work
            ]
            rows = setting.work(jobs, [arm.label for arm, _ in work])
    left = iter(rows)
    return [[next(left) for _ in own] for own in numbers]


def _failed(asked: Sequence[Arm], rows: Mapping[str, Sequence[dict[str, Any]]]) -> list[FailedArm]:
    """Return the arms that failed, or a configuration that they choose from; first errors only."""
    found = []
    for arm in asked:
        told = [row for each in (arm, *members([arm])) for row in rows[each.model_dump_json()]]
        errors = [error for error in map(failure_of, told) if error is not None]
        if errors:
            found.append(FailedArm(arm.label, errors[0]))
    return found


def _combined(
    pieces: Pieces, arm: Arm, rows: Sequence[dict[str, Any]], plan: CombinatorialPlan
) -> Combined:
    """Trade what was decided and put the accounts together to paths."""
    decided = [[decided_of(each) for each in row["pieces"]] for row in rows]
    groups = len(pieces.spans)
    wanted = places(pieces.choices, groups)
    if is_fixed(arm):
        wanted = [[(0, group) for group in range(groups)]]
    paths = []
    for path in wanted:
        own = []
        for group, (at, place) in enumerate(path):
            made = decided[at][place]
            run = pieces.ledger(group).trade(arm.label, made)
            own.append(Piece(bar_pnl(run), made.targets))
        paths.append(Path(pieces.bars, tuple(own)))
    chosen = [row[0].chosen[0] for row in decided]
    return Combined.of(arm, Paths(tuple(paths), plan.split.paths), chosen)


def _outcome(
    each: Combined, market: Stretch, protocol: dict[str, Any], plan: CombinatorialPlan
) -> Outcome:
    returns, per_year = each.path.returns
    trial = TrialPlan(
        agent=named(each.arm),
        label=each.arm.label,
        market=market,
        protocol=protocol,
        costs=plan.config.model_dump(mode="json"),
        seeds=(plan.seed,),
    )
    return Outcome(trial, returns, per_year)
