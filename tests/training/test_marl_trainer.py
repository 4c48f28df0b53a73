"""Whole trainings: the same bytes twice, the same bytes after a stop, and settings that matter."""

import json

import numpy as np
import pytest

from agent_gym.agents.marl import NetworkConfig, TeamPolicy
from agent_gym.core import ConfigError, DataError
from agent_gym.evaluation.marl import run_of
from agent_gym.training.marl import (
    EvaluationConfig,
    LearnConfig,
    ReuseConfig,
    StoppingConfig,
    TeamTrainConfig,
    session,
    shipped_config,
    train_team,
)
from agent_gym.training.marl.config import SHIPPED
from agent_gym.training.marl.looks import Look
from agent_gym.training.marl.records import first_reaching
from tests.training.marl_samples import small

REUSE = LearnConfig(epochs=2, reuse=ReuseConfig())
MEMORY = NetworkConfig(hidden=16, recurrent=True)
FRESH = 16
KINDS = {
    "mappo": {},
    "reuse": {"learn": REUSE},
    "memory": {"learn": REUSE, "network": MEMORY},
    "ippo": {"learn": LearnConfig(epochs=2, critic="own")},
}


def content(folder):
    """Return the bytes of all that equal trainings share."""
    teams = [path for name in ("policy", "best") for path in sorted((folder / name).iterdir())]
    files = [*teams, folder / "training.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Killed(Exception):
    """Stands for a process that is killed."""


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_taken_up_again_it_is_the_same_to_the_bit(kind, tmp_path):
    config = small(**KINDS[kind])
    train_team(config, tmp_path / "whole")

    def killed_in(iteration):
        def listen(progress):
            heard.append(progress.iteration)
            if progress.iteration == iteration:
                raise Killed

        return listen

    heard = []
    for iteration in (3, 7):  # checkpoints are written after 2, 4, 6, 8 and 10
        with pytest.raises(Killed):
            train_team(config, tmp_path / "broken", killed_in(iteration))
    train_team(config, tmp_path / "broken", killed_in(None))
    assert heard == [1, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10]
    assert content(tmp_path / "whole") == content(tmp_path / "broken")


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_team(small(seed=seed), tmp_path / name)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert content(tmp_path / "a") != content(tmp_path / "c")


def test_without_past_iterations_reuse_is_mappo(tmp_path):
    def version(name, reuse):
        return learned(tmp_path / name, learn=LearnConfig(epochs=2, reuse=reuse))

    plain = version("plain", None)
    assert version("none", ReuseConfig(iterations=0)) == plain
    assert version("some", ReuseConfig(iterations=1)) != plain


CHANGES = [
    {"critic": "own"},
    {"epochs": 3},
    {"learning_rate": 2e-3},
    {"last_rate": 0.5},
    {"gamma": 0.9},
    {"trace": 0.5},
    {"clip": 0.01},
    {"entropy": 0.05},
    {"huber": 0.1},
    {"value_memory": 0.5},
    {"max_grad_norm": 0.01},
    {"reuse": {"iterations": 2}},
    {"reuse": {"weight": 1.0}},
    {"reuse": {"smallest_ratio": 0.98}},
    {"reuse": {"largest_ratio": 1.02}},
]


def learned(folder, **changes):
    """Return the hash of what a few iterations lead to."""
    looks = EvaluationConfig(every=1_000, episodes=1, final_episodes=1)
    given = {"env_steps": 400, "learn": REUSE, "evaluation": looks, "checkpoint_every": 1_000}
    return train_team(small(**given | changes), folder).policy.version


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return learned(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_setting_of_learning_changes_what_is_learned(change, base, tmp_path):
    assert learned(tmp_path, learn={"epochs": 2, "reuse": {}} | change) != base


def test_imitation_changes_what_is_learned_from_forgotten_rows(tmp_path):
    def version(name, weight):
        reuse = ReuseConfig(smallest_ratio=0.98, imitation=weight)
        return learned(tmp_path / name, learn=LearnConfig(epochs=2, reuse=reuse))

    assert len({version("none", 0.0), version("some", 0.5), version("more", 1.0)}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"n_envs": 5},
        {"n_steps": 10},
        {"world": {"map": "3m", "reward": "sparse"}},
        {"network": NetworkConfig(hidden=16, layers=1)},
    ],
    ids=str,
)
def test_every_other_setting_does_too(change, base, tmp_path):
    assert learned(tmp_path, **change) != base


def test_chunks_of_another_length_learn_something_else(tmp_path):
    one = learned(tmp_path / "a", network=MEMORY)
    assert one != learned(tmp_path / "b", network=MEMORY, chunk=20)
    with pytest.raises(ValueError, match="multiple of chunk"):
        small(network=MEMORY, n_steps=25)


