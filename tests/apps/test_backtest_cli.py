from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from agent_gym.apps.cli import backtest as module
from agent_gym.apps.cli.workspace import check_writable, source_commit
from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.files import home
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from tests.apps.cli_samples import Call, bars_file, make_call, name_walk
from tests.samples import random_bars

AGENT = ("--agent", "rules/sma-cross", "--param", "fast=5", "--param", "slow=20")
MARKET = ("--market", "test/walk")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    name_walk(monkeypatch)
    return make_call("backtest", monkeypatch, capsys)


def document(call: Call, *words: object) -> dict:
    code, out, _ = call(*words, "--json")
    assert code == 0
    return json.loads(out)


def test_a_table_with_baselines(call):
    code, out, err = call(*AGENT, *MARKET)
    assert code == 0, err
    for name in ("rules/sma-cross", "fast=5 slow=20", "rules/flat", "rules/buy-hold"):
        assert name in out
    assert "300 bars of 1h" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_says_everything(call):
    found = document(call, *AGENT, *MARKET, "--seed", 3)
    engine = BacktestEngine(BacktestConfig())
    same = engine.run(
        random_bars(300, 3, kind="spot"),
        module.Ref(use="rules/sma-cross", params={"fast": 5, "slow": 20}),
        3,
    )
    assert found["equity_hash"] == same.equity_hash
    assert found["final_equity"] == same.equity[-1]
    assert found["metrics"] == same.metrics.as_dict()
    assert found["provenance"]["fingerprint"] == same.bars.fingerprint
    assert found["manifest"]["seeds"] == [3]
    assert set(found["baselines"]) == {
        "rules/flat",
        "rules/buy-hold",
        "rules/sma-cross",
        "rules/random",
    }
    assert found["out"] is None


def test_the_same_seed_gives_the_same_hash_and_another_does_not(call):
    words = ("--agent", "rules/random", *MARKET, "--seed")
    first, again, other = (document(call, *words, seed) for seed in (1, 1, 2))
    assert first == again
    assert first["equity_hash"] != other["equity_hash"]


def test_the_command_of_the_manifest_makes_it_again(call, tmp_path):
    file = bars_file(tmp_path)
    words = (*AGENT, "--data", file, "--start", "2024-01-02", "--end", "2024-01-09", "--capital")
    words += (5000, "--fee-bps", 2, "--participation", "none", "--no-allow-short", "--gaps", "keep")
    found = document(call, *words)
    program, command, *again = shlex.split(found["manifest"]["command"])
    assert (program, command) == ("agent-gym", "backtest")
    assert document(call, *again) == found
    assert found["manifest"]["config"]["backtest"]["participation"] is None
    assert found["manifest"]["config"]["backtest"]["allow_short"] is False
    assert found["provenance"]["rows"] == 169


OPTIONS = {
    "capital": ("--capital", "20000"),
    "taker_bps": ("--fee-bps", "40"),
    "maker_share": ("--maker-share", "0.5"),
    "slippage_bps": ("--slippage-bps", "9"),
    "half_spread_bps": ("--half-spread-bps", "9"),
    "impact": ("--impact", "0"),
    "latency_bars": ("--latency", "2"),
    "max_leverage": ("--leverage", "0.5"),
    "position_size": ("--position-size", "0.5"),
    "kelly_fraction": ("--kelly-fraction", "0.1"),
    "var_limit": ("--var-limit", "0.005"),
    "es_limit": ("--es-limit", "0.005"),
    "max_drawdown": ("--max-drawdown", "0.02"),
}


@pytest.mark.parametrize("field", OPTIONS)
def test_every_option_reaches_the_run(call, field):
    plain, changed = (
        document(call, *AGENT, *MARKET),
        document(call, *AGENT, *MARKET, *OPTIONS[field]),
    )
    assert changed["equity_hash"] != plain["equity_hash"]
    assert changed["manifest"]["config"]["backtest"][field] == float(OPTIONS[field][1])


def test_results_are_written_whole(call, tmp_path):
    out = tmp_path / "deep" / "run"
    found = document(call, *AGENT, *MARKET, "--out", out, "--plot")
    names = sorted(path.name for path in out.iterdir())
    pages = ["chart.png", "charts.json", "regimes.json", "report.html"]
    assert names == sorted([*pages, "equity.parquet", "fills.parquet", "results.json"])
    stored = json.loads((out / "results.json").read_text())
    assert stored == {name: found[name] for name in found if name not in ("out", "reports")}
    equity = pq.read_table(out / "equity.parquet")["equity"].to_numpy()
    assert float(equity[-1]) == found["final_equity"]
    assert np.isfinite(equity).all()
    assert [path.name for path in out.parent.iterdir()] == ["run"]


