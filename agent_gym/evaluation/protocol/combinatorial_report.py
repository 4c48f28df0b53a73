"""What combinatorial cross-validation says about each arm: all paths, and the middle one judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import Arm, label_of
from agent_gym.evaluation.protocol.forward_report import UNIT, against
from agent_gym.evaluation.protocol.paths import Path, Paths
from agent_gym.evaluation.protocol.permutation import random_timing
from agent_gym.evaluation.protocol.pieces import Pieces
from agent_gym.evaluation.protocol.pnl import daily_means
from agent_gym.evaluation.protocol.report import ArmReport
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Trial
from agent_gym.evaluation.protocol.verdict import Evidence, judge
from agent_gym.evaluation.statistics import mean_interval
from agent_gym.exchange.tape import Tape


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """One arm after all combinations: its paths, and the days of the one in the middle."""

    arm: Arm
    paths: Paths
    chosen: Sequence[Ref]
    net_days: FloatArray
    gross_days: FloatArray

    @classmethod
    def of(cls, arm: Arm, paths: Paths, chosen: Sequence[Ref]) -> Combined:
        path = paths.paths[paths.middle]
        ts = path.bars.ts[1:]
        net, gross = (daily_means(ts, path.pnl.bars_bp(part, UNIT)) for part in ("net", "gross"))
        return cls(arm, paths, chosen, net, gross)

    @property
    def path(self) -> Path:
        """Return the path in the middle."""
        return self.paths.paths[self.paths.middle]


def report_on(
    each: Combined,
    trial: Trial,
    judged: Sequence[Combined],
    pieces: Pieces,
    standings: Standings,
    draws: int,
) -> ArmReport:
    """Return everything about one arm; an agent is judged by its middle path, a baseline is not."""
    seeds = Seeds(pieces.seed).child("evaluate", each.arm.label)
    net = mean_interval(each.net_days, seeds.child("net"))
    versus = against(each, judged, seeds)
    verdict, p_random, unknown, draws_made = None, None, None, None
    if not each.arm.baseline:
        # Turned over the whole series in one account: a stretch is too short for turns of its own.
        tape = Tape.of(pieces.bars, pieces.config.costs())
        drawn = random_timing(tape, each.path.targets, pieces.config, seeds, draws)
        p_random, unknown, draws_made = drawn.p_value, drawn.unknown, drawn.draws
        evidence = Evidence(
            net=net,
            versus=versus,
            p_random=p_random,
            p_unknown=unknown,
            unseen=standings.unseen_growth(trial.id),
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
        folds=_choices(each, pieces),
        lockbox_growth=standings.lockbox_growth(trial.id),
        paths=each.paths,
    )


def _choices(each: Combined, pieces: Pieces) -> tuple[dict[str, Any], ...]:
    """Return what was chosen under each combination, where there was a choice."""
    if len(each.arm.refs) == 1:
        return ()
    return tuple(
        {"tested": [group + 1 for group in groups], "chosen": label_of(ref)}
        for groups, ref in zip(pieces.choices, each.chosen, strict=True)
    )
