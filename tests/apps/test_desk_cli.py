from __future__ import annotations

import json
import subprocess
import sys
from shlex import split

import pytest

from agent_gym.agents.desk import RecentContext, Score
from agent_gym.agents.desk.log import CoreAgentLogger
from agent_gym.apps.cli import main as program
from agent_gym.core.clock import ManualClock
from agent_gym.core.seeds import Seeds
from agent_gym.markets.parquet import write_bars
from agent_gym.training.desk.planted import PlantedLaw, draw, store_planted
from agent_gym.training.desk.play import PlayConfig, play
from tests.apps.cli_samples import Call, make_call
from tests.samples import random_bars
from tests.training.learning_samples import START, busy_records

LAW = PlantedLaw((2.5, -2.0), 0.0, decoys=0)


@pytest.fixture
def call(monkeypatch, capsys) -> Call:
    monkeypatch.setitem(program.COMMANDS, "desk", "The desk.")
    return make_call("desk", monkeypatch, capsys)


@pytest.fixture
def planted(tmp_path):
    """A memory with an edge that can be learned, and the time of its last signal."""
    path = tmp_path / "desk.db"
    ctx = RecentContext(maxlen=100_000, db=path)
    end = store_planted(ctx, draw(LAW, 320, Seeds(0)), spacing_s=1800.0)
    ctx.close()
    return path, end


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), None),
        (("--amount", "5"), "risk.exposure_limit"),
        (("--age-s", "100"), "time.stale"),
        (("--drawdown", "0.5"), "risk.drawdown_breaker"),
        (("--amount", "-1"), "schema.out_of_range"),
    ],
)
def test_one_signal_through_the_desk(call, words, code):
    status, out, _ = call("signal", *words, "--json")
    said = json.loads(out)
    assert status == 0
    assert said["code"] == code
    assert said["state"] == ("filled" if code is None else "rejected")
    assert call("signal", *words)[0] == 0


def test_analyze_a_log_with_bars(call, tmp_path):
    with CoreAgentLogger(tmp_path / "logs", ManualClock()) as log:
        for kind, at, record in busy_records(120):
            log.stored(kind, record, at)
    write_bars(tmp_path / "btc.parquet", random_bars(400, kind="spot"))
    words = ("--log", tmp_path / "logs", "--data", tmp_path / "btc.parquet")
    status, out, _ = call("analyze", *words, "--json")
    said = json.loads(out)
    assert (status, said["n_signals"]) == (0, 120)
    assert said["missed_value"]["risk.exposure_limit"]["n"] > 0
    status, out, _ = call("analyze", *words, "--window", "3d")
    assert status == 0
    assert "risk.exposure_limit" in out
    status, out, _ = call("verify-log", tmp_path / "logs", "--json")
    assert (status, json.loads(out)["ok"]) == (0, True)
    path = tmp_path / "logs" / "core_agent.jsonl"
    path.write_text(path.read_text().replace("momentum", "momentuM", 1))
    status, out, _ = call("verify-log", path, "--json")
    assert (status, json.loads(out)["ok"]) == (3, False)
    assert call("verify-log", path)[0] == 3


def test_train_and_retrain_and_rollback(call, planted, tmp_path):
    path, end = planted
    words = ("--db", path, "--horizon", "1h", "--now", end + 7200.0)
    status, out, _ = call("train", *words, "--json")
    said = json.loads(out)
    assert (status, said["status"]) == (0, "trained")
    assert said["metrics"]["auc"]["estimate"] > 0.6
    assert "logistic" in call("train", *words)[1]
    models = tmp_path / "models"
    status, out, _ = call("retrain", *words, "--store", models, "--dry-run", "--json")
    assert (status, json.loads(out)["status"]) == (0, "dry_run")
    status, out, _ = call("retrain", *words, "--store", models, "--json")
    assert json.loads(out)["status"] in {"shadow", "candidate"}
    assert call("retrain", *words, "--store", models)[0] == 0
    status, _, told = call("rollback", "--store", models)
    assert status == 4
    assert "no champion" in told


