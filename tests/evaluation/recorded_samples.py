from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.evaluation.scenarios.recorded import (
    RECORDED_METRICS,
    RecordedLog,
    RecordedSource,
    read_log,
    recorded_metrics,
)

T0 = 1_700_000_000.0
Rows = dict[str, list[dict[str, Any]]]


def sample() -> Rows:
    return {
        "signals": [
            signal("s1", 0, "BTC/USDT", quality=0.5, confidence=0.9),
            signal("s2", 3_600, "ETH-USDT", quality=0.7, confidence=None),
            signal("s3", 7_200, "btcusdt", quality=None, confidence=0.5),
        ],
        "orders": [
            order("o1", 1, "limit", "filled", signal_id="s1"),
            order("o2", 3_601, "limit", "timeout", signal_id="s2"),
            order("o3", 3_700, "market", "filled", fallback_of="o2"),
            order("o4", 3_800, "limit", "open"),
            order("o5", 3_900, "limit", "cancelled", signal_id="s3"),
            order("o6", 4_000, "market", "rejected", signal_id="s3"),
        ],
        "fills": [
            {"timestamp": T0 + 2, "order_id": "o1", "quantity": 0.1, "price": 100.0, "fee": 0.01},
            {
                "timestamp": T0 + 3_701,
                "order_id": "o3",
                "quantity": 0.1,
                "price": 99.0,
                "fee": None,
            },
        ],
        "protections": [
            guard(10, "sl", "created"),
            guard(11, "tp", "created"),
            guard(12, "sl", "fixed"),
            guard(13, "sl", "created"),
            guard(7_200, "tp", "triggered"),
        ],
    }


def signal(name: str, at: float, symbol: str, **more: Any) -> dict[str, Any]:
    row = {"signal_id": name, "timestamp": T0 + at, "symbol": symbol, "strategy": "momentum"}
    return row | {"side": "buy", "amount": 0.1} | more


def order(name: str, at: float, kind: str, status: str | None, **more: Any) -> dict[str, Any]:
    row = {"order_id": name, "timestamp": T0 + at, "kind": kind, "status": status}
    nothing = {"signal_id": None, "fallback_of": None}
    return row | nothing | {"quantity": 0.1, "side": "sell", "symbol": "BTC/USDT"} | more


def guard(at: float, kind: str, event: str) -> dict[str, Any]:
    return {"timestamp": T0 + at, "kind": kind, "event": event, "symbol": "BTC/USDT"}


def write_sqlite(path: Path, rows: Rows) -> Path:
    target = path / "log.db"
    base = sqlite3.connect(target)
    for table, content in rows.items():
        columns = list(content[0]) if content else ["timestamp"]
        base.execute(f'CREATE TABLE "{table}" ({", ".join(columns)})')
        marks = ", ".join("?" for _ in columns)
        base.executemany(
            f'INSERT INTO "{table}" VALUES ({marks})',
            [[row.get(column) for column in columns] for row in content],
        )
    base.commit()
    base.close()
    return target


def write_jsonl(path: Path, rows: Rows) -> Path:
    target = path / "log.jsonl"
    lines = [json.dumps({"stream": name, **row}) for name, part in rows.items() for row in part]
    target.write_text("\n".join(lines) + "\n")
    return target


def write_jsonl_folder(path: Path, rows: Rows) -> Path:
    target = path / "jsonl"
    target.mkdir()
    for name, part in rows.items():
        (target / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    return target


def write_parquet_folder(path: Path, rows: Rows) -> Path:
    target = path / "parquet"
    target.mkdir()
    for name, part in rows.items():
        pq.write_table(pa.Table.from_pylist(part), target / f"{name}.parquet")
    return target


def write_parquet(path: Path, rows: Rows) -> Path:
    target = path / "log.parquet"
    every = sorted({key for part in rows.values() for row in part for key in row})
    table = [
        {"stream": name, **{key: row.get(key) for key in every}}
        for name, part in rows.items()
        for row in part
    ]
    pq.write_table(pa.Table.from_pylist(table), target)
    return target


WRITERS = [write_sqlite, write_jsonl, write_jsonl_folder, write_parquet, write_parquet_folder]


def read(path: Path, **more: Any) -> RecordedLog:
    return read_log(RecordedSource(path=str(path), **more))


def figures(log: RecordedLog) -> dict[str, float | None]:
    return {k: v for kind in RECORDED_METRICS for k, v in recorded_metrics(kind, log).items()}
