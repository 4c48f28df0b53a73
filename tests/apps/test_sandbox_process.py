"""The command as people use it: started, traded on by the bots of the docs, ended; or refused."""

import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agent_gym.apps.cli.main import run
from agent_gym.apps.sandbox.keys import make_keys, read_keys, write_keys
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from tests.apps.sandbox_samples import COMMAND, ROOT, Process

MARKET = ("--market", "synthetic/btc-1h", "--bars", "300", "--seed", "7")
EXAMPLES = ROOT / "examples" / "sandbox"
NODE_MODULES = Path(os.environ.get("AGENT_GYM_NODE_MODULES", ROOT / "node_modules"))


def environment(told, **more):
    account = told["accounts"][0]
    return os.environ | {
        "SANDBOX_URL": told["url"],
        "SANDBOX_KEY": account["api_key"],
        "SANDBOX_SECRET": account["secret"],
        "PYTHONPATH": str(ROOT),
        **more,
    }


def bot(told, *words, **more):
    return subprocess.run(
        words,
        env=environment(told, **more),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def session_with(folder, *command):
    """Let a bot trade to the end of a session of its own; returns what it said, and its results."""
    folder.mkdir()
    words = ["sandbox", *MARKET, "--speed", "step", "--port", "0", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--bot", shlex.join(map(str, command))],
        cwd=ROOT,
        env=os.environ | {"AGENT_GYM_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    home = Path(told["folder"])
    results = json.loads((home / "bot" / "results.json").read_text())
    assert results["metrics"] == told["results"]["bot"]["metrics"]
    return done.stderr, results, home


def test_the_bot_of_the_docs_earns_the_same_twice(tmp_path):
    runs = [session_with(tmp_path / str(i), sys.executable, EXAMPLES / "bot.py") for i in (1, 2)]
    (said, first, home), (again, second, _) = runs
    assert said == again
    assert "fills" in said
    assert first["equity_hash"] == second["equity_hash"]
    assert first["metrics"] == second["metrics"]
    assert first["metrics"]["trades"] > 4
    assert len((EXAMPLES / "bot.py").read_text().splitlines()) <= 30
    assert (home / "bot" / "report.html").stat().st_size > 10_000


def test_the_bot_with_brackets_earns_the_same_twice(tmp_path):
    command = (sys.executable, EXAMPLES / "bracket_bot.py")
    runs = [session_with(tmp_path / str(i), *command) for i in (1, 2)]
    (said, first, home), (again, second, _) = runs
    assert said == again
    assert "brackets" in said
    assert first["equity_hash"] == second["equity_hash"]
    orders = json.loads((home / "bot" / "orders.json").read_text())["orders"]
    ends = {order["type"]: order["status"] for order in orders if order["status"] == "FILLED"}
    assert {"MARKET", "LIMIT_MAKER", "STOP_LOSS"} <= ends.keys()


SPY = """
import os, pathlib, sys
pathlib.Path(sys.argv[1]).write_text(os.environ["SANDBOX_SECRET"])
"""


def test_secrets_are_in_no_file(tmp_path):
    spied = tmp_path / "spied"
    session_with(tmp_path / "session", sys.executable, "-c", SPY, spied)
    files = [path for path in (tmp_path / "session").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert [path for path in files if spied.read_bytes() in path.read_bytes()] == []


def test_a_bot_that_fails_fails_the_command_and_is_still_judged(capsys, tmp_path):
    command = shlex.join([sys.executable, "-c", "raise SystemExit(7)"])
    told = refused(capsys, *MARKET, "--speed", "step", "--name", "bad", "--bot", command)
    assert told["error"] == "AgentError"
    assert "7" in told["found"]
    assert (tmp_path / "home" / "sandbox" / "bad" / "bot" / "results.json").is_file()
    assert "no such program" in refused(capsys, *MARKET, "--bot", "/nothing/here")["what"]


def test_the_bot_in_javascript_trades_the_same(tmp_path):
    if shutil.which("node") is None or not (NODE_MODULES / "ccxt").is_dir():
        pytest.skip("node or its ccxt is not installed; AGENT_GYM_NODE_MODULES names the folder")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    shutil.copy(EXAMPLES / "bot.mjs", tmp_path)
    _, wanted, _ = session_with(tmp_path / "python", sys.executable, EXAMPLES / "bot.py")
    _, found, _ = session_with(tmp_path / "js", "node", tmp_path / "bot.mjs")
    assert found["equity_hash"] == wanted["equity_hash"]


def test_the_bot_that_calls_tools_trades_the_same(tmp_path):
    _, wanted, _ = session_with(tmp_path / "ccxt", sys.executable, EXAMPLES / "bot.py")
    said, found, _ = session_with(tmp_path / "mcp", sys.executable, EXAMPLES / "mcp_bot.py")
    assert found["equity_hash"] == wanted["equity_hash"]
    assert f"'equity': {wanted['metrics']['final_equity']}" in said


def test_a_bot_on_streams_trades_while_the_clock_flies(tmp_path):
    """Twenty simulated hours a second; how much it trades depends on the machine."""
    place = Process(tmp_path, *MARKET, "--speed", "72000", "--name", "fast")
    done = bot(place.told, sys.executable, EXAMPLES / "stream_bot.py")
    assert done.returncode == 0, done.stderr
    assert place.end(signal.SIGTERM) == 0
    folder = Path(place.told["folder"])
    assert folder.name == "fast"
    results = json.loads((folder / "bot" / "results.json").read_text())
    assert results["metrics"]["bars"] == 201
    assert results["metrics"]["trades"] >= 1


def test_a_session_that_is_ended_early_is_written_down(tmp_path):
    place = Process(tmp_path, *MARKET, "--speed", "step")
    account = place.told["accounts"][0]
    headers = {"X-MBX-APIKEY": account["api_key"]}
    httpx.post(f"{place.told['url']}/sandbox/step?bars=5", headers=headers, timeout=60)
    assert place.end(signal.SIGINT) == 0
    results = Path(place.told["folder"]) / "bot" / "results.json"
    assert json.loads(results.read_text())["metrics"]["bars"] == 7


def test_several_symbols_of_a_snapshot(tmp_path):
    config = SnapshotConfig(duration_minutes=300)
    path = BenchmarkDataGenerator(config).generate(seed=1).save(tmp_path)
    place = Process(tmp_path, "--snapshot", str(path), "--speed", "step", "--history", "2")
    info = httpx.get(f"{place.told['url']}/api/v3/exchangeInfo", timeout=60).json()
    assert len(info["symbols"]) == len(place.told["symbols"]) > 1
    assert place.end(signal.SIGTERM) == 0


def test_a_file_of_bars_is_traded_under_its_own_symbol(tmp_path):
    rows = [
        f"{1_704_067_200_000 + i * 60_000},{100 + i % 7},110,90,{100 + i % 5},50"
        for i in range(200)
    ]
    path = tmp_path / "bars.csv"
    path.write_text("\n".join(["timestamp,open,high,low,close,volume", *rows]))
    options = ("--data", str(path), "--symbol", "ETH/EUR", "--speed", "step")
    place = Process(tmp_path, *options)
    candles = httpx.get(
        f"{place.told['url']}/api/v3/klines?symbol=ETHEUR&interval=5m", timeout=60
    ).json()
    assert len(candles) == 21
    assert place.end(signal.SIGTERM) == 0


# What does not start.


def refused(capsys, *words):
    code = run(["sandbox", "--json", "--port", "0", *words], as_json=True)
    assert code != 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))


def keys_file(folder, **changes):
    account = {
        "name": "ann",
        "api_key": "k" * 20 + "7a9",
        "secret": "q7Zk2Lm9Xp4Rv8Tn3Bw6Yc1Hd5Jf0GsEaU",
    }
    path = folder / "keys.json"
    path.write_text(json.dumps({"accounts": [account | changes]}))
    path.chmod(0o600)
    return path


def test_a_public_bind_does_not_start_by_accident(capsys, tmp_path):
    told = refused(capsys, *MARKET, "--host", "0.0.0.0")
    assert "others could reach" in told["what"]
    told = refused(capsys, *MARKET, "--host", "0.0.0.0", "--remote")
    assert "--keys" in told["expected"]


@pytest.mark.parametrize(
    "secret",
    [
        "changeme" * 5,
        "secret",
        "a" * 64,
        "your-secret-goes-here-" + "q7Zk2Lm9Xp4R",
        "1234567890" * 4,
        "",
    ],
)
def test_a_placeholder_for_a_secret_does_not_start(capsys, tmp_path, secret):
    told = refused(capsys, *MARKET, "--keys", str(keys_file(tmp_path, secret=secret)))
    assert "secret" in told["what"]
    assert secret not in json.dumps(told) or len(secret) < 8


def test_a_good_file_of_keys_is_read_and_not_shown(tmp_path):
    place = Process(tmp_path, *MARKET, "--speed", "step", "--keys", str(keys_file(tmp_path)))
    assert place.told["accounts"] == []
    key = {"X-MBX-APIKEY": "k" * 20 + "7a9"}
    answer = httpx.post(f"{place.told['url']}/sandbox/step", headers=key, timeout=60)
    assert answer.json()["bar"] == 100
    assert place.end(signal.SIGTERM) == 0


def test_keys_that_others_may_read_do_not_start(capsys, tmp_path):
    path = keys_file(tmp_path)
    path.chmod(0o644)
    assert "others may read" in refused(capsys, *MARKET, "--keys", str(path))["what"]
    link = tmp_path / "link.json"
    link.symlink_to(keys_file(tmp_path))
    assert "no file of keys" in refused(capsys, *MARKET, "--keys", str(link))["what"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"accounts": []}', '{"accounts": [{"name": "a"}]}', "[" * 9_999]
)
def test_a_file_that_holds_no_keys_does_not_start(tmp_path, content):
    path = tmp_path / "keys.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises((DataError, ConfigError)):
        read_keys(path)


def test_made_keys_are_random_and_kept_from_others(tmp_path):
    first, second = make_keys(["ann", "ben"])
    assert len({first.api_key, first.secret.get_secret_value(), second.api_key}) == 3
    assert first.secret.get_secret_value() not in repr(first)
    path = tmp_path / "deep" / "keys.json"
    write_keys(path, [first, second])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_keys(path) == (first, second)
    with pytest.raises(Exception, match="cannot be kept"):
        write_keys(path, [first])
    with pytest.raises(ConfigError, match="same name"):
        make_keys(["ann", "ann"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "one source"),
        ((*MARKET, "--data", "x.csv"), "one source"),
        ((*MARKET, "--speed", "fast"), "--speed"),
        ((*MARKET, "--speed", "0"), "--speed"),
        ((*MARKET, "--history", "300"), "over before"),
        ((*MARKET, "--keys", "x.json", "--account", "ann"), "stand in the file"),
        ((*MARKET, "--name", "../x"), "--name"),
        (("--data", "nothing.csv"), ""),
        (("--snapshot", "nothing.json"), ""),
    ],
)
def test_what_does_not_fit_is_told_before_it_starts(capsys, words, said):
    assert said in refused(capsys, *words)["what"]
