"""The trace of a walk: one row a close, from the one that the first tested bar is decided at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.umc_walk.beliefs import Believed, believed, regime_names
from agent_gym.evaluation.umc_walk.folds import FoldAgent

HEAD, MEAN, REGIME, PLAN, ENERGY = "head/", "mean/", "regime/", "plan/", "energy/"


@dataclass(frozen=True, slots=True, eq=False)
class WalkTrace:
    """What was believed and traded.

    Attributes:
        ts: Close of each bar, in UTC nanoseconds: when the decision was made.
        fold: Number of the fold whose agent decided.
        regime: Name of the likeliest macrostate; empty without macrostates.
        columns: Everything else by name, NaN where a fold has no such thing.
    """

    ts: NDArray[np.int64]
    fold: NDArray[np.int64]
    regime: NDArray[np.str_]
    columns: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return int(self.ts.size)

    def group(self, prefix: str) -> dict[str, FloatArray]:
        """Return the columns that begin with a prefix, without it."""
        return {
            name.removeprefix(prefix): column
            for name, column in self.columns.items()
            if name.startswith(prefix)
        }


def trace_of(ledger: Ledger, run: BacktestResults, folds: Sequence[FoldAgent]) -> WalkTrace:
    """Return the trace of a run by the agents of its folds; they must be those that traded."""
    count, first = len(ledger.tested), ledger.first
    found: dict[str, FloatArray] = {}
    fold, names = np.zeros(count, np.int64), np.full(count, "", dtype="U24")
    for each in folds:
        told = follow(ledger, each)
        own = slice(each.first - each.begin, each.stop - each.begin)
        rows = slice(each.first - first, each.stop - first)
        fold[rows] = each.number
        for name, column in _columns(each, told).items():
            found.setdefault(name, np.full(count, np.nan))[rows] = column[own]
        called = regime_names(each.agent)
        if called:
            likeliest = told.trace.regimes[own].argmax(axis=1)
            names[rows] = [called[int(state)] for state in likeliest]
    _check_same(found["wish"], run, ledger)
    bars = ledger.tested
    exposure = run.position * bars.close / np.where(run.equity > 0.0, run.equity, np.nan)
    account = {"equity": run.equity, "exposure": exposure, "target": run.target}
    return WalkTrace(run.ts, fold, names, found | account)


def follow(ledger: Ledger, each: FoldAgent) -> Believed:
    """Return what the agent of a fold believed, from where it begins to where its turn ends."""
    columns = columns_for(ledger.bars.rows(0, each.stop), each.agent.needs)
    seen = {name: column[each.begin :] for name, column in columns.items()}
    return believed(each.agent, seen, ledger.config.bounds(ledger.bars.instrument))


def _columns(each: FoldAgent, told: Believed) -> dict[str, FloatArray]:
    trace = told.trace
    heads = trace.told
    names = each.agent.mind.model.heads
    free = np.take_along_axis(told.energy, told.chosen_places[:, None], axis=1)[:, 0]
    plain = {
        "held": told.held,
        "chosen": told.chosen,
        "wish": told.target,
        "expected_return": heads.edge,
        "expected_return_se": heads.error,
        "sigma": trace.series.sigma,
        "coherence": trace.coherence,
        "information_gain": told.information,
        "lambda": told.lam,
        "free_energy": free,
        "surprise": told.surprise,
    }
    levels = [f"{level:g}" for level in told.levels]
    plain |= {f"{PLAN}{name}": told.planned[:, i] for i, name in enumerate(levels)}
    plain |= {f"{ENERGY}{name}": told.energy[:, i] for i, name in enumerate(levels)}
    plain |= {f"{HEAD}{name}": heads.chance[:, i] for i, name in enumerate(names)}
    plain |= {f"{MEAN}{name}": heads.mean[:, i] for i, name in enumerate(names)}
    regimes = trace.regimes
    return plain | {f"{REGIME}{i}": regimes[:, i] for i in range(regimes.shape[1])}


def _check_same(wish: FloatArray, run: BacktestResults, ledger: Ledger) -> None:
    """Raise unless these agents wished for what was traded; risk parts only hold back."""
    spec = ledger.config.bounds(ledger.bars.instrument)
    asked = np.clip(wish * ledger.config.position_size, spec.low, spec.high)[:-1]
    traded = run.target[:-1]
    if ledger.config.risk() is None:
        ruined = np.flatnonzero(run.equity <= 0.0)
        stop = int(ruined[0]) if ruined.size else traded.size
        apart = np.flatnonzero(asked[:stop] != traded[:stop])
    else:
        apart = np.flatnonzero(np.abs(traded) > np.abs(asked) + 1e-12)
    if apart.size:
        row = int(apart[0])
        raise AgentError(
            "the agents that were traced are not those that were traded",
            where=f"umc, tested bar {row}",
            found=float(asked[row]),
            expected=float(traded[row]),
            remedy="An agent that is taught twice from one seed must come out the same",
        )
