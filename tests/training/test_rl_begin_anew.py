"""``--fresh`` of experiments and searches, and searches from before a setting existed."""

from __future__ import annotations

import json

import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.training.rl import jobs
from agent_gym.training.rl.experiment import Experiment
from agent_gym.training.rl.run_records import FRESH
from agent_gym.training.rl.search import STUDY, SettingsSearch
from tests.training.experiment_samples import (
    BASE,
    InlineExecutor,
    StandInJob,
    experiment,
    starts,
)

SEARCH = {"space": {"agent.gamma": {"low": 0.6, "high": 0.9}}, "trials": 2, "seeds": 1}
OTHER = BASE | {"threads": 2}


@pytest.fixture(autouse=True)
def inline(monkeypatch):
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)


def test_an_experiment_begins_anew_with_other_settings(tmp_path):
    Experiment(experiment(), tmp_path, StandInJob).run()
    (tmp_path / "notes.txt").write_text("mine")
    other = Experiment(experiment(base=OTHER), tmp_path, StandInJob)
    with pytest.raises(ConfigError) as told:
        other.run()
    assert told.value.remedy == FRESH
    other.begin_anew()
    assert starts(tmp_path) == {}
    assert (tmp_path / "notes.txt").is_file()
    other.run()
    assert set(starts(tmp_path).values()) == {1}


def test_a_search_begins_anew_with_another_question(tmp_path):
    SettingsSearch(experiment(search=SEARCH), tmp_path, StandInJob).run()
    other = SettingsSearch(experiment(search=SEARCH, base=OTHER), tmp_path, StandInJob)
    with pytest.raises(ConfigError, match="another question") as told:
        other.run()
    assert "threads: 1 there, 2 here" in str(told.value.found)
    assert told.value.remedy == FRESH
    other.begin_anew()
    assert starts(tmp_path) == {}
    assert len(other.run()["trials"]) == 2


def test_a_search_from_before_a_setting_goes_on(tmp_path):
    SettingsSearch(experiment(search=SEARCH), tmp_path, StandInJob).run(trials=1)
    path = tmp_path / STUDY
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    for each in lines:
        asked = each.get("user_attr", {}).get("asked")
        if asked is not None:
            del asked["search"]["warmup_evaluations"]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert "warmup_evaluations" not in path.read_text()
    found = SettingsSearch(experiment(search=SEARCH), tmp_path, StandInJob).run()
    assert len(found["trials"]) == 2
