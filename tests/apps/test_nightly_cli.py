"""The commands run, nightly, compare and replay: words in, files and exit codes out."""

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "pipeline"))

from nightly_samples import (
    DirectCrew,
    clock_at,
    contents,
    stand_still,
    without_processes,
)

from agent_gym.apps.cli import main as cli
from agent_gym.apps.cli import nightly as nightly_command
from agent_gym.apps.cli import output
from agent_gym.pipeline.nightly import one_run, replay

WORDS = ("--desk", "tiny/desk", "--import", "tiny_scenarios", "--workers", "1")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    without_processes(monkeypatch.setattr)
    monkeypatch.setattr(replay, "LocalCrew", DirectCrew)
    monkeypatch.setattr(replay, "code_identity", stand_still)
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    for name in ("run", "nightly", "compare", "replay", "report"):
        monkeypatch.setitem(cli.COMMANDS, name, "x")
    suite = [{"name": name, "type": "tiny", "n_seeds": 8} for name in ("alpha", "beta")]
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(suite))

    def run(command, *words, suite=path, as_json=True):
        if command in ("run", "nightly"):
            words = ("--scenarios", str(suite), *WORDS, *words)
        code = cli.run([command, *words, *(["--json"] if as_json else [])], as_json=as_json)
        said = capsys.readouterr()
        return code, json.loads(said.out) if as_json and said.out else said.out + said.err

    run.home = tmp_path / "home"
    return run


def approved(call):
    code, said = call("nightly", "--update-baseline", "--reason", "first")
    assert (code, said["exit_code"]) == (0, 0)
    assert said["approved_baseline"]


def test_run_prints_a_table_and_writes_reports(call, tmp_path):
    code, text = call("run", "--print", "--out", str(tmp_path / "r.json"), as_json=False)
    assert code == 0
    assert "alpha" in text
    assert "gain" in text
    report = json.loads((tmp_path / "r.json").read_text())
    assert report == json.loads((call.home / "reports/run.json").read_text())
    assert report["totals"] == {"ok": 2, "error": 0, "missing": 0}
    code, said = call("run", "--seeds", "3")
    assert (code, said["scenarios"][0]["n_seeds"]) == (0, 3)


def test_the_first_night_is_3_with_a_remedy_and_then_0(call):
    code, said = call("nightly")
    assert code == 3
    assert "--update-baseline" in said["messages"][0]
    approved(call)
    code, said = call("nightly")
    assert (code, said["verdict"], said["kept"]) == (0, "pass", 16)
    code, text = call("nightly", "--print-summary", as_json=False)
    assert code == 0
    assert "GOOD" in text


def test_a_regression_fails_if_asked_and_its_replay_command_works(call):
    approved(call)
    worse = ("--desk", "tiny/desk:level=9.0")
    assert call("nightly", *worse)[0] == 0
    comment = call.home.parent / "comment.md"
    code, said = call("nightly", *worse, "--fail-on-regression", "--comment", str(comment))
    assert (code, said["verdict"]) == (1, "regressed")
    assert comment.read_text() == Path(said["files"]["summary"]).read_text()
    for run in ("latest", said["run_id"]):
        assert call("report", run, "--markdown", "-")[1]["markdown"] == comment.read_text()
    assert call("report", "latest", "--markdown", "-", as_json=False)[1] == comment.read_text()
    assert call("report", "latest", "--markdown", str(call.home / "x.md"))[0] == 0
    assert (call.home / "x.md").read_text() == comment.read_text()
    assert call("nightly", "--comment", str(call.home))[0] == 2
    command = said["diff"]["regressions"][0]["replay"]
    command = command[0] if isinstance(command, list) else command
    words = command.split()
    assert words[:2] == ["agent-gym", "replay"]
    code, found = call("replay", *words[2:])
    assert (code, found["same"]) == (0, True)
    assert call("compare", "baseline", "latest", "--fail-on-regression")[0] == 1
    code, text = call("compare", "baseline", "latest", "--only-changed", as_json=False)
    assert code == 0
    assert "alpha/gain" in text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--update-baseline",), "reason"),
        (("--update-baseline", "--reason", "  "), "reason"),
        (("--reason", "x"), "--update-baseline"),
        (("--accept-regression", "alpha/gain"), "--update-baseline"),
        (("--update-baseline", "--reason", "x", "--accept-regression", "alpha"), "SCENARIO/METRIC"),
        (("--update-baseline", "--reason", "x", "--accept-regression", "alpha/gian"), "gain"),
        (("--agent", "rules/sma-crss"), "rules/sma-cross"),
        (("--desk", "tiny/dsk"), "tiny/desk"),
        (("--desk", "tiny/desk:levle=3"), "level"),
        (("--plant", "no_such_fault"), "planted fault"),
        (("--date", "tomorrow"), "date"),
        (("--workers", "0"), "workers"),
        (("--import", "no_such_module"), "no_such_module"),
        (("--fail-on-regresion",), "--fail-on-regression"),
    ],
)
def test_what_cannot_be_meant_is_exit_2_and_writes_nothing(call, words, found):
    code, text = call("nightly", *words, as_json=False)
    assert code == 2, text
    assert found in text
    assert not (call.home / "reports").exists()


