from __future__ import annotations

import json

import pytest

from agent_gym.apps.cli import main
from agent_gym.core import registry
from agent_gym.core.registry import Config, Entry
from tests.apps.cli_samples import Call, bars_file, make_call, name_walk
from tests.evaluation.audit_samples import Follower, Scribbler


class SampleConfig(Config):
    size: float = 1.0


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    for name, kind in (("test/follower", Follower), ("test/scribbler", Scribbler)):
        made = Entry(SampleConfig, lambda config, kind=kind: kind())
        monkeypatch.setitem(registry._entries, ("agent", name), made)
    monkeypatch.setitem(main.COMMANDS, "audit", "Look for what is silently broken in an agent.")
    name_walk(monkeypatch)
    return make_call("audit", monkeypatch, capsys)


def quick(*checks: str) -> list[str]:
    return [word for check in checks for word in ("--check", check)]


def test_a_sound_agent_exits_with_0_and_says_what_was_seen(call):
    code, out, _ = call("rules/sma-cross", *quick("look-ahead", "purity", "learning"))
    words = " ".join(out.split())
    assert code == 0
    assert "No error and no warning in 2 checks; 1 could not be made." in words
    assert "Looked at and found fine" in words
    assert "Not looked at, and why" in words
    assert "It shows no weights" in words


def test_a_shipped_rule_passes_every_check(call):
    code, out, _ = call("rules/rsi", "--bars", 300, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["counts"]["error"] == told["counts"]["warning"] == 0
    assert {each["check"] for each in told["checks"]} >= {
        "accounting",
        "clamps",
        "determinism",
        "evaluation-mode",
        "features",
        "leak-canary",
        "learning",
        "look-ahead",
        "options",
        "purity",
        "save-load",
        "time-reversal",
    }
    said = [f["what"] for each in told["checks"] for f in each["findings"]]
    assert any("Other processes" in what for what in said)


def test_an_error_finding_exits_with_1_and_says_how_to_mend_it(call):
    code, out, _ = call("test/scribbler", "--market", "test/walk", *quick("purity"))
    words = " ".join(out.split())
    assert code == 1
    assert "Errors: do not trust its results" in words
    assert "writes into the observations" in words
    assert "To mend it: Copy the features" in words
    code, out, _ = call("test/scribbler", "--market", "test/walk", *quick("purity"), "--json")
    told = json.loads(out)
    assert code == 1
    assert told["failed"]
    assert told["checks"][0]["findings"][0]["evidence"]["of"] == 719


def test_a_dead_option_of_a_named_agent_is_found(call):
    code, out, _ = call("test/follower", "--market", "test/walk", *quick("options"), "--json")
    assert code == 1
    assert "option size changes nothing" in json.loads(out)["checks"][0]["findings"][0]["what"]


def test_options_come_from_a_file_and_from_the_command(call, tmp_path):
    plain = tmp_path / "sma.yaml"
    plain.write_text("fast: 5\nslow: 30\n")
    code, out, _ = call(
        "rules/sma-cross", "--config", plain, "--set", "slow=40", *quick("purity"), "--json"
    )
    assert code == 0
    assert json.loads(out)["agent"]["params"] == {"fast": 5, "slow": 40}
    ref = tmp_path / "sma.json"
    ref.write_text('{"use": "rules/sma-cross", "params": {"fast": 7}}')
    code, out, _ = call("rules/sma-cross", "--config", ref, *quick("purity"), "--json")
    assert json.loads(out)["agent"]["params"] == {"fast": 7}
    code, _, err = call("rules/rsi", "--config", ref, *quick("purity"))
    assert code == 2
    assert "for another agent" in err


def test_a_file_of_bars_is_taken_up_to_the_bars_that_were_asked_for(call, tmp_path):
    path = bars_file(tmp_path, 320, kind="spot")
    code, out, _ = call("rules/flat", "--data", path, "--bars", 250, *quick("purity"), "--json")
    assert code == 0
    assert json.loads(out)["market"]["rows"] == 250


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("rules/smacross",), "Did you mean 'rules/sma-cross'"),
        (("rules/flat", "--check", "lookahead"), "Did you mean 'look-ahead'"),
        (("rules/flat", "--market", "synthetic/btc-1d"), "Did you mean"),
        (("rules/rsi", "--set", "perod=3"), "Did you mean 'period'"),
        (("rules/rsi", "--set", "period"), "--set takes name=value"),
        (("rules/flat", "--config", "gone.yaml"), "no such file"),
        (("rules/flat", "--bars", "20"), "--bars"),
        (("rules/flat", "--data", "a.csv", "--market", "test/walk"), "one source of bars"),
    ],
)
def test_what_cannot_be_meant_exits_with_2(call, words, hint):
    code, _, err = call(*words)
    assert code == 2
    assert hint in " ".join(err.split())


def test_a_file_that_is_not_a_mapping_exits_with_2(call, tmp_path):
    for text in ("- 1\n", "a: [1", "1: 2\n"):
        path = tmp_path / "odd.yaml"
        path.write_text(text)
        code, _, _ = call("rules/flat", "--config", path)
        assert code == 2


def test_broken_data_exit_with_3(call, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("timestamp,open,high,low,close,volume\n2024-01-01,1,1,1,nan,1\n")
    code, _, _ = call("rules/flat", "--data", path)
    assert code == 3
