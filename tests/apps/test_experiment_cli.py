"""``agent-gym experiment``: what it prints, what it refuses, and that it goes on."""

import json
from functools import partial

import pytest
import yaml
from rich.console import Console

from agent_gym.apps.cli import experiment as command
from agent_gym.apps.cli import output
from agent_gym.apps.cli.experiment_view import steps_line
from agent_gym.training.rl import jobs
from agent_gym.training.rl.experiment import Experiment
from agent_gym.training.rl.search import SettingsSearch
from tests.apps.cli_samples import Call, make_call
from tests.training.experiment_samples import BASE, FAILS, InlineExecutor, StandInJob, starts

ASKED = {
    "name": "mine",
    "base": BASE,
    "grid": {"agent.gamma": [0.9, 0.8, 0.6]},
    "seeds": 5,
    "threshold": 200,
    "resamples": 200,
    "search": {"space": {"agent.gamma": {"low": 0.6, "high": 0.99}}, "seeds": 2, "trials": 3},
}


@pytest.fixture
def call(tmp_path, monkeypatch, capsys) -> Call:
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "screen", Console(width=200))
    monkeypatch.setattr(jobs, "make_executor", InlineExecutor)
    monkeypatch.setattr(command, "Experiment", partial(Experiment, job=StandInJob))
    monkeypatch.setattr(command, "SettingsSearch", partial(SettingsSearch, job=StandInJob))
    return make_call("experiment", monkeypatch, capsys)


@pytest.fixture
def write(tmp_path):
    def written(**changes):
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(ASKED | changes), encoding="utf-8")
        return str(path)

    return written


def test_run_show_and_run_again(call, write, tmp_path):
    code, out, err = call("run", write())
    assert code == 0, err
    for word in ("gamma_0.9", "272.0", "not reached (0 of 5)", "Against gamma_0.9", "p (Holm)"):
        assert word in out
    assert "15/15 gamma_0.6 seed 4: 184.0" in err
    folder = tmp_path / "home" / "experiments" / "mine"
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))["name"] == "mine"
    code, out, err = call("run", write(), "--json")
    assert code == 0
    payload = json.loads(out)
    assert payload["folder"] == str(folder)
    assert payload["arms"][0]["iqm"]["estimate"] == 272.0
    assert "15 of 15 runs were done before" in err
    assert set(starts(folder).values()) == {1}
    code, out, _ = call("show", "mine", "--json")
    assert code == 0
    assert json.loads(out)["arms"] == payload["arms"]


def test_seeds_are_an_option(call, write, tmp_path):
    assert call("run", write(), "--seeds", "2", "--workers", "2")[0] == 0
    assert len(starts(tmp_path / "home")) == 6
    _, out, _ = call("run", write(), "--seeds", "3", "--json")
    assert [arm["n"] for arm in json.loads(out)["arms"]] == [3, 3, 3]
    assert len(starts(tmp_path / "home")) == 9
    assert call("run", write(), "--seeds", "0")[0] == 2


def test_a_failed_run_is_told_and_the_others_count(call, write):
    path = write(grid={"agent.gamma": [0.9, FAILS]})
    code, out, err = call("run", path, "--seeds", "2")
    assert code == 4
    assert "Failed: gamma_0.5 seed 1: it went wrong" in out
    assert "it went wrong" in err
    assert "271" in out


def test_arms_are_compared_across_experiments(call, write):
    call("run", write(), "--seeds", "3")
    call("run", write(name="other", grid={"agent.gamma": [0.9, 0.99]}), "--seeds", "3")
    code, out, err = call("compare", "mine", "other", "--json")
    assert code == 0, err
    names = [arm["name"] for arm in json.loads(out)["arms"]]
    assert names == ["mine/gamma_0.9", "gamma_0.8", "gamma_0.6", "other/gamma_0.9", "gamma_0.99"]
    code, out, _ = call("compare", "mine/gamma_0.8", "other/gamma_0.99", "--json")
    first, second = json.loads(out)["arms"]
    assert (first["name"], second["name"]) == ("gamma_0.8", "gamma_0.99")
    assert second["against_first"]["improvement"]["estimate"] == 1.0
    assert first["steps_to_threshold"]["threshold"] == 200  # as the experiment was asked
    code, out, _ = call("compare", "mine", "--threshold", "250", "--json")
    assert json.loads(out)["threshold"] == 250
    code, _, err = call("compare", "mine/gamma_0.8")
    assert code == 2
    assert "only one arm" in err
    code, _, err = call("compare", "mine", "mine")
    assert code == 2
    assert "twice" in err


def test_search_goes_on(call, write, tmp_path):
    code, out, err = call("search", write(), "--trials", "2")
    assert code == 0, err
    assert "Best settings" in out
    assert "trial 2 of 2" in err
    code, out, _ = call("search", write(), "--json")
    found = json.loads(out)
    assert len(found["trials"]) == 3
    assert set(starts(tmp_path / "home").values()) == {1}
    made = SettingsSearch(command.read_experiment(tmp_path / "mine.yaml"))
    assert made.steps() == (6000, 6000)
    assert made.steps(6) == (6000, 12000)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "nothing.yaml"), 2, "cannot read"),
        (("run", "gamma_experimets"), 2, "gamma_experiments"),
        (("show", "nothing"), 2, "no such experiment"),
        (("compare", "nothing"), 2, "no such experiment"),
    ],
)
def test_what_does_not_exist_is_named(call, words, code, told):
    found, _, err = call(*words)
    assert found == code
    assert told in err


def test_wrong_files_are_refused_before_anything_is_written(call, write, tmp_path):
    for changes, told in (
        ({"grid": {"agent.gama": [1]}}, "gama"),
        ({"sedes": 3}, "seeds"),
        ({"base": {"algo": "sac", "env": "LunarLander-v3"}}, "sac"),
    ):
        code, _, err = call("run", write(**changes))
        assert code == 2
        assert told in err
    code, _, err = call("search", write(search=None))
    assert code == 2
    assert "nothing to search" in err
    assert not (tmp_path / "home").exists()


def test_other_settings_under_one_name_are_refused(call, write):
    call("run", write(), "--seeds", "1")
    code, _, err = call("run", write(overrides={"agent.ent_coef": 0.5}), "--seeds", "1")
    assert code == 2
    assert "agent.ent_coef: 0.0 there, 0.5 here" in err


def test_how_long_it_will_take():
    assert steps_line("x", 500, 1000, 500, 9.0) == "x: 500 of 1,000 steps"
    assert steps_line("x", 750, 1000, 500, 5.0).endswith("about 5 s left")
