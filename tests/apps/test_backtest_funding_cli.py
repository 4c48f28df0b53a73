"""``agent-gym backtest`` on perpetuals: funding comes with the bars, from a file, or not at all."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from agent_gym.markets.parquet import write_bars
from tests.apps.cli_samples import Call, bars_file, make_call
from tests.samples import START_NS, random_bars, without_funding

HOLD = ("--agent", "rules/buy-hold")
EIGHT_HOURS_NS = 8 * 3_600 * 10**9
DUE = 38  # every eight hours over 300 of them


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return make_call("backtest", monkeypatch, capsys)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a file of 300 hours of a perpetual without funding."""
    path = tmp_path / "bare.parquet"
    write_bars(path, without_funding(random_bars(300, 5)))
    return path


def rates_file(folder: Path, n: int = DUE, rate: float = 1e-3) -> Path:
    """Write rates as an exchange hands them out, from the first bar on."""
    path = folder / "rates.csv"
    due = (START_NS + EIGHT_HOURS_NS * np.arange(n)) // 10**6
    pl.DataFrame({"fundingTime": due, "fundingRate": np.full(n, rate)}).write_csv(path)
    return path


def document(call: Call, *words: object) -> dict:
    code, out, err = call(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_perpetual_without_funding_is_refused_with_a_way_out(call, bare, tmp_path):
    code, out, err = call(*HOLD, "--data", bare, "--out", tmp_path / "out")
    assert code == 3
    said = flat(out + err)
    for words in ("no funding column", "--funding FILE", "--missing-funding zero"):
        assert words in said
    assert not (tmp_path / "out").exists()


def test_zero_is_said_in_the_report_the_json_and_the_manifest(call, bare, tmp_path):
    words = (*HOLD, "--data", bare, "--missing-funding", "zero", "--out", tmp_path / "run")
    found = document(call, *words, "--plot")
    facts = {"due": True, "rates": None, "missing_funding": "zero", "bars_as_zero": 300}
    assert found["provenance"]["funding"] == found["manifest"]["data"]["funding"] == facts
    assert found["manifest"]["config"]["backtest"]["missing_funding"] == "zero"
    assert found["metrics"]["funding"] == 0.0
    assert "--missing-funding zero" in found["manifest"]["command"]
    assert "none charged: no rates are known" in (tmp_path / "run" / "report.html").read_text()
    code, out, _ = call(*HOLD, "--data", bare, "--missing-funding", "zero")
    assert code == 0
    assert "Funding: none charged: no rates are known, and zero was asked for" in flat(out)


def test_rates_of_a_file_are_charged(call, bare, tmp_path):
    rates = rates_file(tmp_path)
    found = document(call, *HOLD, "--data", bare, "--funding", rates)
    same = document(call, *HOLD, "--data", bars_file(tmp_path, 300, seed=5, funding=1e-3))
    assert found["metrics"]["funding"] > 0.0
    assert found["equity_hash"] == same["equity_hash"]
    assert found["provenance"]["funding"]["rates"] == "rates.csv"
    assert found["provenance"]["details"]["funding"] == {"origin": "rates.csv", "rates": DUE}
    free = document(call, *HOLD, "--data", bare, "--missing-funding", "zero")
    assert free["equity_hash"] != found["equity_hash"]
    _, out, _ = call(*HOLD, "--data", bare, "--funding", rates)
    assert "Funding: charged at the rates of rates.csv" in flat(out)


def test_the_command_of_the_manifest_charges_the_same_rates_again(call, bare, tmp_path):
    words = (*HOLD, "--data", bare, "--funding", rates_file(tmp_path, 20))
    found = document(call, *words, "--missing-funding", "zero", "--end", "2024-01-10")
    program, command, *again = shlex.split(found["manifest"]["command"])
    assert (program, command) == ("agent-gym", "backtest")
    assert "--funding" in again
    assert document(call, *again) == found


def test_bars_beyond_the_rates_are_refused_or_said_to_be_zero(call, bare, tmp_path):
    words = (*HOLD, "--data", bare, "--funding", rates_file(tmp_path, 20))
    code, out, err = call(*words)
    assert code == 3
    assert "140 of 300 bars without a rate" in flat(out + err)
    found = document(call, *words, "--missing-funding", "zero")
    assert found["provenance"]["funding"]["bars_as_zero"] == 140
    assert found["metrics"]["funding"] > 0.0
    _, out, _ = call(*words, "--missing-funding", "zero")
    assert "and zero for 140 of 300 bars" in flat(out)
    cut = document(call, *words, "--end", "2024-01-06")
    assert cut["provenance"]["funding"]["bars_as_zero"] == 0


USAGE = {
    "no such file": (("--funding", "{folder}/none.csv"), "no such file"),
    "a folder": (("--funding", "{folder}"), "a directory"),
    "neither refuse nor zero": (("--missing-funding", "maybe"), "'refuse' or 'zero'"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage_errors_exit_with_2(call, bare, tmp_path, case):
    words, message = USAGE[case]
    filled = [word.format(folder=tmp_path) for word in words]
    code, out, err = call(*HOLD, "--data", bare, *filled)
    assert code == 2
    assert message in flat(out + err)


def test_rates_that_could_not_be_used_are_refused(call, tmp_path):
    rates = rates_file(tmp_path)
    spot = bars_file(tmp_path, kind="spot")
    code, out, err = call(*HOLD, "--data", spot, "--funding", rates)
    assert code == 2
    assert "funding is paid on perpetuals alone" in flat(out + err)
    own = bars_file(tmp_path, funding=1e-4)
    code, out, err = call(*HOLD, "--data", own, "--funding", rates)
    assert code == 2
    assert "funding rates of their own" in flat(out + err)


def test_spot_needs_no_word_about_funding(call, tmp_path):
    file = bars_file(tmp_path, kind="spot")
    found = document(call, *HOLD, "--data", file)
    assert found["provenance"]["funding"] == {"due": False}
    _, out, _ = call(*HOLD, "--data", file)
    assert "Funding" not in out


def test_rates_go_with_a_market_by_name_too(call, bare, tmp_path):
    words = (*HOLD, "--market", "file", "--market-param", f"path={bare}")
    code, _, err = call(*words)
    assert code == 3
    assert "no funding column" in flat(err)
    found = document(call, *words, "--funding", rates_file(tmp_path))
    assert found["provenance"]["funding"]["rates"] == "rates.csv"


def test_synthetic_markets_come_with_their_funding(call):
    found = document(call, *HOLD, "--market", "synthetic/btc-1h", "--bars", 300)
    assert found["provenance"]["funding"]["rates"] == "bars"
    assert found["provenance"]["funding"]["bars_as_zero"] == 0
    assert found["metrics"]["funding"] != 0.0
