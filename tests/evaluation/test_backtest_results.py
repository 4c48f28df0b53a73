from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from agent_gym.core.errors import StoreError
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import BASELINES, compare, label_of, short_table
from agent_gym.evaluation.results import staged
from tests.evaluation.backtest_samples import (
    CROSS,
    DICE,
    HOLD,
    run,
)
from tests.samples import random_bars


def test_the_same_seed_gives_the_same_bits():
    bars = random_bars(200)
    assert run(bars, DICE, 3).payload() == run(bars, DICE, 3).payload()
    assert run(bars, DICE, 3).equity_hash != run(bars, DICE, 4).equity_hash


def test_the_manifest_says_what_was_run_on_what():
    bars = random_bars(60)
    engine = BacktestEngine(command=["agent-gym", "backtest"], commit="abc")
    manifest = engine.run(bars, CROSS, 5).manifest
    assert manifest.command == "agent-gym backtest"
    assert manifest.commit == "abc"
    assert manifest.seeds == (5,)
    assert manifest.data["fingerprint"] == bars.fingerprint
    assert manifest.config["agent"]["params"]["slow"] == 8
    assert manifest.config["agent"]["params"]["band"] == 0.0  # defaults are spelled out
    assert manifest.config["backtest"]["taker_bps"] == 10.0


def test_results_can_be_read_back(tmp_path):
    bars = random_bars(80)
    result = run(bars, CROSS)
    result.save(tmp_path / "deep" / "run")
    folder = tmp_path / "deep" / "run"
    assert sorted(path.name for path in folder.iterdir()) == [
        "equity.parquet",
        "fills.parquet",
        "results.json",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["run"]
    curves = pq.read_table(folder / "equity.parquet")
    assert np.array_equal(curves["equity"].to_numpy(), result.equity)
    assert curves["ts"].cast("int64").to_pylist() == (bars.ts + bars.period_ns).tolist()
    fills = pq.read_table(folder / "fills.parquet")
    assert fills["qty"].to_pylist() == result.fills["qty"].tolist()
    assert json.loads((folder / "results.json").read_text()) == result.payload()


def test_saving_is_all_or_nothing(tmp_path):
    folder = tmp_path / "run"
    run(random_bars(80), CROSS).save(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def broken_off() -> None:
        with staged(folder) as stage:
            (stage / "results.json").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError):
        run(random_bars(80), CROSS).save(tmp_path / "file" / "run")


def test_baselines_run_under_the_same_costs_and_timing():
    bars = random_bars(300)
    engine = BacktestEngine(BacktestConfig(taker_bps=25.0, latency_bars=1))
    found = compare(engine, bars, CROSS, 2)
    assert list(found.runs) == [label_of(CROSS), *(ref.use for ref in BASELINES)]
    for ref in BASELINES:
        alone = run(bars, ref, 2, taker_bps=25.0, latency_bars=1)
        assert found.runs[ref.use].equity_hash == alone.equity_hash
    assert found.runs["rules/flat"].equity[-1] == 10_000.0
    heads, rows = short_table(found)
    assert {len(row) for row in rows} == {len(heads)}


def test_an_agent_that_is_a_baseline_runs_once():
    found = compare(BacktestEngine(), random_bars(80), HOLD)
    assert list(found.runs) == ["rules/buy-hold", "rules/flat", "rules/sma-cross", "rules/random"]
    assert set(found.baselines) == {"rules/flat", "rules/sma-cross", "rules/random"}


def test_an_engine_can_change_its_bars():
    engine = BacktestEngine()
    one, other = random_bars(80, 1), random_bars(80, 2)
    runs = [engine.run(bars, CROSS) for bars in (one, one, other, one)]
    assert [run.manifest.data["fingerprint"] for run in runs] == [
        bars.fingerprint for bars in (one, one, other, one)
    ]
    assert runs[0].equity_hash == runs[3].equity_hash != runs[2].equity_hash
