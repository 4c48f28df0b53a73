"""What a backtest leaves behind, in memory and on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agent_gym.core.errors import StoreError
from agent_gym.core.files import sync, write_json
from agent_gym.core.manifest import Manifest
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import Metrics
from agent_gym.exchange.round_trips import RoundTrips
from agent_gym.markets.bars import Bars

SCHEMA_VERSION = 1
RESULTS, EQUITY, FILLS = "results.json", "equity.parquet", "fills.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class BacktestResults:
    """One agent's run over one market.

    Attributes:
        agent: Name of the agent.
        bars: What it was run on.
        ts: Close times of the bars in UTC nanoseconds; the curves are marked there.
        equity: Cash and position at each close.
        position: Units held at each close.
        cash: Cash at each close.
        target: What was asked for at each close after scaling and caps, as a fraction of equity.
        fills: One row a fill (dtype ``exchange.series.FILL``).
        trips: Round trips, first in first out.
        metrics: The figures.
        caps: Which risk part bound how often; empty without risk parts.
        manifest: What it takes to make this again.
    """

    agent: str
    bars: Bars
    ts: NDArray[np.int64]
    equity: FloatArray
    position: FloatArray
    cash: FloatArray
    target: FloatArray
    fills: NDArray[Any]
    trips: RoundTrips
    metrics: Metrics
    caps: dict[str, Any]
    manifest: Manifest

    @property
    def equity_hash(self) -> str:
        """Return a hash of every bit of the equity curve; equal runs have equal hashes."""
        return blake2b(np.ascontiguousarray(self.equity).tobytes(), digest_size=16).hexdigest()

    def payload(self) -> dict[str, Any]:
        """Return the run as plain values; nothing in it depends on the clock or the machine."""
        return {
            "schema_version": SCHEMA_VERSION,
            "agent": self.agent,
            "final_equity": float(self.equity[-1]),
            "equity_hash": self.equity_hash,
            "metrics": self.metrics.as_dict(),
            "caps": self.caps,
            "provenance": self.manifest.data,
            "manifest": self.manifest.model_dump(mode="json"),
        }

    def save(self, folder: Path) -> None:
        """Write results.json, equity.parquet and fills.parquet: all of them or none."""
        with staged(folder) as stage:
            self.write(stage)

    def write(self, stage: Path) -> None:
        """Write the files of this run into a folder that is there."""
        curves = {"equity": self.equity, "position": self.position, "cash": self.cash}
        fills = {name: self.fills[name] for name in self.fills.dtype.names or ()}
        _write_table(stage / EQUITY, {"ts": _stamps(self.ts), **curves, "target": self.target})
        _write_table(stage / FILLS, {"ts": _stamps(self.bars.ts[self.fills["bar"]]), **fills})
        write_json(stage / RESULTS, self.payload())


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``folder``; on success its files move there, results.json last.

    If the body raises, nothing of it is left and older files stay as they were.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    except OSError as error:
        raise StoreError("cannot write here", where=str(folder), found=error.strerror) from error
    try:
        yield stage
        try:
            for path in sorted(stage.rglob("*"), reverse=True):
                sync(path)
            folder.mkdir(exist_ok=True)
            for path in sorted(stage.iterdir(), key=lambda path: (path.name == RESULTS, path.name)):
                _move(path, folder / path.name)
            sync(folder)
        except OSError as error:
            raise StoreError("cannot write here", where=str(folder), found=error) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _move(path: Path, target: Path) -> None:
    if path.is_dir() and target.is_dir():
        shutil.rmtree(target)
    path.replace(target)


def _stamps(ts: NDArray[np.int64]) -> Any:
    return pa.array(ts).cast(pa.timestamp("ns", tz="UTC"))


def _write_table(path: Path, columns: dict[str, Any]) -> None:
    pq.write_table(pa.table(columns), path, compression="zstd")