def test_a_planted_run_is_refused_as_a_baseline_before_it_is_played(call):
    code, text = call(
        "nightly", "--plant", "x", "--update-baseline", "--reason", "x", as_json=False
    )
    assert code == 2
    assert "planted" in text
    assert DirectCrew.played == []


@pytest.mark.parametrize("text", ["[]", '{"scenarios": []}'])
def test_nothing_selected_is_exit_2(call, tmp_path, text):
    path = tmp_path / "none.json"
    path.write_text(text)
    for command in ("run", "nightly"):
        code, said = call(command, suite=path, as_json=False)
        assert code == 2
        assert "no scenario" in said


def test_all_crashed_is_exit_4(call, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([{"name": "a", "type": "tiny", "params": {"fail": "raise"}}]))
    assert call("nightly", suite=path)[0] == 4
    assert call("run", suite=path)[0] == 4


def test_a_held_lock_is_exit_5(call):
    with one_run(call.home / "nightly.lock", clock_at(), "another"):
        for command in ("nightly", "run"):
            code, said = call(command)
            assert (code, said["error"]) == (5, "LockHeld")
            assert "another" in said["found"]


def test_a_dry_run_changes_nothing(call):
    code, said = call("nightly", "--dry-run")
    assert (code, said["scenarios"][0]["to_play"]) == (0, 8)
    assert not call.home.exists()
    approved(call)
    before = contents(call.home)
    code, said = call("nightly", "--dry-run")
    assert (said["scenarios"][0]["known"], said["problem"]) == (8, "")
    assert contents(call.home) == before
    assert call("nightly", "--dry-run", as_json=False)[0] == 0


@pytest.mark.parametrize("words", [("../x", "alpha", "1"), ("latest", "alpha", "-1")])
def test_replay_of_what_cannot_be_is_exit_2(call, words):
    assert call("replay", *words, as_json=False)[0] == 2


def test_replay_commands_are_whole_at_80_columns(call, monkeypatch):
    approved(call)
    monkeypatch.setattr(output, "screen", Console(width=80))
    monkeypatch.setattr(nightly_command, "screen", output.screen)
    worse = ("--desk", "tiny/desk:level=9.0")
    code, text = call("nightly", *worse, "--print-summary", as_json=False)
    assert code == 0
    printed = [line.split() for line in text.splitlines() if "agent-gym replay" in line]
    assert len(printed) == 2
    for words in printed:  # a seed that was cut would be one that nobody played
        assert call("replay", *words[2:])[0] == 0


def test_a_seed_that_was_not_played_is_exit_2(call):
    call("nightly")
    code, text = call("replay", "latest", "alpha", "12345", as_json=False)
    assert code == 2
    assert "--any-seed" in text
    assert call("replay", "latest", "alpha", "12345", "--any-seed")[0] == 0


def test_events_that_must_not_be_are_said_by_run(call, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps([{"name": "a", "type": "tiny", "params": {"fail": "accident"}}]))
    code, text = call("run", suite=path, as_json=False)
    assert code == 0
    assert "MUST BE ZERO and is not: a/accidents" in text
    code, said = call("run", "--fail-on-regression", suite=path)
    assert (code, said["exit_code"]) == (4, 4)
    assert call("run", "--fail-on-regression")[0] == 0


def test_a_quarantine_takes_a_person_and_a_reason(call):
    words = ("nightly", "--quarantine", "alpha/gain")
    assert call(*words, as_json=False)[0] == 2
    assert call("nightly", "--quarantine", "alpha/gian", "--reason", "x", as_json=False)[0] == 2
    code, text = call("nightly", "--quarantine", "alpha/accidents", "--reason", "x", as_json=False)
    assert code == 2
    assert "never" in text
    code, said = call(*words, "--reason", "a noisy feed")
    assert (code, said["entries"][0]["reason"]) == (0, "a noisy feed")
    assert DirectCrew.played == []
    assert json.loads(Path(said["file"]).read_text())["entries"] == said["entries"]


def test_usage_errors_show_no_progress(call):
    for words in (("--desk", "tiny/dsk"), ("--plant", "no_such_fault")):
        code, text = call("nightly", *words, as_json=False)
        assert code == 2
        assert "to play" not in text
        assert "stopped" not in text
