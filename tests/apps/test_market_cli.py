from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from agent_gym.core import Seeds
from agent_gym.markets.parquet import read_native, write_bars
from agent_gym.markets.synthetic import GeneratorConfig, generate
from tests.apps.cli_samples import Call, make_call


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return make_call("market", monkeypatch, capsys)


def test_generate_writes_bars_and_truth_apart(tmp_path: Path, call: Call) -> None:
    out, truth = tmp_path / "bars.parquet", tmp_path / "truth.parquet"
    code, text, _ = call(
        "generate", "--preset", "btc-1m", "--bars", "500", "--seed", "9",
        "--out", str(out), "--truth", str(truth), "--json",
    )  # fmt: skip
    payload = json.loads(text)
    assert code == 0
    expected = generate(GeneratorConfig(n_bars=500), Seeds(9)).bars
    assert payload["bars"]["fingerprint"] == expected.fingerprint
    assert read_native(out).fingerprint == expected.fingerprint
    table = pq.read_table(truth)
    assert table.num_rows == 500
    assert {"activity", "regime", "sigma", "drift", "jump"} <= set(table.column_names)
    assert not {"activity", "regime", "sigma", "drift", "jump"} & set(pq.read_schema(out).names)


def test_generate_speaks_to_people_too(tmp_path: Path, call: Call) -> None:
    out = tmp_path / "bars.parquet"
    code, text, _ = call("generate", "--bars", "50", "--out", str(out))
    assert code == 0
    assert "synthetic/btc-1m" in text
    assert "50 of 1m" in text


def test_truth_is_not_written_over_the_bars(tmp_path: Path, call: Call) -> None:
    out = str(tmp_path / "same.parquet")
    code, _, error = call("generate", "--bars", "5", "--out", out, "--truth", out)
    assert code == 2
    assert "truth" in error


def test_an_unknown_preset_is_refused_by_name(tmp_path: Path, call: Call) -> None:
    out = str(tmp_path / "x.parquet")
    code, _, error = call("generate", "--preset", "doge-1s", "--out", out)
    assert code == 2
    assert "preset" in error


def test_realism_gives_one_row_a_fact_and_says_what_it_cannot_judge(call: Call) -> None:
    code, text, _ = call("realism", "--seeds", "2", "--days", "6", "--json")
    payload = json.loads(text)
    assert code == 0
    assert len(payload["facts"]) == 34
    assert set(payload["facts"][0]) >= {"name", "value", "sd", "low", "high", "in_band"}
    assert payload["classifier_auc"] is None
    assert payload["classifier_auc_full"] is None
    assert payload["seeds"] == [1000, 1001]
    assert payload["manifest"]["config"]["preset"] == "btc-1m"
    assert payload["passed"] is False


def test_a_missed_gate_changes_the_exit_code_only_when_asked(call: Call) -> None:
    code, _, _ = call("realism", "--seeds", "1", "--days", "2", "--gate")
    assert code == 4


def test_realism_against_a_file(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "real.parquet"
    write_bars(file, generate(GeneratorConfig(n_bars=36 * 1440), Seeds(5)).bars)
    code, text, _ = call("realism", "--seeds", "2", "--days", "36", "--against", str(file))
    assert code == 0
    assert "AUC, closes alone" in text
    assert "bootstrap" in text


def test_a_file_may_judge_closes_while_bands_are_the_published_ones(
    tmp_path: Path, call: Call
) -> None:
    file = tmp_path / "real.parquet"
    write_bars(file, generate(GeneratorConfig(n_bars=36 * 1440), Seeds(5)).bars)
    asked = ("realism", "--seeds", "2", "--days", "36", "--json", "--against", str(file))
    own = json.loads(call(*asked)[1])
    found = json.loads(call(*asked, "--bands", "published")[1])
    assert found["classifier_auc"] == own["classifier_auc"]
    assert "published" in found["bands_source"]
    assert found["facts"] != own["facts"]


def test_bands_of_a_file_need_the_file(call: Call) -> None:
    code, _, error = call("realism", "--bands", "file")
    assert code == 2
    assert "--against" in error


def test_a_file_of_another_period_is_refused(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "hours.parquet"
    write_bars(file, generate(GeneratorConfig(preset="btc-1h", n_bars=9000), Seeds(5)).bars)
    code, _, error = call("realism", "--seeds", "1", "--days", "2", "--against", str(file))
    assert code == 2
    assert "period" in error


@pytest.mark.parametrize("word", ["generate", "realism"])
def test_help_names_the_options(word: str, call: Call) -> None:
    code, text, _ = call(word, "--help")
    assert code == 0
    assert "--preset" in text
