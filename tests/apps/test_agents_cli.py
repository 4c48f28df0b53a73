from __future__ import annotations

import json

import pytest

from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.apps.cli import agents
from agent_gym.core import registry
from agent_gym.core.registry import entry, names
from tests.apps.cli_samples import Call, make_call


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return make_call("agents", monkeypatch, capsys)


def test_the_list_names_every_agent_with_its_defaults(call):
    code, out, _ = call("list", "--json")
    listed = {each["name"]: each for each in json.loads(out)["agents"]}
    found = {name: each for name, each in listed.items() if name.startswith("rules/")}
    assert code == 0
    assert set(listed) == set(names("agent"))
    for name, each in found.items():
        assert each["about"], name
        assert "``" not in each["text"]
        known = entry("agent", name).config.model_fields
        assert [parameter["name"] for parameter in each["parameters"]] == list(known)
    defaults = {p["name"]: p["default"] for p in found["rules/sma-cross"]["parameters"]}
    assert defaults["fast"] == 20
    assert defaults["slow"] == 50


def test_trained_agents_are_listed_with_the_model_they_need(call):
    code, out, _ = call("list", "--json")
    listed = {each["name"]: each for each in json.loads(out)["agents"]}
    found = {name: each for name, each in listed.items() if name.startswith("sb3/")}
    assert code == 0
    assert set(found) == {f"sb3/{algo}" for algo in CONFIGS}
    for name, each in found.items():
        assert each["available"], name
        assert each["about"].startswith("Acts with a model that"), name
        model, deterministic = each["parameters"]
        assert (model["name"], model["required"], model["default"]) == ("model", True, "(required)")
        assert "folder of a trained model" in model["about"]
        assert (deterministic["name"], deterministic["default"]) == ("deterministic", True)
    code, out, _ = call("show", "sb3/ppo")
    assert code == 0
    assert "folder of a trained model" in " ".join(out.replace("│", " ").split())


def test_the_list_is_readable(call):
    code, out, _ = call("list")
    assert code == 0
    assert "rules/sma-cross" in out
    assert "fast=20" in out


def test_show_gives_limits_and_meaning(call):
    code, out, _ = call("show", "rules/sma-cross", "--json")
    fast = next(p for p in json.loads(out)["parameters"] if p["name"] == "fast")
    assert code == 0
    assert fast == {
        "name": "fast",
        "type": "int",
        "required": False,
        "default": 20,
        "limits": ">= 1",
        "about": "bars in the fast average",
    }
    code, out, _ = call("show", "rules/sma-cross")
    assert "bars in the fast average" in " ".join(out.replace("│", " ").split())
    code, out, _ = call("show", "rules/flat")
    assert "no parameters" in out


def test_an_unknown_agent_is_a_usage_error_with_the_nearest_name(call):
    code, _, err = call("show", "rules/buyhold")
    assert code == 2
    assert "Did you mean 'rules/buy-hold'" in err


def test_an_agent_whose_library_is_missing_is_listed_all_the_same(call, monkeypatch):
    def broken(module: str) -> None:
        raise ImportError("No module named 'torch'")

    monkeypatch.setattr(registry, "_entries", {})
    monkeypatch.setattr(registry, "import_module", broken)
    code, out, _ = call("list", "--json")
    assert code == 0
    assert {each["available"] for each in json.loads(out)["agents"]} == {False}
    code, out, _ = call("show", "rules/flat", "--json")
    assert code == 2
    assert "torch" in json.loads(out)["found"]


def test_a_required_parameter_says_so(monkeypatch):
    class Needy(registry.Config):
        depth: int

    def factory(config: Needy) -> None:
        """Do nothing."""

    monkeypatch.setitem(registry._entries, ("agent", "test/needy"), registry.Entry(Needy, factory))
    (depth,) = agents.describe_agent("test/needy")["parameters"]
    assert depth["required"]
    assert depth["default"] == "(required)"
