from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from agent_gym.apps.cli.main import main
from agent_gym.apps.cli.read_options import build_request, with_request
from agent_gym.core.seeds import Seeds
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import is_native, read_native
from agent_gym.markets.readers import ReadRequest
from agent_gym.markets.repair import RepairPolicy

START_MS = 1_704_067_200_000
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["agent-gym", "data", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = capsys.readouterr()
        return int(stop.value.code or 0), seen.out, seen.err

    return call


def write_csv(path: Path, rows: Any = slice(None), n: int = 72) -> Path:
    rng = Seeds(0).child("csv").rng()
    close = np.round(100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum()), 2)
    table = pl.DataFrame(
        {
            "timestamp": START_MS + 3_600_000 * np.arange(n),
            "open": close,
            "high": close + 1.0,
            "low": close - 1.0,
            "close": close,
            "volume": np.ones(n),
        }
    )
    table[rows].write_csv(path)
    return path


def holed(path: Path) -> Path:
    return write_csv(path, [n for n in range(72) if n not in (10, 11)])


def test_import_writes_checked_bars(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "new" / "a.parquet"
    options = ("--symbol", "ETH/USDT", "--exchange", "binance", "--kind", "perpetual")
    code, text, _ = run("import", write_csv(tmp_path / "a.csv"), "--out", out, *options, "--json")
    assert code == 0
    bars = read_native(out)
    assert (len(bars), bars.provenance.origin) == (72, "a.csv")
    assert bars.instrument == Instrument(symbol="ETH/USDT", exchange="binance", kind="perpetual")
    said = json.loads(text)
    assert said["bars"]["fingerprint"] == bars.fingerprint
    assert (said["out"], said["found"]) == (str(out), {})


def test_import_refuses_a_gap_and_leaves_nothing_behind(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "out" / "a.parquet"
    code, text, errors = run("import", holed(tmp_path / "a.csv"), "--out", out)
    assert code == 3
    assert text == ""
    assert "row 11" in errors
    assert "--gaps fill" in errors
    assert not out.parent.exists()


def test_import_repairs_what_is_asked_and_counts_it(tmp_path: Path, run: Run) -> None:
    source, out = holed(tmp_path / "a.csv"), tmp_path / "a.parquet"
    code, text, _ = run("import", source, "--out", out, "--gaps", "fill", "--json")
    assert code == 0
    assert json.loads(text)["found"] == {"gap": 1}
    assert read_native(out).provenance.repairs == {"gaps_filled": 2}
    assert len(read_native(out)) == 72


def test_a_failed_import_keeps_the_old_file(tmp_path: Path, run: Run) -> None:
    out = tmp_path / "a.parquet"
    run("import", write_csv(tmp_path / "a.csv"), "--out", out)
    before = out.read_bytes()
    for extra in (
        ("--resample", "90s"),
        ("--funding", tmp_path / "absent.csv"),
        ("--start", "soon"),
    ):
        code, _, _ = run("import", tmp_path / "a.csv", "--out", out, *extra)
        assert code in (2, 3)
    assert run("import", holed(tmp_path / "b.csv"), "--out", out)[0] == 3
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet", "b.csv"]


def test_import_onto_itself_is_refused(tmp_path: Path, run: Run) -> None:
    source = write_csv(tmp_path / "a.csv")
    before = source.read_bytes()
    code, _, errors = run("import", source, "--out", tmp_path / "." / "a.csv")
    assert (code, source.read_bytes()) == (2, before)
    assert "onto itself" in errors


def test_import_attaches_funding_and_resamples(tmp_path: Path, run: Run) -> None:
    due = START_MS + 8 * 3_600_000 * np.arange(9)
    funding = tmp_path / "funding.csv"
    pl.DataFrame({"fundingTime": due, "fundingRate": np.full(9, 1e-4)}).write_csv(funding)
    out = tmp_path / "a.parquet"
    source = write_csv(tmp_path / "a.csv")
    assert run("import", source, "--out", out, "--funding", funding, "--resample", "1d")[0] == 0
    bars = read_native(out)
    np.testing.assert_allclose(bars.extra["funding"], 3e-4)
    assert len(bars) == 3


def test_check_accepts_a_clean_file(tmp_path: Path, run: Run) -> None:
    code, text, _ = run("check", write_csv(tmp_path / "a.csv"), "--json")
    said = json.loads(text)
    assert (code, said["accepted"], said["refusal"]) == (0, True, None)
    assert said["report"]["rows"] == 72
    code, text, _ = run("check", tmp_path / "a.csv")
    assert code == 0
    assert "Accepted" in text


def test_check_reports_and_exits_with_3(tmp_path: Path, run: Run) -> None:
    code, text, _ = run("check", holed(tmp_path / "a.csv"), "--json")
    said = json.loads(text)
    assert (code, said["accepted"]) == (3, False)
    assert said["report"]["counts"] == {"gap": 1}
    assert said["report"]["missing_bars"] == 2
    assert "--gaps fill" in said["refusal"]["remedy"]
    code, text, _ = run("check", tmp_path / "a.csv")
    assert code == 3
    assert "Refused" in text
    assert "2 missing" in text


def test_check_accepts_what_the_policy_repairs_and_still_reports_it(
    tmp_path: Path, run: Run
) -> None:
    code, text, _ = run("check", holed(tmp_path / "a.csv"), "--gaps", "keep", "--json")
    assert code == 0
    assert json.loads(text)["report"]["counts"] == {"gap": 1}


def test_info_speaks_of_any_file(tmp_path: Path, run: Run) -> None:
    source = holed(tmp_path / "a.csv")
    code, text, _ = run("info", source, "--json")
    said = json.loads(text)
    assert code == 0
    assert (said["bars"]["rows"], said["bars"]["period"]) == (70, "1h")
    assert said["found"] == {"gap": 1}
    run("import", source, "--out", tmp_path / "a.parquet", "--gaps", "keep", "--symbol", "A/B")
    code, text, _ = run("info", tmp_path / "a.parquet")
    assert code == 0
    assert "A/B" in text
    assert re.search(r"gaps_kept\D+2", text)


@pytest.mark.parametrize("command", ["import", "check", "info"])
@pytest.mark.parametrize("content", [b"", b"\0\1\2\xff", b"PAR1PAR1", b"a,b\n1,2\n"])
def test_no_bad_file_ends_in_a_traceback(
    tmp_path: Path, run: Run, command: str, content: bytes
) -> None:
    source = tmp_path / "bad"
    source.write_bytes(content)
    out = ("--out", tmp_path / "out.parquet") if command == "import" else ()
    code, text, _ = run(command, source, *out, "--json")
    assert code == 3
    assert json.loads(text)["error"] == "DataError"
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--gaps", "mend"), ("--period", "1x"), ("--start", "soon"), ("--naive", "Mars/Base")],
)
def test_a_wrong_option_is_the_users_error(
    tmp_path: Path, run: Run, option: str, value: str
) -> None:
    path = tmp_path / "a.csv"
    write_csv(path)
    table = pl.read_csv(path).with_columns(pl.from_epoch("timestamp", time_unit="ms"))
    table.write_csv(path)
    code, text, _ = run("check", path, option, value, "--json")
    assert code == 2
    assert json.loads(text)["error"] == "ConfigError"


def test_every_field_of_the_models_is_an_option() -> None:
    def command(request: ReadRequest) -> None:
        raise AssertionError(request)

    options = set(inspect.signature(with_request(command)).parameters)
    models = (ReadRequest, RepairPolicy, Instrument)
    fields = {name for model in models for name in model.model_fields}
    assert options == fields - {"instrument", "repair"}


def test_options_reach_the_request() -> None:
    empty = dict.fromkeys(RepairPolicy.model_fields)
    assert build_request(empty) == ReadRequest()
    made = build_request({"gaps": "keep", "symbol": "A/B", "tick": 0.1, "time_unit": "ms"})
    assert made.repair == RepairPolicy(gaps="keep")
    assert made.instrument == Instrument(symbol="A/B", exchange="unknown", tick=0.1)
    assert made.time_unit == "ms"


def test_our_own_file_is_known_as_such(tmp_path: Path, run: Run) -> None:
    run("import", write_csv(tmp_path / "a.csv"), "--out", tmp_path / "a.parquet")
    assert is_native(tmp_path / "a.parquet")
    assert run("check", tmp_path / "a.parquet")[0] == 0
    torn = bytearray((tmp_path / "a.parquet").read_bytes())
    torn[200] ^= 1
    (tmp_path / "a.parquet").write_bytes(torn)
    assert run("check", tmp_path / "a.parquet")[0] == 3
