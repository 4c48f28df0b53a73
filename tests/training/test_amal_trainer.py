"""Whole trainings of AMAL: bits after a stop, parts that act, and what is left without them."""

import json

import numpy as np
import pytest

from agent_gym.core import ConfigError
from agent_gym.training.marl import (
    AmalConfig,
    EvaluationConfig,
    LearnConfig,
    ReuseConfig,
    TeamTrainConfig,
    shipped_config,
    train_team,
)
from agent_gym.training.marl.amal.arms import ARMS, arm_config
from agent_gym.training.marl.amal.diagnosis import diagnose
from agent_gym.training.marl.collection import Episodes
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.worlds import battle_worlds
from tests.training.amal_samples import MEMORY, amal, session_of, small_amal, tiny_model
from tests.training.marl_samples import small
from tests.training.test_marl_trainer import Killed, content

FEW = EvaluationConfig(every=1_000, episodes=1, final_episodes=1)


@pytest.mark.parametrize(
    ("training", "changes"),
    [({}, {}), ({"network": MEMORY}, {}), ({}, {"information": "distillation"})],
    ids=["plain", "memory", "distillation"],
)
def test_stopped_and_taken_up_again_it_is_the_same_to_the_bit(training, changes, tmp_path):
    config = small_amal(training, **changes)
    train_team(config, tmp_path / "whole")

    def killed(progress):
        if progress.iteration == 3:  # checkpoints are written after every iteration here
            raise Killed

    with pytest.raises(Killed):
        train_team(config, tmp_path / "broken", killed)
    train_team(config, tmp_path / "broken")
    assert content(tmp_path / "whole") == content(tmp_path / "broken")


def learned(folder, config):
    """Return the hash of what a few iterations lead to."""
    steps = {"env_steps": 480, "evaluation": FEW, "checkpoint_every": 10_000}
    changed = TeamTrainConfig.model_validate(config.model_dump() | steps)
    return train_team(changed, folder).policy.version


def test_without_bonus_and_auxiliary_teams_it_is_reuse_to_the_bit(tmp_path):
    reuse = small(learn=LearnConfig(epochs=2, reuse=ReuseConfig()))
    nothing = {"lambda_info": 0.0, "auxiliary_share": 0.0, "late_share": 0.0}
    plain = learned(tmp_path / "reuse", reuse)
    assert learned(tmp_path / "nothing", small_amal(**nothing)) == plain
    assert learned(tmp_path / "bonus", small_amal(**nothing | {"lambda_info": 0.1})) != plain
    both = {"auxiliary_share": 0.5, "late_share": 0.5}
    assert learned(tmp_path / "teams", small_amal(**nothing | both)) != plain


