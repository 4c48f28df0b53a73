"""Words that cannot be read: the same shape of error as any other, in text and in JSON."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_gym.apps.cli import data, market
from agent_gym.apps.cli.main import main
from agent_gym.evaluation import saved
from tests.apps.cli_samples import bars_file, name_walk

Run = Callable[..., tuple[int, str, str]]
FIELDS = {"error", "what", "where", "found", "expected", "remedy"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["agent-gym", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = capsys.readouterr()
        return int(stop.value.code or 0), seen.out, seen.err

    return call


BAD_WORDS = {
    "unknown command": (("bogus",), "bogus", "backtest"),
    "near command": (("data", "chek", "x"), "chek", "Did you mean 'check'"),
    "unknown option": (("backtest", "--bogus"), "--bogus", "agent-gym backtest --help"),
    "near option": (("backtest", "--fee", "1"), "--fee", "Did you mean --fee-bps"),
    "missing argument": (("data", "check"), "FILE is missing", "data check --help"),
    "missing option": (("data", "import", "x.csv"), "--out is missing", ".parquet"),
    "missing value": (("backtest", "--seed"), "--seed", "agent-gym backtest --help"),
    "word for a number": (("backtest", "--seed", "one"), "'one'", "integer"),
    "fraction for a number": (("backtest", "--seed=1.5"), "'1.5'", "integer"),
    "too small": (("market", "generate", "--bars", "0", "--out", "x.csv"), "'0'", "--bars"),
    "negative": (("market", "generate", "--seed", "-1", "--out", "x.csv"), "'-1'", "--seed"),
    "stray word": (("agents", "list", "again"), "'again'", "agents list"),
    "value for a switch": (("backtest", "--plot=3"), "--plot", "--help"),
    "model option": (("backtest", "--agent", "rules/rsi", "--fee-bps", "-1"), "-1.0", "--fee-bps"),
    "not finite": (("backtest", "--agent", "rules/rsi", "--fee-bps", "nan"), "nan", "finite"),
    "bad choice": (("data", "check", "x.csv", "--gaps", "mend"), "'mend'", "--gaps"),
    "empty word": (("demo", "--out", ""), "empty", "--out"),
    "empty value": (("demo", "--out="), "empty", "--out"),
    "unknown preset": (("market", "generate", "--preset", "btc1h", "--out", "x.csv"), "btc1h",
                       "Did you mean 'btc-1h'"),
    "not a time": (("data", "fetch", "--out", "x.csv", "--start", "soon", "--end", "2024-01-02"),
                   "'soon'", "option --start"),
    "huge parameter": (("backtest", "--agent", "rules/rsi", "--param", "period=" + 30 * "9"),
                       30 * "9", "too large"),
    "parameters at odds": (("backtest", "--agent", "rules/sma-cross", "--param", "fast=99"),
                           "99", "agents show rules/sma-cross"),
    "period too long": (("data", "import", "x.csv", "--out", "y.csv", "--resample", "99999999d"),
                        "99999999d", "--resample"),
    "time too far": (("data", "check", "x.csv", "--end", "9999-12-31"), "9999", "2261"),
    "start after end": (("data", "check", "x.csv", "--start", "2024-02-01", "--end", "2024-01-01"),
                        "start is after the end", "Exchange"),
}  # fmt: skip


def test_a_value_that_is_missing_blames_the_command_that_wants_it(run: Run) -> None:
    for words in (("report", "demo", "--markdown"), ("data", "check", "x.csv", "--end")):
        _, _, err = run(*words)
        path = " ".join(("agent-gym", *words[: len(words) - 2]))
        assert f"where:    {path}\n" in err
        assert f"`{path} --help`" in err


def test_an_option_that_was_refused_is_not_recommended(run: Run) -> None:
    code, out, _ = run("mcp", "--json")
    said = json.loads(out)
    assert (code, said["where"]) == (2, "agent-gym mcp")
    assert said["remedy"] == "`agent-gym mcp --help` lists what can be said"
    _, out, _ = run("--json", "agents")
    assert "after the whole command" in json.loads(out)["remedy"]


@pytest.mark.parametrize("case", BAD_WORDS)
def test_bad_words_exit_with_2_in_one_shape(
    run: Run, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, found, hint = BAD_WORDS[case]
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert found in err
    assert hint in err
    assert "remedy:" in err
    code, out, err = run(*words, "--json")
    assert code == 2
    said = json.loads(out)
    assert set(said) == FIELDS
    assert said["error"] == "ConfigError"
    assert said["remedy"]
    assert found in out
    assert hint in out
    assert err == ""
    assert not list(tmp_path.iterdir())


def test_the_place_of_json_does_not_matter(run: Run) -> None:
    for words in (("data", "check", "--json"), ("data", "--json", "check"), ("--json", "nope")):
        code, out, _ = run(*words)
        assert code == 2
        assert set(json.loads(out)) == FIELDS
    code, out, _ = run("--json", "agents", "list")  # known, but only after the command
    assert code == 2
    assert "after the whole command" in json.loads(out)["remedy"]


def test_help_and_version_are_no_errors(run: Run) -> None:
    assert run("--version")[0] == 0
    assert run("backtest", "--help")[0] == 0
    code, out, _ = run()  # nothing asked for: the help, but not a success
    assert code == 2
    assert "backtest" in out


def test_a_value_of_a_parameter_may_be_empty(run: Run) -> None:
    code, _, err = run("backtest", "--agent", "rules/rsi", "--param", "period=")
    assert code == 2
    assert "period" in err


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_stopped_run_leaves_nothing(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    signal_number: signal.Signals,
    as_json: bool,
) -> None:
    name_walk(monkeypatch)
    source = bars_file(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    handler = signal.getsignal(signal.SIGTERM)

    def stop(*args: object, **kwargs: object) -> None:
        assert len(sorted(tmp_path.rglob("*"))) >= len(before)
        os.kill(os.getpid(), signal_number)

    last = ("--json",) if as_json else ()
    monkeypatch.setattr(saved, "write_json", stop)
    monkeypatch.setattr(market, "write_series", stop)
    monkeypatch.setattr(data, "resample", stop)
    out = tmp_path / "new" / "a.parquet"
    for words in (
        ("backtest", "--agent", "rules/flat", "--market", "test/walk", "--out", out.parent),
        ("market", "generate", "--bars", 50, "--out", out, "--truth", tmp_path / "t.parquet"),
        ("data", "import", source, "--out", out, "--resample", "1d"),
    ):
        code, text, err = run(*words, *last)
        assert code == 128 + signal_number
        left = [path for path in sorted(tmp_path.rglob("*")) if path != out.parent]
        assert left == before
        if signal_number == signal.SIGINT:
            assert "stopped" in (json.loads(text)["what"] if as_json else err)
    assert signal.getsignal(signal.SIGTERM) == handler


def test_too_many_bars_are_refused_before_the_memory_is_full(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    for bars in ("3000000", "99999999999999999999"):
        code, _, err = run("market", "generate", "--preset", "btc-1h", "--bars", bars, "--out", out)
        assert code == 2
        assert "2262" in err
        assert bars in err
    assert not list(tmp_path.iterdir())


def test_a_lack_of_memory_is_an_error_of_the_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr(market, "generate", fail)
    code, out, _ = run("market", "generate", "--out", tmp_path / "a.parquet", "--json")
    assert code == 4
    assert json.loads(out)["found"] == "Unable to allocate 3 TiB"
    assert "fewer bars" in json.loads(out)["remedy"]


def test_a_name_that_the_terminal_cannot_show_is_still_an_error(run: Run, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.csv")
    Path(odd).write_text("x")
    code, out, _ = run("data", "check", odd, "--json")
    assert code == 2
    assert "UTF-8" in json.loads(out)["what"]


OPTIONS = ("--gaps", "--start", "--end", "--period", "--naive", "--tick", "--price-divisor")
VALUES = ("", "keep", "nan", "-1", "1e400", 25 * "9", "2024-01-01", "9999-01-01", "1h", "1w", "ü")


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(st.sampled_from(OPTIONS), st.sampled_from(VALUES)), max_size=3),
    st.sampled_from(["check", "info"]),
)
def test_no_words_end_in_a_traceback(
    run: Run, tmp_path: Path, pairs: list[tuple[str, str]], command: str
) -> None:
    source = tmp_path / "walk.parquet"
    if not source.is_file():
        bars_file(tmp_path, 30)
    words = [word for pair in pairs for word in pair]
    code, out, _ = run("data", command, source, *words, "--json")
    assert code in (0, 2, 3)
    assert isinstance(json.loads(out), dict)
    assert [path.name for path in tmp_path.iterdir()] == ["walk.parquet"]
