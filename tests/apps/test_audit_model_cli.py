from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_gym.core.registry import names
from agent_gym.evaluation.audit.models import OF_GAMES, OF_MODELS
from tests.apps.cli_samples import Call, make_call
from tests.training.rl_export_samples import MARKET, config_of, trained


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    trained(folder / "cart", config_of("a2c", "CartPole-v1", steps=64))
    trained(folder / "trader", config_of("ppo", "market", env_params=MARKET, steps=128))
    return folder


@pytest.fixture
def audit(tmp_path, monkeypatch, capsys) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    return make_call("audit", monkeypatch, capsys)


def by_check(out: str) -> dict[str, str]:
    return {each["check"]: each["verdict"] for each in json.loads(out)["checks"]}


def test_a_model_of_a_game_has_the_checks_that_make_sense(audit, models):
    code, out, err = audit(models / "cart", "--json")
    assert code == 0, err + out
    told = by_check(out)
    assert set(told) == set(names("check"))
    assert {name for name, verdict in told.items() if verdict == "unchecked"} == set(OF_GAMES)
    assert told["determinism"] == told["purity"] == told["save-load"] == "fine"
    assert json.loads(out)["market"]["env"] == "CartPole-v1"
    assert "reset() forgets the last episode" in out  # a model learns nothing while it acts
    assert "the agent learns" not in out
    code, out, _ = audit(models / "cart", "--check", "purity", "--check", "accounting")
    words = " ".join(out.split())
    assert code == 0
    assert "CartPole-v1, model" in words
    assert "A game keeps no books" in words


def test_a_model_of_a_market_has_all_but_what_asks_whether_it_learns(audit, models):
    code, out, err = audit(models / "trader", "--bars", 300, "--json")
    told = by_check(out)
    assert code == 0, err + out
    assert set(told) == set(names("check"))
    assert {name for name in told if told[name] == "unchecked"} <= {*OF_MODELS, "leak-canary"}
    assert set(OF_MODELS) <= {name for name in told if told[name] == "unchecked"}
    assert told["look-ahead"] == told["accounting"] == "fine"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--set", "deterministic=false"), "no settings to change"),
        (("--market", "known/m1"), "plays a game"),
        (("--check", "lookahead"), "Did you mean 'look-ahead'"),
    ],
)
def test_what_cannot_be_meant_exits_with_2(audit, models, words, hint):
    code, _, err = audit(models / "cart", *words)
    assert code == 2
    assert hint in " ".join(err.split())


def test_a_damaged_file_is_named_even_if_the_model_acts(audit, models, tmp_path):
    folder = trained(tmp_path / "cart", config_of("a2c", "CartPole-v1", steps=64))
    (folder / "model.zip").write_bytes(b"PK other")
    code, _, err = audit(folder)
    assert code == 3
    assert "model.zip" in err
