"""``agent-gym umc``: words in, a walk, an explanation and a stress out; errors with a remedy."""

import json
from dataclasses import replace

import pytest

from agent_gym.apps.cli.umc_backtest import tier_words
from agent_gym.apps.cli.workspace import check_own_folder
from agent_gym.evaluation.umc_walk import write_run
from agent_gym.evaluation.umc_walk.store import TRACE
from agent_gym.markets.quality import format_time
from tests.apps.cli_samples import bars_file, make_call
from tests.evaluation.umc_walk_samples import small_run

SHORT = ("--train", "37d", "--validation", "6d", "--test", "9d", "--purge", 2, "--embargo", 20)
MARKET = ("--market", "known/m1", "--bars", 1_500, "--market-param", "drift_bp=15")
QUICK = ("--tiers", "exact", "--draws", 5, "--echo-size", 0)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    return make_call("umc", monkeypatch, capsys)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    write_run(folder, small_run())
    return folder


def test_a_walk_end_to_end_and_the_reason_of_a_trade(call, tmp_path):
    out = tmp_path / "walk"
    words = ("backtest", *MARKET, *SHORT, *QUICK, "--seed", 1, "--out", out)
    code, text, err = call(*words, "--json")
    assert (code, err) == (0, "")
    found = json.loads(text)
    assert [arm["label"] for arm in found["arms"]][:3] == ["umc", "cash", "buy & hold"]
    assert found["arms"][0]["verdict"]["word"]
    assert found["agent"]["params"]["cost_bp"] == 5.0
    assert found["manifest"]["command"].startswith("agent-gym umc backtest --market known/m1")
    assert found["registry"].endswith("home/trials.jsonl")
    assert {path.name for path in out.iterdir()} >= {"results.json", "trace.parquet", "agents"}
    at = format_time(found["market"]["first_ns"])
    code, text, _ = call("explain", "--run", out, "--at", at, "--json")
    assert code == 0
    told = json.loads(text)
    assert told["same_as_recorded"]
    assert told["sentence"].startswith("It ")
    code, text, _ = call("explain", "--run", out, "--at", "1999-01-01")
    assert code == 2


def test_an_explanation_for_a_person(call, kept):
    first = small_run().trace.ts[30]
    code, text, _ = call("explain", "--run", kept, "--at", format_time(int(first)))
    assert code == 0
    for word in ("Heads", "coherence", "lambda", "Free energy", "ambiguity", "because"):
        assert word in text


def test_a_stress_for_a_person(call, kept):
    words = ("--budget", 6, "--seeds", 1, "--stress-bars", 50, "--echo-size", 8)
    words += ("--no-scenarios", "--realism-bars", 200, "--fit-budget", 12)
    code, text, _ = call("stress", "--run", kept, *words, "--largest-distance", 100)
    assert code == 0
    said = " ".join(text.split())
    assert "The breaker held by the full rule (15 %, the bar that passed it, way out)" in said
    assert "by the strict rule (15 % and that bar alone) in" in said
    assert "6 crowds tried around it, 6 of them within the bound" in text


def test_a_stress_in_which_no_crowd_looks_real_says_so_and_fails_as_a_gate(call, kept):
    words = ("--budget", 6, "--seeds", 1, "--stress-bars", 50, "--echo-size", 8)
    words += ("--no-scenarios", "--realism-bars", 200, "--fit-budget", 12)
    words += ("--largest-distance", 0.001)
    code, text, _ = call("stress", "--run", kept, *words)
    assert code == 0
    assert "NO CROWD LOOKS REAL" in text
    assert "kurtosis" in text
    assert call("stress", "--run", kept, *words, "--gate")[0] == 4


WRONG = {
    "lambda": (("--lambda-base", 0.9), "lambda rests within its bounds", "0.1 to 0.46"),
    "echoes": (("--echo-size", -5), "--echo-size", "greater than or equal to 0"),
    "few echoes": (("--echo-size", 3), "at least 8", "--echo-size"),
    "tier": (("--tiers", "exakt"), "no tier is named 'exakt'", "Did you mean 'exact'?"),
    "input": (("--inputs", "momentum_25"), "no input is named", "momentum_24"),
    "own place": (("--param", "cost_bp=3"), "a place of its own", "costs of the account"),
    "parameter": (("--param", "kelly=3"), "kelly", "Known: "),
    "too short": (("--train", "90d"), "too few rows for a walk forward", "Take a longer series"),
    "validation": (("--train", "90d"), "too few rows for a walk forward", "--validation"),
    "registry": (
        ("--registry", "/dev/null/trials"),
        "not a folder",
        "another place with --registry",
    ),
    "report": (("--report", "page.pdf"), "the report is an HTML page", ".html"),
    "release": (("--release", "v1"), "there is no lockbox to open", "rows that are held out"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_said_with_a_remedy(call, name):
    words, what, remedy = WRONG[name]
    code, _, err = call("backtest", *MARKET, *SHORT, *QUICK, *words)
    assert code == 2
    assert what in err
    assert remedy in err


def test_a_folder_with_other_files_is_not_mixed_with_a_run(call, tmp_path, kept):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    code, _, err = call("backtest", *MARKET, *SHORT, *QUICK, "--out", mine)
    assert code == 2
    for word in ("holds other files", str(mine), "thesis.tex", "trace.parquet", "with --out"):
        assert word in err, word
    assert [path.name for path in mine.iterdir()] == ["thesis.tex"]
    check_own_folder(kept, TRACE)  # an earlier run may be written over
    check_own_folder(tmp_path / "new", TRACE)


def test_one_fold_is_one():
    run = small_run()
    assert tier_words(replace(run, folds=run.folds[:1])) == "Followed umc/exact in 1 fold"
    assert tier_words(run) == "Followed umc/exact in 2 folds"


def test_sources_and_dates_that_do_not_fit(call, tmp_path):
    code, _, err = call("backtest", *SHORT)
    assert (code, "one source of bars" in err) == (2, True)
    code, _, err = call("backtest", "--data", tmp_path / "none.parquet", *SHORT)
    assert code == 2
    file = bars_file(tmp_path, 300, kind="spot")
    code, _, err = call("backtest", "--data", file, "--start", "2031-01-01", *SHORT)
    assert code in (2, 3)
    code, _, err = call("backtest", "--data", file, "--start", "yesterday", *SHORT)
    assert code == 2
    assert "yesterday" in err
    code, _, err = call("backtest", "--data", file, *SHORT)
    assert (code, "too few rows" in err) == (2, True)


def test_a_folder_without_a_run_is_said(call, tmp_path):
    for command in (("explain", "--at", "2024-05-01T12:00"), ("stress",)):
        code, _, err = call(*command, "--run", tmp_path / "nowhere")
        assert code == 2
        assert "agent-gym umc backtest" in err
    code, _, err = call("stress")
    assert (code, "needs one agent" in err) == (2, True)