def test_rollback_without_models_says_what_to_do(call, tmp_path):
    status, _, told = call("rollback", "--store", tmp_path / "none")
    assert status == 2
    assert "no model has been kept here" in told
    assert "agent-gym desk retrain" in told
    assert not (tmp_path / "none").exists()


def test_what_a_desk_played_can_be_read_by_every_other_command(call, tmp_path):
    out = tmp_path / "played"
    status, text, _ = call("play", "--out", out, "--hours", "60", "--json")
    said = json.loads(text)
    assert status == 0
    assert said["signals"] > 300
    assert said["signals"] == said["accepted"] + sum(said["rejections"].values())
    assert said["settled"] == said["filled"] + said["paper"] > 200
    assert {"time.stale", "dup.duplicate_id", "risk.var_limit"} <= set(said["rejections"])
    found = {}
    for step in said["try"]:
        _, _, name, *words = split(step)
        status, text, told = call(name, *words, "--json")
        assert status == 0, told
        found[name] = json.loads(text)
    assert set(found) == {"analyze", "train", "retrain", "verify-log"}
    assert found["analyze"]["n_signals"] == said["signals"]
    assert found["train"]["status"] == "trained"
    assert found["train"]["dataset"]["notes"] == {}  # every row is what the desk saw
    assert found["train"]["metrics"]["auc"]["estimate"] > 0.6  # the planted law is there to find
    assert found["retrain"]["status"] in {"shadow", "candidate"}
    assert found["verify-log"]["ok"]
    status, _, told = call("play", "--out", out)
    assert status == 2
    assert "worked here already" in told


def test_a_played_desk_repeats_itself_and_listens_to_the_champion(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    class Never:
        version = "never"

        def score(self, features):
            return Score(0.0, 0.5, "never")

    words = ("--hours", "4", "--seed", "3")
    logs = []
    for name in ("one", "two"):
        status, text, _ = call("play", "--out", name, *words)
        assert status == 0
        assert "agent-gym desk verify-log" in text
        assert "bars.parquet \\\n    --horizon 4h" in text  # folded, so that it can be copied
        logs.append((tmp_path / name / "logs" / "core_agent.jsonl").read_bytes())
    assert logs[0] == logs[1]
    vetoed = play(tmp_path / "three", PlayConfig(hours=4.0, seed=3), Never(), "never")
    assert vetoed.filled == 0
    assert vetoed.rejections["model.low_score"] > 10
    empty = tmp_path / "models"
    empty.mkdir()
    status, text, _ = call(
        "play", "--out", tmp_path / "four", *words, "--model-store", empty, "--json"
    )
    assert (status, json.loads(text)["champion"]) == (0, None)


def test_one_signal_loads_nothing_that_learns():
    code = (
        "import sys, agent_gym.apps.cli.desk; print(sorted({'sklearn', 'river'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_wrong_words_are_usage_errors(call, tmp_path):
    status, _, told = call("signal", "--side", "up")
    assert status == 2
    assert "--side" in told
    assert "buy" in told
    assert call("play", "--out", tmp_path / "p", "--hours", "0")[0] == 2
    assert call("play")[0] == 2
    assert call("play", "--out", tmp_path / "p", "--model-store", tmp_path / "none")[0] == 2
    assert not (tmp_path / "p").exists()
    assert call("analyze")[0] == 2
    assert call("analyze", "--log", tmp_path / "none")[0] == 2
    assert call("verify-log", tmp_path / "none")[0] == 2
    assert call("train", "--db", tmp_path / "none.db")[0] == 2
    assert not (tmp_path / "none.db").exists()


def test_a_memory_with_one_signal_is_insufficient(call, tmp_path):
    ctx = RecentContext(db=tmp_path / "one.db")
    raw = {"signal_id": "s", "strategy": "m", "params": {"amount": 0.1}, "timestamp": START}
    ctx.store_signal(raw)
    ctx.close()
    status, out, _ = call("train", "--db", tmp_path / "one.db", "--json")
    assert (status, json.loads(out)["status"]) == (0, "insufficient")
    assert "200 are needed" in call("train", "--db", tmp_path / "one.db")[1]
