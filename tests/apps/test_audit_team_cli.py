from __future__ import annotations

import json

import pytest

from agent_gym.apps.cli import main
from tests.apps.cli_samples import make_call


@pytest.fixture
def call(monkeypatch, capsys):
    monkeypatch.setitem(main.COMMANDS, "audit", "Look for what is silently broken in an agent.")
    return make_call("audit", monkeypatch, capsys)


def test_a_sound_team_exits_with_0(call):
    code, out, _ = call("mappo", "--check", "credit", "--check", "fitness", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["agent"] == {"use": "mappo", "params": {}}
    assert [(each["check"], each["verdict"]) for each in told["checks"]] == [
        ("credit", "fine"),
        ("fitness", "unchecked"),
    ]


def test_settings_that_break_it_exit_with_1_and_say_why(call):
    code, out, _ = call(
        "amal", "--check", "correction", "--set", "learn.reuse.corrected=false", "--seed", 3
    )
    words = " ".join(out.split())
    assert code == 1
    assert "Audit of amal" in words
    assert "amal on 3m" in words
    assert "seed 3" in words
    assert "learned from as if the present one had" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["amal", "--check", "look-ahead"], "look-ahead"),
        (["amal", "--market", "synthetic/btc-1h"], "--market"),
        (["mappo", "--set", "learn.critic=own"], "ippo"),
        (["mappo", "--set", "learn.nothing=1"], "learn.nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words, said):
    code, _, err = call(*words)
    assert code == 2
    assert said in err