def test_when_checkpoints_are_written_changes_nothing(tmp_path):
    train_team(small(), tmp_path / "a")
    train_team(small(checkpoint_every=10_000), tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_the_record_says_what_happened(tmp_path):
    told = []
    record = train_team(small(), tmp_path, told.append)
    written = json.loads((tmp_path / "training.json").read_text())
    assert written == json.loads(json.dumps(record.as_dict()))
    assert [row["env_steps"] for row in written["curve"]] == [240, 480, 720, 800]
    assert [p.env_steps for p in told if p.look is not None] == [240, 480, 720, 800]
    assert [p.iteration for p in told] == list(range(1, 11))
    assert written["model_hash"] == TeamPolicy.load(tmp_path / "policy").version
    assert written["manifest"]["config"]["seed"] == 0
    assert "map" in written["manifest"]["data"]
    assert written["final"]["episodes"] == 16
    assert written["final"]["win_rate"]["low"] <= written["final"]["win_rate"]["high"]
    assert written["steps_to"]["0.8"] == {"env_steps": 800, "reached": False}
    spent = json.loads((tmp_path / "timings.json").read_text())
    assert len(spent["looks"]) == 4
    assert 0 < spent["looks"][0] < spent["cpu_s"]
    figures = told[-1].figures
    assert 0.0 < figures.entropy < np.log(9)
    assert figures.ess == {"fresh": pytest.approx(1.0)}


def scripted_looks(monkeypatch, wins):
    """Let looks come out as said, fresh starts two better; return who was looked at."""
    looked, wins = {}, iter(wins)

    def scripted(policy, worlds, seeds):
        if worlds.n_envs == FRESH:
            return Look(FRESH, looked[policy.version] + 2, 0.0, 1.0)
        looked[policy.version] = next(wins)
        return Look(worlds.n_envs, looked[policy.version], 0.0, 1.0)

    monkeypatch.setattr(session, "look_at", scripted)
    return looked


def without_mean():
    return small().evaluation.model_copy(update={"mean_over": 0})


def test_the_team_of_the_best_look_is_kept_and_judged_from_fresh_starts(tmp_path, monkeypatch):
    looked = scripted_looks(monkeypatch, [3, 5, 5, 1])
    record = train_team(small(evaluation=without_mean()), tmp_path)
    third = list(looked)[2]  # the second is as good, but has learned for less long
    assert (record.best.env_steps, record.best.look_wins, record.best.fresh.wins) == (720, 5, 7)
    assert record.best.model_hash == third == TeamPolicy.load(tmp_path / "best").version
    assert (record.final.wins, record.policy.version) == (3, list(looked)[3])
    written = json.loads((tmp_path / "training.json").read_text())
    assert run_of(written).best == 7 / FRESH
    assert not record.best.mean
    assert [row.mean_wins for row in record.curve] == [None] * 4


def test_a_look_sees_the_mean_of_the_team_too(tmp_path, monkeypatch):
    looked = scripted_looks(monkeypatch, [3, 4, 5, 6, 5, 5, 1, 2])  # the team, its mean, the team
    record = train_team(small(), tmp_path)
    assert [(row.wins, row.mean_wins) for row in record.curve] == [(3, 4), (5, 6), (5, 5), (1, 2)]
    assert (record.best.env_steps, record.best.look_wins, record.best.mean) == (480, 6, True)
    assert record.best.model_hash == list(looked)[3] == TeamPolicy.load(tmp_path / "best").version
    assert json.loads((tmp_path / "training.json").read_text())["best"]["mean"] is True


def test_looking_at_the_mean_changes_nothing_that_is_learned(tmp_path):
    with_it = train_team(small(), tmp_path / "a")
    without = train_team(small(evaluation=without_mean()), tmp_path / "b")
    assert with_it.policy.version == without.policy.version
    assert [row.wins for row in with_it.curve] == [row.wins for row in without.curve]


def test_steps_to_a_win_rate_are_the_first_ones(tmp_path):
    record = train_team(small(), tmp_path)
    assert first_reaching(record.curve, 1e-9).reached is (record.curve[-1].wins > 0)
    reached = first_reaching(record.curve, 0.0)
    assert (reached.env_steps, reached.reached) == (240, True)


def test_it_stops_when_the_last_looks_are_good_enough(tmp_path):
    always = StoppingConfig(win_rate=1e-9, looks=2)
    looks = EvaluationConfig(every=80, episodes=8, final_episodes=8)
    told = []
    config = small(world={"map": "1m_vs_1m"}, env_steps=4_000, stopping=always, evaluation=looks)
    record = train_team(config, tmp_path, told.append)
    wins = [p.look.wins for p in told]
    assert record.status == "stopped_early"
    assert record.env_steps < 4_000
    assert wins[-1] > 0
    assert wins[-2] > 0
    assert all(0 in wins[i : i + 2] for i in range(len(wins) - 2))


def test_another_training_in_the_same_folder_is_refused(tmp_path):
    train_team(small(), tmp_path)
    with pytest.raises(ConfigError, match="another training"):
        train_team(small(seed=5), tmp_path)
    with pytest.raises(ConfigError, match="another training"):
        train_team(small(learn=LearnConfig(epochs=3)), tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    train_team(small(), tmp_path)
    path = tmp_path / "checkpoint" / "arrays.safetensors"
    content = bytearray(path.read_bytes())
    content[-7] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        train_team(small(), tmp_path)


def test_shipped_configs_are_what_they_say():
    names = {path.stem for path in SHIPPED.glob("*.yaml")}
    assert names == {"mappo", "mappo-short", "mappo-reuse", "ippo", "official", "amal"}
    assert shipped_config("mappo") == TeamTrainConfig()
    for name in names - {"official", "mappo-short"}:
        assert shipped_config(name).algorithm == name
    short, reuse = shipped_config("mappo-short"), shipped_config("mappo-reuse")
    assert short.learn == reuse.learn.model_copy(update={"reuse": None})
    assert short.n_envs == reuse.n_envs
    official = shipped_config("official")
    assert (official.n_envs, official.n_steps, official.learn.epochs) == (8, 400, 15)
    assert official.learn.learning_rate == 5e-4
    with pytest.raises(ConfigError, match="Did you mean"):
        shipped_config("mapo")
