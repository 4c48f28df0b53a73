"""The schema of suite files says what the loader says."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite, load_suite
from agent_gym.reporting.nightly import schema_of

CHECK = Draft202012Validator(schema_of("suite"))
ONE = {"name": "gap", "type": "price_gap"}
RIGHT = [
    [ONE],
    {"scenarios": [ONE]},
    {"id": "mine", "version": 2, "scenarios": [ONE | {"n_seeds": 3, "seed": 7, "params": {}}]},
    {"scenarios": [ONE], "agent": {"use": "rules/momentum"}, "desk": {"use": "core-agent"}},
    [ONE | {"tolerances": {"net_return": {"abs": 0.01}}}],
    {"scenarios": [ONE], "bot": {"command": "python -m bot", "folder": "."}},
]
WRONG = [
    [],
    {"scenarios": []},
    {"id": "mine"},
    [{"name": "gap"}],
    [{"type": "price_gap"}],
    [ONE | {"surprise": 1}],
    [ONE | {"name": "../gap"}],
    [ONE | {"n_seeds": 0}],
    [ONE | {"n_seeds": 1.5}],
    [ONE | {"seed": -1}],
    [ONE | {"seed": 2**48}],
    [ONE | {"hours": 0}],
    [ONE | {"tolerances": {"net_return": {"abs": -1}}}],
    [ONE | {"tolerances": {"net_return": {"rel": 1.5}}}],
    [ONE | {"tolerances": {"net_return": {"absolute": 1}}}],
    {"scenarios": [ONE], "agents": {"use": "rules/momentum"}},
    {"scenarios": [ONE], "agent": "rules/momentum"},
    {"scenarios": [ONE], "version": 0},
    {"scenarios": [ONE], "bot": "python bot.py"},
    {"scenarios": [ONE], "bot": {"folder": "."}},
    {"scenarios": [ONE], "bot": {"command": [], "folder": "."}},
    {"scenarios": [ONE], "bot": {"command": "python bot.py", "limit_s": 0}},
]


@pytest.mark.parametrize("value", RIGHT, ids=str)
def test_what_loads_validates(value, tmp_path):
    CHECK.validate(value)
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(value))
    load_suite(path)


@pytest.mark.parametrize("value", WRONG, ids=str)
def test_what_does_not_load_does_not_validate(value, tmp_path):
    assert not CHECK.is_valid(value)
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(value))
    with pytest.raises(ConfigError):
        load_suite(path)


def test_the_suite_that_comes_with_the_package_validates():
    text = (files("agent_gym") / "configs" / "sample_scenarios.json").read_text(encoding="utf-8")
    CHECK.validate(json.loads(text))


def test_no_field_is_left_out():
    known = schema_of("suite")["$defs"]
    assert set(known["suite"]["properties"]) == set(Suite.model_fields)
    assert set(known["scenario"]["properties"]) == set(ScenarioConfig.model_fields)
