"""The loop with UMC, small: it learns from records, is judged, serves; controls do not."""

import shutil
from pathlib import Path

import pytest

from agent_gym.agents.artifact import read_manifest
from agent_gym.agents.umc.snapshots.policy import UMCMarketPolicy
from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.pipeline.automation import stages as stages_module
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.listening import Silence
from agent_gym.pipeline.harness.options import HarnessOptions
from agent_gym.pipeline.harness.run import run_harness
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.database import DatabaseDown

SMALL = HarnessOptions(
    policy="umc", agents=2, snapshots=10, repeats=2, rounds=2, sealed=35, force=True
)
SHUFFLED = SMALL.model_copy(update={"shuffle_rewards": True, "rounds": 1})


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = LoopFolder(tmp_path_factory.mktemp("loop"))
    return folder, run_harness(SMALL, folder, Silence())


def superiority(outcome):
    checks = outcome.job.stages["verdict"]["checks"]
    return next(each["figures"] for each in checks if each["name"] == "superiority")


def test_it_is_promoted_over_one_that_was_taught_nothing(first):
    folder, outcome = first
    assert outcome.job.ending == "promoted", outcome.job.reason
    assert set(outcome.answered.values()) == {outcome.job.challenger}
    assert outcome.rollout_verified
    with folder.opened(AutomationConfig()) as stages:
        assert {pair.champion for pair in stages.evidence(outcome.job.job_id).pairs} == {0.0}
        policy = UMCMarketPolicy.load(stages.registry.load(outcome.job.challenger).folder)
        assert stages.registry.verify() == ()
    assert len(policy.lessons.snapshots) == SMALL.snapshots
    rounds = outcome.job.stages["training"]["rounds"]
    assert [one["trajectories"] for one in rounds] == [40, 40]
    assert rounds[0]["laws"]["perpetual"]["chance"] > 0.99


def test_a_poisoned_second_run_is_not_promoted(first, tmp_path):
    folder, outcome = first
    copied = LoopFolder(Path(shutil.copytree(folder.path, tmp_path / "loop")))
    poisoned = run_harness(SHUFFLED, copied, Silence())
    assert poisoned.champion_before == outcome.job.challenger
    assert poisoned.job.challenger != outcome.job.challenger
    assert poisoned.job.ending == "not promoted"
    assert superiority(poisoned)["mean"] < 0.0
    laws = poisoned.job.stages["training"]["rounds"][-1]["laws"]
    assert laws["perpetual"]["chance"] < 0.5
    assert set(poisoned.answered.values()) == {outcome.job.challenger}


def test_a_poisoned_first_run_gains_nothing(first, tmp_path):
    poisoned = run_harness(SHUFFLED, LoopFolder(tmp_path), Silence())
    assert poisoned.job.ending == "not promoted"
    assert superiority(poisoned)["mean"] < 0.2 * superiority(first[1])["mean"]
    assert set(poisoned.answered.values()) == {poisoned.champion_before}


def test_cut_off_and_with_other_workers_it_comes_to_the_same_bytes(first, tmp_path, monkeypatch):
    folder, outcome = first

    def fails(model):
        raise DatabaseDown("the database is away")

    options = SMALL.model_copy(update={"workers": 1})
    with monkeypatch.context() as patch:
        patch.setattr(stages_module, "learning_of", fails)
        with pytest.raises(AgentGymError, match="the database is away"):
            run_harness(options, LoopFolder(tmp_path), Silence())
    again = run_harness(options, LoopFolder(tmp_path), Silence())
    assert again.cut_off
    assert again.job.challenger == outcome.job.challenger
    files = []
    for place in (folder, LoopFolder(tmp_path)):
        with place.opened(AutomationConfig()) as stages:
            made = stages.registry.load(outcome.job.challenger).folder
            files.append([(made / name).read_bytes() for name in read_manifest(made).files])
    assert files[0] == files[1]


def test_another_kind_needs_a_folder_of_its_own(first):
    folder, _ = first
    with pytest.raises(ConfigError, match="another kind"):
        run_harness(SMALL.model_copy(update={"policy": "network"}), folder, Silence())
    with pytest.raises(ValueError, match="two kinds of players"):
        HarnessOptions(policy="umc", llm="smollm2-135m")