def test_a_report_has_the_format_of_its_name(call, tmp_path):
    names = ("a.html", "b.JSON", "c.png", "d.csv")
    words = [word for name in names for word in ("--report", tmp_path / "deep" / name)]
    found = document(call, *AGENT, *MARKET, *words)
    made = tmp_path / "deep"
    assert found["reports"] == [str(made / name) for name in names]
    assert found["out"] is None
    page = (made / "a.html").read_text()
    assert found["equity_hash"] in page
    assert "no evidence" in page
    told = json.loads((made / "b.JSON").read_text())
    assert told["figures"][told["subject"]] == found["metrics"]
    assert (made / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (made / "d.csv").read_text().startswith("time_ns,equity rules/sma-cross")
    assert str(tmp_path) not in page  # the same bytes wherever it goes


def test_a_report_is_looked_at_where_it_is(call, tmp_path):
    code, out, _ = call(*AGENT, *MARKET, "--report", tmp_path / "a.html")
    assert code == 0
    assert "Look at" in out


@pytest.mark.parametrize("name", ["a", "a.pdf"])
def test_a_report_without_a_format_is_refused_before_anything_is_run(
    call, tmp_path, monkeypatch, name
):
    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "open_bars", never)
    code, _, err = call(*AGENT, *MARKET, "--report", tmp_path / name)
    assert code == 2
    assert ".html" in err


def test_equal_runs_write_equal_bytes_wherever_they_go(call, tmp_path):
    for name in ("a", "b"):
        document(call, *AGENT, *MARKET, "--out", tmp_path / name)
    first = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "b").iterdir()} == first


