from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.scenarios.recorded import (
    RECORDED_METRICS,
    RecordedSource,
    read_log,
)
from tests.evaluation.recorded_samples import (
    T0,
    WRITERS,
    Rows,
    figures,
    order,
    read,
    sample,
    write_jsonl,
    write_sqlite,
)


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_log(
    tmp_path: Path, write: Callable[[Path, Rows], Path]
) -> None:
    log = read(write(tmp_path, sample()))
    (tmp_path / "other").mkdir()
    other = read(write_jsonl(tmp_path / "other", sample()))
    assert log.data_hash == other.data_hash
    assert [each.signal_id for each in log.signals] == ["s1", "s2", "s3"]
    assert log.signals[1].symbol == "ETH/USDT"
    assert log.signals[0].time_ns == int(T0) * 10**9
    assert log.orders[0].quantity == -0.1
    assert log.unread == {}
    assert log.notes == ()


def test_the_figures_follow_their_formulas(tmp_path: Path) -> None:
    found = figures(read(write_jsonl(tmp_path, sample())))
    assert found == {
        "signals_total": 3.0,
        "unique_symbols": 2.0,
        "avg_quality": pytest.approx(0.6),
        "avg_confidence": pytest.approx(0.7),
        "limit_fill_ratio": pytest.approx(1 / 3),  # o1 of o1, o2, o5; o4 is still open
        "market_fallback_ratio": pytest.approx(2 / 3),  # o3 for o2 by name, o6 for o5 by signal
        "limit_timeout": 1.0,
        "market_failed": 1.0,
        "sl_created": 2.0,
        "tp_created": 1.0,
        "auto_fix_sl": 1.0,
        "auto_fix_tp": 0.0,
        "rows_unread": 0.0,
    }
    names = [metric.name for metrics in RECORDED_METRICS.values() for metric in metrics]
    assert set(names) == set(found)
    assert not any(metric.gates for metrics in RECORDED_METRICS.values() for metric in metrics)


def test_a_signal_reaches_the_desk_as_the_desk_takes_it(tmp_path: Path) -> None:
    rows = sample()
    del rows["signals"][1]["amount"]
    log = read(write_jsonl(tmp_path, rows))
    assert log.signals[0].raw == {
        "signal_id": "s1",
        "strategy": "momentum",
        "params": {
            "amount": 0.1,
            "base": "BTC",
            "quote": "USDT",
            "side": "buy",
            "confidence": 0.9,
        },
        "timestamp": T0,
        "source": "recorded",
    }
    assert "amount" not in log.signals[1].raw["params"]


def test_the_original_short_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "signals.jsonl"
    params = {"amount": 0.1, "base": "BTC", "quote": "USDT"}
    row = {"signal_id": "signal1", "strategy": "momentum", "params": params, "timestamp": T0}
    path.write_text(json.dumps(row) + "\n")
    log = read(tmp_path)
    assert log.signals[0].raw["params"] == params
    assert log.present == ("signals",)


def test_the_window_is_the_last_hours(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, sample())
    assert [each.signal_id for each in read(path, hours=1.5).signals] == ["s2", "s3"]
    assert len(read_log(RecordedSource(path=str(path)), 0.5).signals) == 1
    own = RecordedSource(path=str(path), hours=1.5)  # what the source says comes first
    assert len(read_log(own, 0.5).signals) == 2
    until = read(path, hours=1.0, until="2023-11-14T23:13:20Z")  # T0 and an hour
    assert [each.signal_id for each in until.signals] == ["s1", "s2"]
    assert read(path, hours=1.5).data_hash != read(path).data_hash
    with pytest.raises(ConfigError, match="not a time"):
        read(path, until="yesterday")


def test_a_stream_that_is_not_there_is_not_measured(tmp_path: Path) -> None:
    rows = {"signals": sample()["signals"], "orders": []}
    found = figures(read(write_sqlite(tmp_path, rows)))
    assert found["signals_total"] == 3.0
    assert found["limit_timeout"] == 0.0  # there is a table, it is empty
    assert found["limit_fill_ratio"] is None
    assert found["sl_created"] is None


