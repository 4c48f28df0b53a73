"""The slow part of a walk forward as jobs: what each arm asks for on the tested rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Decided, Ledger
from agent_gym.evaluation.protocol.failures import failed_row
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.markets.parquet import read_native
from agent_gym.rollouts.jobs import Job


class DecideJob(Job):
    """One arm over bars in a file; the row holds its targets, from which the ledger follows."""

    arm: Arm
    bars_file: Path
    walk: WalkForward
    config: BacktestConfig
    seed: int

    @override
    def run(self) -> dict[str, Any]:
        """Decide."""
        bars = read_native(self.bars_file)
        return decided_row(Ledger(bars, self.walk, self.config, self.seed), self.arm)

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the file of bars."""
        return (self.bars_file,)


def decided_row(ledger: Ledger, arm: Arm) -> dict[str, Any]:
    """Return what an arm decides, or how it failed."""
    try:
        return row_of(ledger.decide(arm))
    except AgentError as error:
        return {"status": "ok"} | failed_row(error)


def row_of(decided: Decided) -> dict[str, Any]:
    """Return what was decided as plain values; numbers survive to the bit."""
    return {
        "status": "ok",
        "targets": decided.targets.tolist(),
        "caps": decided.caps,
        "equity_hash": decided.equity_hash,
        "chosen": [ref.model_dump(mode="json") for ref in decided.chosen],
    }


def decided_of(row: dict[str, Any]) -> Decided:
    """Return what a row holds."""
    chosen = tuple(Ref.model_validate(ref) for ref in row["chosen"])
    return Decided(np.array(row["targets"]), row["caps"], row["equity_hash"], chosen)
