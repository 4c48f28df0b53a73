"""The whole walk: evaluated, traced, and beside it the crowd, the leakage and the break-even."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.agents.echo import EchoConfig
from agent_gym.core.registry import Config, Ref
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.leakage import LeakageReport
from agent_gym.evaluation.leakage.umc import UmcLeakageConfig, umc_leakage
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.forward import ForwardPlan, evaluate_forward
from agent_gym.evaluation.protocol.report import ArmReport, Evaluation
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.umc_walk.break_even import BreakEven, break_even
from agent_gym.evaluation.umc_walk.echoes import EchoRecord, follow_echoes
from agent_gym.evaluation.umc_walk.folds import FoldAgent, fold_agents
from agent_gym.evaluation.umc_walk.lambda_path import LambdaPath
from agent_gym.evaluation.umc_walk.trace import WalkTrace, trace_of
from agent_gym.markets.bars import Bars

LABEL = "umc"
SCHEMA_VERSION = 1


class UmcPlan(Config):
    """What is walked: the agent's parameters, the segments, the crowd, and how it is kept out."""

    params: dict[str, Any]
    forward: ForwardPlan
    echoes: EchoConfig
    leakage: UmcLeakageConfig = UmcLeakageConfig()

    @property
    def ref(self) -> Ref:
        """Return the agent; what it reckons a trade to cost is what the account charges."""
        cost = account_cost_bp(self.forward.config)
        return Ref(use="umc", params={"cost_bp": cost, **self.params})


@dataclass(frozen=True, slots=True, eq=False)
class UmcRun:
    """Everything that a walk of UMC leaves behind.

    Attributes:
        evaluation: Figures, intervals, trials and the verdict, beside baselines.
        bars: The bars that were walked over; without the lockbox.
        trace: What was believed and traded.
        folds: The agents.
        sheet: Break-even, by the closes of the first training span.
        echoes: The crowd on the same bars; None without one.
        leakage: G1 to G4; None without a crowd, which then is nobody's to leak.
    """

    evaluation: Evaluation
    bars: Bars
    trace: WalkTrace
    folds: Sequence[FoldAgent]
    sheet: tuple[BreakEven, ...]
    echoes: EchoRecord | None
    leakage: LeakageReport | None

    @property
    def arm(self) -> ArmReport:
        """Return the report on UMC itself."""
        return self.evaluation.agents[0]

    @property
    def results(self) -> BacktestResults:
        """Return its account over the tested bars."""
        assert self.arm.run is not None
        return self.arm.run

    @property
    def lam(self) -> LambdaPath:
        """Return lambda over the tested bars."""
        config = self.folds[0].agent.config.lam
        return LambdaPath(self.trace.columns["lambda"], config.lambda_min, config.lambda_max)

    def tiers(self) -> list[dict[str, Any]]:
        """Return which model each fold chose, and why."""
        found = []
        for each in self.folds:
            report = each.agent.mind.model.report
            found.append({"fold": each.number, "tier": report.chosen, "why": report.why})
        return found

    def payload(self) -> dict[str, Any]:
        """Return plain values for results.json; nothing depends on the clock."""
        values = self.lam
        return self.evaluation.as_dict() | {
            "kind": "umc walk",
            "umc_schema_version": SCHEMA_VERSION,
            "agent": self.arm.agent,
            "provenance": self.bars.describe(),
            "tiers": self.tiers(),
            "folds": [
                {"fold": f.number, "begin": f.begin, "first": f.first, "stop": f.stop}
                for f in self.folds
            ],
            "lambda": {
                "mean": float(values.values.mean()),
                "min": values.lowest,
                "max": values.highest,
                "share_at_bounds": values.share_at_bounds,
            },
            "break_even": [row.as_dict() for row in self.sheet],
            "echoes": None if self.echoes is None else self.echoes.as_dict(),
            "leakage": None if self.leakage is None else self.leakage.as_dict(),
        }


def account_cost_bp(config: BacktestConfig) -> float:
    """Return what a trade costs for certain: fee, slippage and half the spread; not impact.

    Example:
        >>> account_cost_bp(BacktestConfig(taker_bps=10, slippage_bps=1, half_spread_bps=0.5))
        11.5
    """
    costs = config.costs()
    return costs.taker_bps + costs.slippage_bps + costs.half_spread_bps


def walk_umc(bars: Bars, plan: UmcPlan, setting: Setting) -> UmcRun:
    """Walk UMC and the baselines forward, register the trials, and trace what was believed."""
    forward = plan.forward
    seen = bars.rows(0, len(bars) - forward.lockbox)
    ledger = Ledger(seen, forward.walk, forward.config, forward.seed)
    short = forward.config.account().may_short(bars.instrument)
    arms = (Arm(label=LABEL, refs=(plan.ref,)), *reference_arms(allow_short=short))
    found = evaluate_forward(bars, arms, forward, setting)
    if not found.agents:
        raise found.failed[0].error
    run = found.agents[0].run
    assert run is not None
    folds = fold_agents(ledger, plan.ref, setting.done)
    echoes = follow_echoes(ledger.tested, plan.echoes, forward.seed)
    learned = seen.rows(0, ledger.folds[0].train.stop)
    return UmcRun(
        evaluation=found,
        bars=seen,
        trace=trace_of(ledger, run, folds),
        folds=folds,
        sheet=break_even(learned.close, bars.period_ns, account_cost_bp(forward.config)),
        echoes=echoes,
        leakage=None if echoes is None else umc_leakage(forward.seed, plan.leakage),
    )
