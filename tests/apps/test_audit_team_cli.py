from __future__ import annotations

import json

import pytest

from agent_gym.apps.cli import main
from agent_gym.apps.cli.audit_team import audited_config
from agent_gym.training.marl.audit import TeamSubject
from agent_gym.training.marl.config import SHIPPED, shipped_config
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


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.yaml")))
def test_every_shipped_training_is_taken(call, name):
    code, out, _ = call(name, "--check", "verdicts", "--json")
    assert code == 0
    assert json.loads(out)["agent"]["use"] == name
    config = audited_config(name, None, {"seed": 7})
    assert config == shipped_config(name, {"seed": 7})
    assert TeamSubject(name, config).small.learn == shipped_config(name).learn


def test_a_training_that_is_named_unlike_its_algorithm_is_audited(call):
    code, out, _ = call("mappo-short", "--check", "credit", "--check", "updates", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["subject"] == "mappo-short"
    assert told["market"]["algorithm"] == "mappo"
    assert [each["verdict"] for each in told["checks"]] == ["fine", "fine"]


def test_a_file_of_another_algorithm_is_refused(call, tmp_path):
    own, other = tmp_path / "own.yaml", tmp_path / "other.yaml"
    own.write_text("n_envs: 2\n")
    other.write_text("learn:\n  critic: own\n")
    assert call("mappo-short", "--config", own, "--check", "verdicts")[0] == 0
    code, _, err = call("mappo-short", "--config", other, "--check", "verdicts")
    assert code == 2
    assert "ippo" in err


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
        (["mappo-short", "--set", "learn.reuse={}"], "mappo-reuse"),
        (["mappo", "--set", "learn.nothing=1"], "learn.nothing"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words, said):
    code, _, err = call(*words)
    assert code == 2
    assert said in err