def test_an_order_written_several_times_counts_once_with_its_last_status(tmp_path: Path) -> None:
    rows = sample()
    rows["orders"].append(order("o4", 9_000, "limit", "filled"))
    log = read(write_jsonl(tmp_path, rows))
    again = next(each for each in log.orders if each.order_id == "o4")
    assert (again.status, again.time_ns) == ("filled", int(T0 + 3_800) * 10**9)
    assert figures(log)["limit_fill_ratio"] == pytest.approx(2 / 4)


def test_without_a_status_the_fills_tell(tmp_path: Path) -> None:
    rows = sample()
    for each in rows["orders"]:
        each["status"] = None
    found = figures(read(write_jsonl(tmp_path, rows)))
    assert found["limit_fill_ratio"] == 1.0  # the other limits show no fill, so they are open
    assert found["market_failed"] == 0.0


FOREIGN = {
    "stream_field": "typ",
    "time_unit": "ms",
    "streams": {
        "signals": {
            "table": "alerts",
            "columns": {
                "signal_id": "no",
                "timestamp": "at.created",
                "symbol": "pair",
                "side": "direction",
                "confidence": "conf_pct",
            },
            "values": {"side": {"LONG": "buy", "SHORT": "sell"}},
            "constants": {"strategy": "legacy", "amount": 0.25},
            "scales": {"confidence": 0.01},
        },
        "protections": {
            "table": "guards",
            "columns": {"timestamp": "ms", "kind": "what", "event": "what"},
            "values": {
                "kind": {"SL_NEW": "sl", "TP_AUTOFIX": "tp"},
                "event": {"SL_NEW": "created", "TP_AUTOFIX": "fixed"},
            },
        },
    },
}
ALERT = {"no": 17, "at": {"created": T0 * 1e3}, "pair": "SOL_USDC", "direction": "SHORT"}


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_mapping_file_translates_names_values_and_units(tmp_path: Path, ending: str) -> None:
    mapping = tmp_path / f"names.{ending}"
    mapping.write_text(json.dumps(FOREIGN) if ending == "json" else yaml.safe_dump(FOREIGN))
    lines = [
        {"typ": "alerts", "conf_pct": "80", **ALERT},
        {"typ": "guards", "ms": T0 * 1e3, "what": "SL_NEW"},
        {"typ": "guards", "ms": T0 * 1e3 + 5, "what": "TP_AUTOFIX"},
        {"typ": "heartbeat"},
    ]
    path = tmp_path / "foreign.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    log = read(path, mapping=str(mapping))
    assert log.signals[0].raw["params"] == {
        "amount": 0.25,
        "base": "SOL",
        "quote": "USDC",
        "side": "sell",
        "confidence": 0.8,
    }
    assert log.signals[0].signal_id == "17"
    found = figures(log)
    assert (found["sl_created"], found["auto_fix_tp"], found["rows_unread"]) == (1.0, 1.0, 0.0)


def test_nested_values_are_found_in_json_texts_of_sqlite(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "log.db")
    base.execute("CREATE TABLE signals (signal_id, strategy, timestamp, params)")
    params = json.dumps({"amount": 2, "base": "BTC", "quote": "USDT"})
    base.execute("INSERT INTO signals VALUES ('a', 'm', ?, ?)", (T0, params))
    base.commit()
    base.close()
    assert read(tmp_path / "log.db").signals[0].raw["params"]["amount"] == 2.0


@pytest.mark.parametrize(
    ("mapping", "match"),
    [
        ({"streams": {"signals": {"columns": {"signal_di": "x"}}}}, "Did you mean 'signal_id'"),
        ({"stream": "x"}, "stream_field"),
        ({"streams": {"signals": {"table": "../../etc/passwd"}}}, "holds no path"),
        (["a"], "holds names"),
    ],
)
def test_a_wrong_mapping_is_refused(tmp_path: Path, mapping: Any, match: str) -> None:
    path = write_jsonl(tmp_path, sample())
    names = tmp_path / "names.json"
    names.write_text(json.dumps(mapping))
    with pytest.raises(ConfigError, match=match):
        read(path, mapping=str(names))
    with pytest.raises(ConfigError, match="cannot be read"):
        read(path, mapping=str(tmp_path / "none.json"))
