"""The whole loop, small: it learns, is judged on sealed snapshots and serves; a control is not."""

import json
import shutil
from pathlib import Path

import pytest

from agent_gym.core.errors import DataError, StoreError
from agent_gym.pipeline.automation.job import TrainingJob
from agent_gym.pipeline.automation.sealed_set import SealedSet
from agent_gym.pipeline.automation.stages import AutomationConfig
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness.run import (
    LEARNING,
    HarnessOptions,
    _refuse_if_nothing,
    run_harness,
)
from agent_gym.pipeline.harness.snapshots import make_snapshots
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.database import TrajectoryFilter

SMALL = HarnessOptions(agents=2, snapshots=5, repeats=4, sealed=35, rehearsal=20, force=True)


class Quiet:
    def stage(self, name, total=None):
        return lambda done, of, row: None

    def tick(self):
        pass


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = LoopFolder(tmp_path_factory.mktemp("loop"))
    return folder, run_harness(SMALL, folder, Quiet())


def test_the_challenger_wins_and_serves(first):
    folder, outcome = first
    assert outcome.job.ending == "promoted", outcome.job.reason
    assert outcome.promoted
    assert set(outcome.served.values()) == {outcome.job.challenger}
    assert outcome.job.challenger != outcome.champion_before
    (check,) = (
        each for each in outcome.job.stages["verdict"]["checks"] if each["name"] == "superiority"
    )
    assert check["passed"]
    assert outcome.trajectories["stored"] == 5 * 2 * 4
    assert outcome.steps == 5 * 2 * 4 * 120
    assert "960 more unused trajectories are needed" in outcome.readiness_after["reason"]
    assert json.dumps(outcome.model_dump(mode="json"))
    with folder.opened(AutomationConfig()) as stages:
        batch = f"train-{outcome.run_id}"
        used = stages.store.page(TrajectoryFilter(used_in_training=True), limit=100).rows
        assert {row.trajectory_id for row in used} == set(stages.store.batches.ids(batch))
        assert stages.store.batches.get(batch).status == "completed"
        assert stages.registry.verify() == ()


def test_the_same_job_again_is_the_same_job(first):
    folder, outcome = first
    config = AutomationConfig(grpo=LEARNING)
    with folder.opened(config) as stages:
        history = stages.deployments.history()
        with running(stages, folder.workflows) as runtime:
            again = runtime.run(TrainingJob(job_id=outcome.job.job_id, force=True))
            assert runtime.status(outcome.job.job_id) == "SUCCESS"
            assert runtime.status("no-such-job") is None
        assert again == outcome.job
        assert stages.deployments.history() == history


def test_a_poisoned_second_run_is_not_promoted_and_says_why(first, tmp_path):
    folder, outcome = first
    copied = LoopFolder(Path(shutil.copytree(folder.path, tmp_path / "loop")))
    options = SMALL.model_copy(update={"shuffle_rewards": True})
    poisoned = run_harness(options, copied, Quiet())
    assert poisoned.champion_before == outcome.job.challenger
    assert poisoned.job.ending == "not promoted"
    assert "because" in poisoned.job.reason
    assert set(poisoned.served.values()) == {outcome.job.challenger}


def test_what_is_not_ready_is_skipped_with_the_reason(tmp_path):
    options = SMALL.model_copy(update={"force": False, "snapshots": 1, "repeats": 1})
    outcome = run_harness(options, LoopFolder(tmp_path), Quiet())
    assert outcome.job.ending == "skipped"
    assert outcome.job.reason == outcome.readiness_after["reason"]
    assert "998 more unused trajectories are needed (2 of 1,000)" in outcome.job.reason


def test_sets_share_no_snapshot_and_are_made_once(tmp_path):
    made = {
        name: make_snapshots(tmp_path / name, name, 6, 0)
        for name in ("train", "rehearsal", "sealed")
    }
    names = [path.name for paths in made.values() for path in paths]
    assert len(set(names)) == 18
    before = {path: path.stat().st_mtime_ns for path in made["train"]}
    assert make_snapshots(tmp_path / "train", "train", 6, 0) == made["train"]
    assert {path: path.stat().st_mtime_ns for path in made["train"]} == before
    assert make_snapshots(tmp_path / "other", "train", 1, 1)[0].name != made["train"][0].name


def test_a_sealed_set_is_named_by_what_is_in_it(tmp_path):
    make_snapshots(tmp_path / "a", "sealed", 2, 0)
    make_snapshots(tmp_path / "b", "sealed", 3, 0)
    assert SealedSet.of(tmp_path / "a").id != SealedSet.of(tmp_path / "b").id
    with pytest.raises(DataError, match="no sealed snapshot"):
        SealedSet.of(Path(tmp_path / "nowhere"))


def test_nothing_recorded_is_an_error_and_not_an_empty_success():
    lost = {"status": "crashed", "error": {"what": "gone"}}
    _refuse_if_nothing([lost, {"status": "ok"}])
    with pytest.raises(StoreError, match="gone"):
        _refuse_if_nothing([lost, lost])
