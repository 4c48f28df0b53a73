"""One seed of a market as a job: drawn, and traded by every arm and by the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Learner
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.oracle import optimal_targets
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.failures import failed_row, placed
from agent_gym.evaluation.protocol.permutation import random_timing
from agent_gym.evaluation.protocol.pnl import BP, Unit, bar_pnl, trial_returns
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.statistics import moments, psr
from agent_gym.markets.bars import Bars
from agent_gym.markets.known import KNOWN, NULLS, Drawn, draw
from agent_gym.markets.source import open_market
from agent_gym.rollouts.jobs import Job, files_named

UNIT: Unit = "gain"


class SeedJob(Job):
    """Everything that happens on the path of one seed; the row holds figures, not curves."""

    market: Ref
    seed: int = Field(ge=0)
    arms: tuple[Arm, ...]
    members: tuple[Arm, ...] = Field(description="configurations that training chooses from")
    train: int | None = Field(description="rows to learn from; null: half")
    purge: int
    embargo: int
    config: BacktestConfig
    cost_bp: float
    draws: int

    @override
    def run(self) -> dict[str, Any]:
        """Draw the market and trade it."""
        drawn, bars = self.drawn()
        ledger = self.ledger(bars)
        rows: dict[str, Any] = {}
        for arm in (*self.arms, *self.members):
            if arm.label in rows:  # an agent that is also one of a grid
                continue
            try:
                decided = ledger.decide(arm)
            except AgentError as error:
                rows[arm.label] = failed_row(placed(error, f"seed {self.seed}"))
                continue
            rows[arm.label] = _figures(ledger.trade(arm.label, decided))
            rows[arm.label]["learns"] = isinstance(make("agent", arm.refs[0]), Learner)
            if not arm.baseline:
                seeds = Seeds(self.seed).child("evaluate", arm.label)
                timing = random_timing(ledger.tape, decided.targets, self.config, seeds, self.draws)
                rows[arm.label]["timing"] = timing.as_dict()
        tested = ledger.tested
        return {
            "status": "ok",
            "seed": self.seed,
            "fingerprint": bars.fingerprint,
            "kind": bars.instrument.kind,
            "may_short": self.config.account().may_short(bars.instrument),
            "period_ns": bars.period_ns,
            "first_ns": int(tested.ts[1]),
            "last_ns": int(tested.ts[-1]),
            "bars": len(tested) - 1,
            "market_bp": float(BP * np.mean(np.diff(tested.close) / tested.close[:-1])),
            "arms": rows,
            "optimum": None if drawn is None else _figures(self.optimum(ledger, drawn)),
        }

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the file of the market, if it is one."""
        return files_named("market", self.market)

    def drawn(self) -> tuple[Drawn | None, Bars]:
        """Return the path of this seed, with its truth where the market is known."""
        if not is_known(self.market):
            return None, open_market(self.market, Seeds(self.seed))
        drawn = draw(self.market, Seeds(self.seed))
        return drawn, drawn.bars

    def ledger(self, bars: Bars) -> Ledger:
        """Return the path in two: what is learned from, and what is tested."""
        gap = self.purge + self.embargo
        train = len(bars) // 2 - gap if self.train is None else self.train
        test = len(bars) - train - gap
        if train < 1 or test < 2:
            raise ConfigError(
                "too few bars to learn from and to test",
                where=f"market {self.market.use}",
                found=f"{len(bars):,} bars, train {train:,}, gap {gap:,}",
                remedy="Ask for more with --bars, or shorten --train or --embargo",
            )
        walk = WalkForward(train=train, test=test, purge=self.purge, embargo=self.embargo)
        return Ledger(bars, walk, self.config, self.seed)

    def optimum(self, ledger: Ledger, drawn: Drawn) -> BacktestResults:
        """Return the run of the optimal policy on the same path under the same costs."""
        instrument = drawn.bars.instrument
        short = self.config.account().may_short(instrument)
        best = optimal_targets(self.market, drawn, self.cost_bp, allow_short=short)
        wanted = best[ledger.first :]
        spec = self.config.bounds(instrument)
        return ledger.trade_targets("optimum", np.clip(wanted, spec.low, spec.high))


def is_known(market: Ref) -> bool:
    """Say whether the law of a market is known."""
    return market.use in KNOWN


def is_null(market: Ref) -> bool:
    """Say whether a market is known to hold nothing to find."""
    return market.use in NULLS


def _figures(run: BacktestResults) -> dict[str, Any]:
    pnl = bar_pnl(run)
    returns, per_year = trial_returns(run)
    found = moments(returns)
    return {
        "net_bp": pnl.mean_bp("net", UNIT),
        "gross_bp": pnl.mean_bp("gross", UNIT),
        "exposure": float(pnl.exposure.mean()),
        "psr": None if found is None else psr(found),
        "returns": returns.tolist(),
        "per_year": per_year,
    }
