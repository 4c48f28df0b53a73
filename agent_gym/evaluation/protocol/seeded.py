"""Evaluation over seeds: the market is drawn anew for each, so chance can be counted out.

On a known market the optimum trades the same paths under the same costs; the share of it that an
agent takes is paired seed by seed. On a null there is nothing to take, and gates ask whether an
agent knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from agent_gym.core.manifest import describe, fingerprint
from agent_gym.core.registry import Config, Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import Arm, label_of
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.oracle import attainable
from agent_gym.evaluation.protocol.failures import FailedArm, failure_of, without_failed
from agent_gym.evaluation.protocol.nulls import Gate, NullRuns, gate_a, gate_b, lucky_seeds
from agent_gym.evaluation.protocol.permutation import DRAWS, RandomTiming, together
from agent_gym.evaluation.protocol.report import ArmReport, Evaluation
from agent_gym.evaluation.protocol.seed_job import UNIT, SeedJob, is_known, is_null
from agent_gym.evaluation.protocol.setting import Setting, members, named
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, Trial, TrialPlan
from agent_gym.evaluation.protocol.verdict import Evidence, family_level, judge
from agent_gym.evaluation.statistics import Interval, bootstrap_interval, seeds_interval

NAME = "seeds"
SHARE_REPS = 5_000


class SeededPlan(Config):
    """The market, how often it is drawn, and what trading costs there."""

    market: Ref
    seeds: int = Field(default=20, ge=2, description="how often the market is drawn")
    first_seed: int = Field(default=0, ge=0)
    train: int | None = Field(default=None, ge=1, description="rows to learn from; null: half")
    purge: int = Field(default=6, ge=0)
    embargo: int = Field(default=168, ge=0)
    config: BacktestConfig = BacktestConfig()
    draws: int = Field(default=DRAWS, ge=1, description="random positions beside each agent")

    @property
    def cost_bp(self) -> float:
        """Return what a trade costs one way, of its value, without impact."""
        costs = self.config.costs()
        return costs.taker_bps + costs.slippage_bps + costs.half_spread_bps


def evaluate_seeded(arms: Sequence[Arm], plan: SeededPlan, setting: Setting) -> Evaluation:
    """Draw the market for each seed, trade every arm, register the trials and judge the agents."""
    numbers = tuple(range(plan.first_seed, plan.first_seed + plan.seeds))
    jobs = [_job(arms, plan, seed) for seed in numbers]
    setting.registry.check()
    rows = setting.work(jobs, [f"seed {seed}" for seed in numbers])
    asked, failed = arms, _failed(arms, rows)
    arms = without_failed(asked, failed)
    protocol = {"name": NAME, **plan.model_dump(mode="json", exclude={"config", "market"})}
    market = _stretch(plan, rows)
    outcomes = [
        _outcome(arm, rows, market, protocol, plan, numbers) for arm in (*arms, *members(arms))
    ]
    entries = setting.registry.register(outcomes)[: len(arms)]
    standings = Standings(setting.registry)
    reports = [
        _report(arm, trial, arms, rows, standings, plan)
        for arm, trial in zip(arms, entries, strict=True)
    ]
    config = {
        "arms": {arm.label: named(arm) for arm in asked},
        "backtest": plan.config.model_dump(mode="json"),
        "market": plan.market.model_dump(mode="json"),
        "protocol": protocol,
    }
    return Evaluation(
        protocol=protocol,
        market=market.as_dict() | {"bars": rows[0]["bars"]},
        unit=UNIT,
        arms=reports,
        manifest=describe(
            argv=list(setting.command),
            config=config,
            data=market.as_dict(),
            seeds=numbers,
            commit=setting.commit,
        ),
        attainable=_attainable(plan, rows),
        failed=tuple(failed),
    )


def _job(arms: Sequence[Arm], plan: SeededPlan, seed: int) -> SeedJob:
    return SeedJob(
        market=plan.market,
        seed=seed,
        arms=tuple(arms),
        members=tuple(members(arms)),
        train=plan.train,
        purge=plan.purge,
        embargo=plan.embargo,
        config=plan.config,
        cost_bp=plan.cost_bp,
        draws=plan.draws,
    )


def _failed(arms: Sequence[Arm], rows: Sequence[dict[str, Any]]) -> list[FailedArm]:
    """Return the arms that failed on some seed, with the first error of each."""
    found = {}
    for arm in arms:
        for row in rows:
            error = failure_of(row["arms"][arm.label])
            if error is not None and arm.label not in found:
                found[arm.label] = FailedArm(arm.label, error)
    return list(found.values())


def _stretch(plan: SeededPlan, rows: Sequence[dict[str, Any]]) -> Stretch:
    return Stretch(
        name=label_of(plan.market),
        kind=rows[0]["kind"],
        period_ns=rows[0]["period_ns"],
        fingerprint=fingerprint([row["fingerprint"] for row in rows]),
        first_ns=rows[0]["first_ns"],
        last_ns=rows[0]["last_ns"],
    )


def _outcome(
    arm: Arm,
    rows: Sequence[dict[str, Any]],
    market: Stretch,
    protocol: dict[str, Any],
    plan: SeededPlan,
    numbers: tuple[int, ...],
) -> Outcome:
    """Return the trial of an arm: the returns of all seeds, one after the other."""
    own = [row["arms"][arm.label] for row in rows]
    for each in own:  # a configuration of a grid that training could choose from
        error = failure_of(each)
        if error is not None:
            raise error
    returns = np.concatenate([each["returns"] for each in own])
    trial = TrialPlan(
        agent=named(arm),
        label=arm.label,
        market=market,
        protocol=protocol,
        costs=plan.config.model_dump(mode="json"),
        seeds=numbers,
    )
    return Outcome(trial, returns, own[0]["per_year"])


def _report(
    arm: Arm,
    trial: Trial,
    arms: Sequence[Arm],
    rows: Sequence[dict[str, Any]],
    standings: Standings,
    plan: SeededPlan,
) -> ArmReport:
    seeds = Seeds(plan.first_seed).child("evaluate", trial.id)
    own = [row["arms"][arm.label] for row in rows]
    net, gross = (np.array([each[name] for each in own]) for name in ("net_bp", "gross_bp"))
    interval = seeds_interval(net, seeds.child("net"))
    beside = [other.label for other in arms if other.baseline and not arm.baseline]
    versus = {
        label: seeds_interval(
            net - np.array([row["arms"][label]["net_bp"] for row in rows]),
            seeds.child("versus", label),
            level=family_level(len(beside)),
        )
        for label in beside
    }
    verdict, p_random, unknown, draws_made = None, None, None, None
    if not arm.baseline:
        timing = _random_timing(own)
        p_random, unknown, draws_made = timing.p_value, timing.unknown, timing.draws
        evidence = Evidence(
            net=interval,
            versus=versus,
            p_random=p_random,
            p_unknown=unknown,
            unseen=interval.low,
            unseen_words="low end of the interval over seeds",
            nothing_to_find=is_null(plan.market),
        )
        verdict = judge(standings, trial.id, evidence)
    runs = _null_runs(own, rows)
    gates: tuple[Gate, ...] = ()
    if is_null(plan.market):
        level = family_level(len(arms))
        gates = gate_a(runs, seeds.child("gate"), level), gate_b(runs, learns=own[0]["learns"])
    return ArmReport(
        label=arm.label,
        baseline=arm.baseline,
        agent=trial.plan.agent,
        standing=standings.of(trial.id),
        net=interval,
        gross=seeds_interval(gross, seeds.child("gross")),
        verdict=verdict,
        p_random=p_random,
        p_unknown=unknown,
        random=draws_made,
        versus=versus,
        share=_share(net, rows, seeds),
        lucky=lucky_seeds(runs.psr),
        gates=gates,
    )


def _null_runs(own: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> NullRuns:
    def column(name: str) -> FloatArray:
        return np.array([each[name] for each in own])

    return NullRuns(
        gross_bp=column("gross_bp"),
        net_bp=column("net_bp"),
        exposure=column("exposure"),
        market_bp=np.array([row["market_bp"] for row in rows]),
        psr=[each["psr"] for each in own],
    )


def _random_timing(own: Sequence[dict[str, Any]]) -> RandomTiming:
    """Return the growth over all seeds together, of the agent and of each draw."""
    return together([RandomTiming.of(each["timing"]) for each in own])


def _share(net: FloatArray, rows: Sequence[dict[str, Any]], seeds: Seeds) -> Interval | None:
    """Return the share of what the optimum took on the same paths; None if that was nothing."""
    if rows[0]["optimum"] is None:
        return None
    best = np.array([row["optimum"]["net_bp"] for row in rows])
    if not best.mean() > 0.0:
        return None
    return bootstrap_interval(
        lambda taken, there: float(taken.mean() / there.mean()),
        [net, best],
        seeds.child("share"),
        reps=SHARE_REPS,
        block=1.0,
    )


def _attainable(plan: SeededPlan, rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if not is_known(plan.market):
        return None
    known = attainable(plan.market, plan.cost_bp, allow_short=rows[0]["may_short"])
    taken = [row["optimum"]["net_bp"] for row in rows]
    return {
        "bp_per_bar": known.attainable_bp_per_bar,
        "sharpe": known.sharpe,
        "turnover_per_bar": known.turnover_per_bar,
        "on_same_paths_bp_per_bar": float(np.mean(taken)),
        "cost_bp": plan.cost_bp,
    }


def with_first_path(
    evaluation: Evaluation, arms: Sequence[Arm], plan: SeededPlan
) -> tuple[Evaluation, Mapping[str, FloatArray] | None]:
    """Return the evaluation with the ledgers of its first seed, for pictures, and its truth."""
    job = _job(arms, plan, plan.first_seed)
    drawn, bars = job.drawn()
    ledger = job.ledger(bars)
    reports = [
        replace(report, run=ledger.trade(arm.label, ledger.decide(arm)))
        for report in evaluation.arms
        for arm in arms
        if arm.label == report.label
    ]
    truth = None
    if drawn is not None:
        truth = {name: column[ledger.first :] for name, column in drawn.truth.items()}
    return replace(evaluation, arms=reports), truth
