"""A walk in a folder: results, trace, bars, and the agent of every fold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.core.registry import Ref, make
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.results import RESULTS
from agent_gym.evaluation.umc_walk.folds import FoldAgent
from agent_gym.evaluation.umc_walk.run import UmcRun
from agent_gym.evaluation.umc_walk.trace import WalkTrace
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import read_native, write_bars

TRACE, BARS, AGENTS = "trace.parquet", "bars.parquet", "agents"
PLAIN = ("ts", "fold", "regime")


def write_run(stage: Path, run: UmcRun) -> None:
    """Write everything about a walk into a folder that is there."""
    trace = run.trace
    stamps = pa.array(trace.ts).cast(pa.timestamp("ns", tz="UTC"))
    table = {"ts": stamps, "fold": trace.fold, "regime": trace.regime.tolist()}
    pq.write_table(pa.table(table | dict(trace.columns)), stage / TRACE, compression="zstd")
    write_bars(stage / BARS, run.bars)
    for each in run.folds:
        each.agent.save(stage / AGENTS / _name(each.number))
    write_json(stage / RESULTS, run.payload())


@dataclass(frozen=True, slots=True, eq=False)
class StoredRun:
    """A walk as it was kept."""

    folder: Path
    results: dict[str, Any]
    trace: WalkTrace
    bars: Bars

    @property
    def config(self) -> BacktestConfig:
        """Return the account that was traded on."""
        return BacktestConfig.model_validate(self.results["manifest"]["config"]["backtest"])

    def agent_folder(self, number: int) -> Path:
        """Return where the agent of a fold lies."""
        return self.folder / AGENTS / _name(number)

    def fold(self, number: int) -> FoldAgent:
        """Return the agent of a fold, as it was before its test."""
        kept = {row["fold"]: row for row in self.results["folds"]}[number]
        ref = Ref(use="umc", params={"folder": str(self.agent_folder(number))})
        agent = cast(UMCAgent, make("agent", ref))
        return FoldAgent(number, agent, kept["begin"], kept["first"], kept["stop"])


def open_run(folder: Path) -> StoredRun:
    """Read a walk; a folder that holds none is an error that says what to do."""
    if not (folder / RESULTS).is_file():
        raise ConfigError(
            "there is no run here",
            where=str(folder),
            found="no such folder" if not folder.is_dir() else f"no {RESULTS}",
            expected="a folder that `agent-gym umc backtest --out FOLDER` has written",
            remedy="Run `agent-gym umc backtest` first, and give its folder with --run",
        )
    try:
        results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        kind = results.get("kind")
    except (ValueError, AttributeError) as error:
        raise DataError("this file cannot be read", where=f"{folder / RESULTS}") from error
    if kind != "umc walk":
        raise ConfigError(
            "this run is not one of UMC",
            where=str(folder),
            found=f"results of {kind or 'another command'}",
            remedy="Give the folder of an `agent-gym umc backtest`",
        )
    bars = read_native(folder / BARS)
    if bars.fingerprint != results["provenance"]["fingerprint"]:
        raise DataError(
            "the bars are not those that were walked over",
            where=str(folder / BARS),
            found=bars.fingerprint,
            expected=results["provenance"]["fingerprint"],
        )
    return StoredRun(folder, results, _read_trace(folder / TRACE), bars)


def _read_trace(path: Path) -> WalkTrace:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError("the trace cannot be read", where=str(path), found=error) from error
    names = [name for name in table.column_names if name not in PLAIN]
    return WalkTrace(
        ts=table["ts"].cast(pa.int64()).to_numpy(),
        fold=table["fold"].to_numpy(),
        regime=np.array(table["regime"].to_pylist(), dtype="U24"),
        columns={name: np.array(table[name]) for name in names},
    )


def _name(number: int) -> str:
    return f"fold-{number:02d}"