def test_a_plot_without_a_folder_goes_home(call, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    found = document(call, *AGENT, *MARKET, "--plot")
    assert Path(found["out"]) == tmp_path / "home" / "backtests" / "rules-sma-cross"
    assert (Path(found["out"]) / "report.html").is_file()


def test_shorts_need_a_perpetual(call, tmp_path):
    words = ("--agent", "rules/sma-cross", "--param", "allow_short=true")
    spot = document(call, *words, "--data", bars_file(tmp_path, kind="spot"))
    perpetual = document(call, *words, "--data", bars_file(tmp_path, kind="perpetual"))
    assert perpetual["metrics"]["exposure"] > 1.5 * spot["metrics"]["exposure"]


USAGE = {
    "no agent": (MARKET, "needs an agent"),
    "no source": (AGENT, "one source of bars"),
    "both sources": ((*AGENT, *MARKET, "--data", "{file}"), "one source of bars"),
    "unknown agent": (("--agent", "rules/sma-cros", *MARKET), "Did you mean 'rules/sma-cross'"),
    "unknown market": ((*AGENT, "--market", "test/wolk"), "Did you mean 'test/walk'"),
    "unknown parameter": ((*AGENT, "--param", "fsat=3", *MARKET), "Did you mean 'fast'"),
    "bad parameter": (("--agent", "rules/sma-cross", "--param", "fast=many", *MARKET), "fast"),
    "no parameter": ((*AGENT, "--param", "fast", *MARKET), "name=value"),
    "parameter twice": ((*AGENT, "--param", "fast=6", *MARKET), "twice"),
    "bad capital": ((*AGENT, *MARKET, "--capital", "-1"), "capital"),
    "nan fee": ((*AGENT, *MARKET, "--fee-bps", "nan"), "finite"),
    "bad seed": ((*AGENT, *MARKET, "--seed", "-1"), "seed"),
    "word for a number": ((*AGENT, *MARKET, "--seed", "one"), "--seed"),
    "unknown option": ((*AGENT, *MARKET, "--fee", "1"), "--fee"),
    "stray word": ((*AGENT, *MARKET, "again"), "again"),
    "maker alone": ((*AGENT, *MARKET, "--maker-bps", "1"), "maker_share"),
    "end before start": (
        (*AGENT, *MARKET, "--start", "2024-02-01", "--end", "2024-01-01"),
        "start is after the end",
    ),
    "not a time": ((*AGENT, *MARKET, "--start", "yesterday"), "not a time"),
    "empty window": ((*AGENT, *MARKET, "--start", "2030-01-01"), "fewer than two bars"),
    "empty window of a file": (
        (*AGENT, "--data", "{file}", "--start", "2030-01-01"),
        "no bar of the file",
    ),
    "one bar of a file": (
        (*AGENT, "--data", "{file}", "--start", "2024-01-02", "--end", "2024-01-02"),
        "fewer than two bars",
    ),
    "one bar of a market": (
        (*AGENT, *MARKET, "--start", "2024-01-02", "--end", "2024-01-02"),
        "fewer than two bars",
    ),
    "a time beyond all": ((*AGENT, "--data", "{file}", "--end", "9999-12-31"), "too far away"),
    "no file": ((*AGENT, "--data", "{folder}/none.csv"), "no such file"),
    "a folder for a file": ((*AGENT, "--data", "{folder}"), "a directory"),
    "file options for a market": ((*AGENT, *MARKET, "--gaps", "keep"), "--data only"),
    "market options for a file": ((*AGENT, "--data", "{file}", "--bars", "50"), "--market only"),
    "a folder below a file": ((*AGENT, *MARKET, "--out", "{file}/x"), "is a file"),
    "a file for a folder": ((*AGENT, *MARKET, "--out", "{file}"), "is a file"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage_errors_exit_with_2_and_leave_nothing(call, tmp_path, case):
    words, message = USAGE[case]
    file = bars_file(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    filled = [str(word).format(file=file, folder=tmp_path) for word in words]
    if "--out" not in filled:
        filled += ["--out", str(tmp_path / "out")]
    code, out, err = call(*filled)
    assert code == 2
    assert message in " ".join((out + err).split())
    assert sorted(tmp_path.rglob("*")) == before


def test_an_unwritable_folder_is_a_usage_error(tmp_path, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(ConfigError, match="Permission denied"):
        check_writable(tmp_path / "new" / "folder")
    assert not list(tmp_path.iterdir())


def test_data_that_is_refused_exits_with_3(call, tmp_path):
    bars = random_bars(100)
    rows = ["ts,open,high,low,close,volume"]
    rows += [
        f"{t // 10**6},{o},{h},{lo},{c},{v}"
        for i, (t, o, h, lo, c, v) in enumerate(
            zip(bars.ts, bars.open, bars.high, bars.low, bars.close, bars.volume, strict=True)
        )
        if i != 50
    ]
    file = tmp_path / "holed.csv"
    file.write_text("\n".join(rows))
    code, _, err = call(*AGENT, "--data", file, "--out", tmp_path / "out")
    assert code == 3
    assert "--gaps keep" in " ".join(err.split())
    assert not (tmp_path / "out").exists()
    assert document(call, *AGENT, "--data", file, "--gaps", "keep")["provenance"]["rows"] == 99
    assert document(call, *AGENT, "--data", file, "--gaps", "fill")["provenance"]["rows"] == 100


def test_a_file_of_one_bar_is_refused_as_data(call, tmp_path):
    file = tmp_path / "one.csv"
    file.write_text("ts,open,high,low,close,volume\n2024-01-01T00:00:00Z,1,2,1,2,3\n")
    code, _, err = call(*AGENT, "--data", file)
    assert (code, "--period 1h" in err) == (3, True)
    code, _, err = call(*AGENT, "--data", file, "--period", "1h")
    assert code == 3
    assert "longer file" in err


def test_a_run_that_fails_exits_with_4_and_leaves_nothing(call, tmp_path, monkeypatch):
    def fail(*args: object, **kwargs: object) -> None:
        raise VenueError("the venue burned down")

    monkeypatch.setattr("agent_gym.evaluation.saved.write_sheet", fail)
    code, out, _ = call(*AGENT, *MARKET, "--out", tmp_path / "out", "--plot", "--json")
    assert code == 4
    assert json.loads(out)["what"] == "the venue burned down"
    assert not list(tmp_path.iterdir())


def test_home_is_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.delenv("AGENT_GYM_HOME", raising=False)
    assert home() == Path("results")
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    assert home() == tmp_path


def test_the_commit_is_read_from_the_checkout(tmp_path):
    package = tmp_path / "agent_gym"
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    assert source_commit(package) is None
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text("# pack\nabc refs/heads/main\ndef refs/heads/other\n")
    assert source_commit(package) == "abc"
    (git / "refs" / "heads" / "main").write_text("123\n")
    assert source_commit(package) == "123"
    (git / "HEAD").write_text("456\n")
    assert source_commit(package) == "456"
