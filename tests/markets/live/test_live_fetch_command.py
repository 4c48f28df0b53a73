from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from local_exchange import START_MS, LocalExchange, kline

from agent_gym.apps.cli import main as program
from agent_gym.apps.cli.data_fetch import register
from agent_gym.core.clock import SystemClock
from agent_gym.markets.cache import BarCache
from agent_gym.markets.parquet import read_native

Run = Callable[..., tuple[int, str, str]]
HOUR_MS = 3_600_000


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a call of the real program, with the command in the group of data commands."""
    app = typer.Typer()
    register(app)
    app.command("other")(lambda: None)

    def build() -> typer.Typer:
        whole = typer.Typer(pretty_exceptions_enable=False)
        whole.add_typer(app, name="data")
        whole.command("other")(lambda: None)
        return whole

    monkeypatch.setattr(program, "build", build)

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["agent-gym", "data", "fetch", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            program.main()
        seen = capsys.readouterr()
        return int(stop.value.code or 0), seen.out, seen.err

    return call


def span(end: str = "2024-02-01") -> list[str]:
    return ["--start", "2024-01-01", "--end", end]


def test_a_month_into_a_file(tmp_path: Path, exchange: LocalExchange, run: Run) -> None:
    out = tmp_path / "deep" / "btc.parquet"
    words = ["--exchange", "binance", "--symbol", "BTC/USDT", "--period", "1h", *span()]
    code, text, _ = run(*words, "--out", out, "--base-url", exchange.url, "--json")
    assert code == 0
    bars = read_native(out)
    assert len(bars) == 745
    assert bars.close[5] == float(kline(START_MS + 5 * HOUR_MS, HOUR_MS)[4])
    told = json.loads(text)
    assert told["bars"]["fingerprint"] == bars.fingerprint
    assert told["bars"]["source"] == "exchange"
    assert told["bars"]["sandbox"] is False
    assert bars.provenance.details["bars"] == 745


def test_a_person_sees_a_table(tmp_path: Path, exchange: LocalExchange, run: Run) -> None:
    out = tmp_path / "a.parquet"
    code, text, _ = run(*span(), "--out", out, "--base-url", exchange.url, "--sandbox")
    assert code == 0
    assert "745" in text
    assert "not market prices" in " ".join(text.split())
    assert read_native(out).provenance.sandbox


def test_the_cache_saves_the_second_download(
    tmp_path: Path, exchange: LocalExchange, run: Run
) -> None:
    words = [*span(), "--base-url", exchange.url, "--cache", tmp_path / "cache"]
    assert run(*words, "--out", tmp_path / "a.parquet")[0] == 0
    exchange.always["klines"] = "500"
    assert run(*words, "--out", tmp_path / "b.parquet")[0] == 0
    first, second = (read_native(tmp_path / f"{name}.parquet") for name in "ab")
    assert first.fingerprint == second.fingerprint


@pytest.mark.parametrize("as_json", [True, False])
def test_without_a_network_it_fails_with_a_remedy_and_no_file(
    tmp_path: Path, run: Run, as_json: bool
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    out = tmp_path / "a.parquet"
    words = [*span(), "--out", out, "--base-url", f"http://127.0.0.1:{port}"]
    code, text, noise = run(*words, *(["--json", "--retries", "0"] if as_json else []))
    assert code == 3
    told = text if as_json else noise
    assert "cannot reach binance" in told
    assert "Check the network" in told
    assert list(tmp_path.iterdir()) == []
    if as_json:
        assert json.loads(text)["error"] == "DataError"


def test_an_old_file_survives_a_failed_download(
    tmp_path: Path, exchange: LocalExchange, run: Run
) -> None:
    out = tmp_path / "a.parquet"
    assert run(*span(), "--out", out, "--base-url", exchange.url)[0] == 0
    before = out.read_bytes()
    exchange.missing = {START_MS + 7 * HOUR_MS}
    code, _, noise = run(*span(), "--out", out, "--base-url", exchange.url)
    assert code == 3
    assert "--keep-gaps" in noise
    assert out.read_bytes() == before
    assert run(*span(), "--out", out, "--base-url", exchange.url, "--keep-gaps")[0] == 0
    assert len(read_native(out)) == 744


@pytest.mark.parametrize(
    "words",
    [
        ["--exchange", "../../etc"],
        ["--exchange", "binanse"],
        ["--symbol", "BTC/USDX"],
        ["--period", "7h"],
        ["--period", "often"],
        ["--start", "yesterday"],
        ["--start", "2024-03-01"],
        ["--base-url", "ftp://x"],
        ["--timeout", "-1"],
        ["--retries", "999"],
    ],
)
def test_a_senseless_request_is_a_usage_error(
    tmp_path: Path, exchange: LocalExchange, run: Run, words: list[str]
) -> None:
    given = [*span(), "--base-url", exchange.url, "--out", tmp_path / "a.parquet", *words]
    assert run(*given)[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_the_output_may_not_be_a_directory(tmp_path: Path, run: Run) -> None:
    assert run(*span(), "--out", tmp_path)[0] == 2


def test_ctrl_c_keeps_what_is_whole(tmp_path: Path, exchange: LocalExchange) -> None:
    exchange.page_cap = 100
    exchange.faults["klines"].extend(["", "", "", "hang"])
    program = (
        "import sys, typer; from agent_gym.apps.cli.data_fetch import register;"
        "app = typer.Typer(); register(app); app(sys.argv[1:])"
    )
    words = [*span(), "--base-url", exchange.url, "--timeout", "60"]
    words += ["--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "a.parquet")]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        while len(exchange.asked("klines")) < 4:
            assert child.poll() is None, child.communicate()
            SystemClock().sleep_s(0.02)
        child.send_signal(signal.SIGINT)
        told, _ = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert child.returncode != 0, told
    assert not (tmp_path / "a.parquet").exists()
    months = BarCache(tmp_path / "cache").months("binance", "BTC/USDT", "1h")
    assert [(month.rows, month.complete) for month in months] == [(298, False)]
    assert not list(tmp_path.rglob("*.tmp"))


def test_only_those_who_fetch_wait_for_ccxt() -> None:
    code = "import sys, agent_gym.apps.cli.data_fetch; sys.exit('ccxt' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