CHANGES = [
    {"lambda_info": 0.1},
    {"information": "variance"},
    {"information": "error"},
    {"information": "distillation"},
    {"variance_floor": 0.5},
    {"largest_bonus": 1.0},
    {"episodic": True},
    {"num_auxiliary_agents": 6},
    {"evolution_frequency": 1},
    {"late_share": 0.4},
    {"auxiliary_weight": 0.6},
    {"auxiliary_weight": 0.0},
    {"min_ess": 1.0},
    {"model": tiny_model(updates=5)},
    {"model": tiny_model(window=80)},
    {"model": tiny_model(held_out_every=2)},
    {"model": tiny_model(symmetric=True)},
    {"cem_space": "last_layer"},
    {"cem_directions": 8},
    {"cem_elites": 0.3},
    {"cem_episodes": 50.0},
    {"cem_selection": False},
    {"cem_recentre": 0.3},
    {"cem_kl": 0.2},
    {"cem_max_kl": 0.101},
    {"cem_probes": 16},
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return learned(tmp_path_factory.mktemp("base"), small_amal())


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_setting_changes_what_is_learned(change, base, tmp_path):
    assert learned(tmp_path, small_amal(**change)) != base


def mixed_after_wins(**changes):
    """Return what is mixed for a team that has won every battle for a while."""
    session = session_of(small_amal(**{"late_share": 0.1} | changes))
    for _ in range(12):
        batch, _ = session.collector.collect(session.learner.policy)
        mixed = session.mixer.mix(batch, Episodes(1, 1, 20.0), session.learner.policy)
    return mixed


def test_a_team_that_wins_needs_less_of_everything():
    def told(**changes):
        mixed = mixed_after_wins(**changes)
        return mixed.env_steps, mixed.shares["information"]

    steps, share = told(late_win_rate=0.1)
    assert told(late_win_rate=0.9)[0] > steps
    assert told(late_win_rate=0.1, late_share=0.2)[0] > steps
    assert told(late_win_rate=0.1, win_memory=0.99)[1] > share


def auxiliary_steps(win_rate):
    """Return what auxiliary teams play in ten iterations beside a team that wins so often."""
    session = session_of(small_amal(late_win_rate=0.1))
    session.mixer.bonus.win_rate = win_rate
    for _ in range(10):
        batch, _ = session.collector.collect(session.learner.policy)
        session.mixer.mix(batch, Episodes(0, 0, 0.0), session.learner.policy)
    return session.mixer.auxiliaries.steps


def test_auxiliary_teams_go_home_as_the_team_wins():
    half = auxiliary_steps(0.5)
    assert 0 < half < auxiliary_steps(0.2)
    assert auxiliary_steps(1.0) == 0


def test_auxiliary_rows_that_are_too_far_off_are_left_out():
    near, far = session_of(small_amal()), session_of(small_amal(min_ess=1.0))
    for session in (near, far):
        for _ in range(2):
            session.iterate()
    assert near.told[-1].used > 0.9
    assert far.told[-1].used == 0.0
    assert 0.3 < far.told[-1].ess < 1.0


def test_bonuses_and_leaks_are_told_of_every_iteration(tmp_path):
    told = []
    record = train_team(small_amal({"env_steps": 1_600}), tmp_path, told.append)
    written = json.loads((tmp_path / "training.json").read_text())
    assert written["algorithm"] == "amal"
    assert written["amal"] == json.loads(json.dumps([each.as_dict() for each in record.amal]))
    assert [each.iteration for each in record.amal] == [p.iteration for p in told]
    assert all(each.leaks == 0 for each in record.amal)
    assert all(each.information >= 0.0 for each in record.amal)
    assert record.amal[0].lambda_info == 0.0
    assert 0.0 < record.amal[-1].lambda_info <= AmalConfig().lambda_info
    assert record.amal[-1].auxiliary_share == pytest.approx(0.5, abs=0.05)
    assert record.env_steps == record.amal[-1].env_steps


def test_a_symmetric_model_gives_itself_away():
    session = session_of(small_amal(model=tiny_model(symmetric=True)))
    session.iterate()
    assert session.told[-1].leaks > 0


def test_greedy_looks_ask_the_primary_team_alone():
    """Looks are the same whatever the auxiliary teams are."""
    session = session_of(small_amal())
    for _ in range(4):
        session.iterate()
    before = session.judge(session.learner.policy)
    session.mixer.auxiliaries.shifts[:] = 1e3
    assert session.judge(session.learner.policy) == before


def test_a_session_and_its_config_must_agree():
    with pytest.raises(ConfigError, match="amal_for"):
        Session(small_amal(), battle_worlds)
    with pytest.raises(ValueError, match=r"learn\.reuse"):
        small(amal=amal())
    with pytest.raises(ValueError, match="late_share"):
        amal(late_share=0.6)


def test_arms_differ_and_are_what_they_say():
    config = shipped_config("amal")
    made = {name: arm_config(name, config) for name in ARMS}
    assert made["amal"] == config
    assert (made["mappo"].algorithm, made["mappo-reuse"].algorithm) == ("mappo", "mappo-reuse")
    assert made["mappo-reuse"].learn == config.learn
    for name in ("mappo", "mappo-short", "mappo-reuse"):
        assert made[name] == shipped_config(name)
    assert len({each.model_dump_json() for each in made.values()}) == len(ARMS)
    assert {name for name, each in made.items() if each.algorithm != "amal"} == {
        "mappo",
        "mappo-short",
        "mappo-reuse",
    }
    with pytest.raises(ConfigError, match="Did you mean"):
        arm_config("lambda0", config)


def test_without_correction_the_past_is_taken_for_the_present(tmp_path):
    corrected, blind = (
        small(learn=LearnConfig(epochs=2, reuse=ReuseConfig(corrected=flag)))
        for flag in (True, False)
    )
    assert learned(tmp_path / "a", corrected) != learned(tmp_path / "b", blind)


def test_a_diagnosis_judges_every_idea(tmp_path):
    config = small_amal({"env_steps": 2_000, "evaluation": FEW})
    report = diagnose(config, tmp_path)
    figures = report["figures"]
    assert json.loads((tmp_path / "diagnosis.json").read_text()) == json.loads(json.dumps(report))
    assert {"leaks", "canary", "model_r2", "noise_share", "elite_gain", "sign_test"} <= set(figures)
    for name in ("leaks", "canary", "canary_notices_forgery", "information_least", "sign_test"):
        assert figures[name]["passed"], name
    assert all(each["value"] is not None for each in figures.values()), figures
    assert all(
        set(each) == {"value", "low", "high", "bound", "passed"} for each in figures.values()
    )
    assert 0.0 < figures["noise_share"]["value"] < 1.0
    assert -1.0 <= figures["gradient_cosine"]["value"] <= 1.0
    assert np.isfinite(figures["coverage_gain"]["value"])


def test_a_diagnosis_changes_no_number_of_the_training(tmp_path):
    config = small_amal({"env_steps": 800, "evaluation": FEW})
    train_team(config, tmp_path / "plain")
    told = json.loads((tmp_path / "plain" / "training.json").read_text())["amal"]
    assert json.loads(json.dumps(diagnose(config, tmp_path / "probed")["iterations"])) == told


def test_a_leak_fails_the_diagnosis(tmp_path):
    leaky = small_amal({"env_steps": 600, "evaluation": FEW}, model=tiny_model(symmetric=True))
    figures = diagnose(leaky, tmp_path)["figures"]
    assert not figures["leaks"]["passed"]
    assert not figures["canary"]["passed"]


def test_what_has_no_bonus_cannot_be_examined(tmp_path):
    with pytest.raises(ConfigError, match="examined"):
        diagnose(small(), tmp_path)
