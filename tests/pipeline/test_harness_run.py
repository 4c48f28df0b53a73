"""The whole loop, small: it learns, is judged on sealed snapshots and serves; a control is not."""

import json
import shutil
from pathlib import Path

import pytest

from agent_gym.core.errors import AgentGymError, DataError, StoreError
from agent_gym.pipeline.automation import stages as stages_module
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.job import TrainingJob
from agent_gym.pipeline.automation.listening import Silence
from agent_gym.pipeline.automation.recording import refuse_if_nothing
from agent_gym.pipeline.automation.snapshot_set import SnapshotSet, refuse_sealed
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness.options import LEARNING, HarnessOptions
from agent_gym.pipeline.harness.run import run_harness
from agent_gym.pipeline.harness.snapshots import make_snapshots
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.database import DatabaseDown, TrajectoryFilter

SMALL = HarnessOptions(agents=2, snapshots=10, repeats=5, rounds=2, sealed=35, force=True)
PLAYED, PRACTISED = 10 * 2 * 5, 10 * 5


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = LoopFolder(tmp_path_factory.mktemp("loop"))
    return folder, run_harness(SMALL, folder, Silence())


def test_the_challenger_wins_and_serves(first):
    folder, outcome = first
    assert outcome.job.ending == "promoted", outcome.job.reason
    assert outcome.promoted
    assert outcome.answered == dict.fromkeys(("agent-0", "agent-1"), outcome.job.challenger)
    assert outcome.rollout_verified
    assert outcome.job.challenger != outcome.champion_before
    (check,) = (
        each for each in outcome.job.stages["verdict"]["checks"] if each["name"] == "superiority"
    )
    assert check["passed"]
    assert outcome.trajectories["stored"] == PLAYED + PRACTISED
    assert outcome.steps == (PLAYED + PRACTISED) * 120
    assert "900 more unused trajectories are needed" in outcome.readiness_after["reason"]
    assert json.dumps(outcome.model_dump(mode="json"))
    with folder.opened(AutomationConfig()) as stages:
        batches = [f"train-{outcome.run_id}", f"train-{outcome.run_id}-round-1"]
        used = stages.store.page(TrajectoryFilter(used_in_training=True), limit=1_000).rows
        held = [name for batch in batches for name in stages.store.batches.ids(batch)]
        assert sorted(row.trajectory_id for row in used) == sorted(held)
        assert len(held) == PLAYED + PRACTISED
        assert [stages.store.batches.get(batch).status for batch in batches] == ["completed"] * 2
        assert stages.registry.verify() == ()


def test_the_first_champion_holds_nothing(first):
    champions = {pair.champion for pair in evidence_of(first).pairs}
    assert champions == {0.0}
    assert len({pair.challenger for pair in evidence_of(first).pairs}) > 20


def evidence_of(first):
    folder, outcome = first
    with folder.opened(AutomationConfig()) as stages:
        return stages.evidence(outcome.job.job_id)


def test_the_page_tells_the_outcome(first):
    _, outcome = first
    page = Path(outcome.report)
    text = page.read_text(encoding="utf-8")
    assert "A better model serves now" in text
    assert "superiority" in text
    assert outcome.job.challenger in text
    kept = json.loads((page.parent / "outcome.json").read_text(encoding="utf-8"))
    assert kept["promoted"] is True
    assert kept["manifest"]["command"]


def test_the_same_job_again_is_the_same_job(first):
    folder, outcome = first
    config = AutomationConfig(grpo=LEARNING, rounds=SMALL.rounds)
    with folder.opened(config) as stages:
        history = stages.deployments.history()
        with running(stages, folder.workflows(stages.store)) as runtime:
            again = runtime.run(TrainingJob(job_id=outcome.job.job_id, force=True))
            assert runtime.status(outcome.job.job_id) == "SUCCESS"
            assert runtime.status("no-such-job") is None
        assert again == outcome.job
        assert stages.deployments.history() == history


def test_a_poisoned_second_run_is_not_promoted_and_says_why(first, tmp_path):
    folder, outcome = first
    copied = LoopFolder(Path(shutil.copytree(folder.path, tmp_path / "loop")))
    options = SMALL.model_copy(update={"shuffle_rewards": True})
    poisoned = run_harness(options, copied, Silence())
    assert poisoned.champion_before == outcome.job.challenger
    assert poisoned.job.ending == "not promoted"
    assert "because" in poisoned.job.reason
    assert set(poisoned.answered.values()) == {outcome.job.challenger}


def test_a_poisoned_first_run_is_judged_and_never_serves(tmp_path):
    """What noise has moved may beat who holds nothing: `scripts/loop_controls.py` counts it."""
    options = SMALL.model_copy(update={"shuffle_rewards": True})
    poisoned = run_harness(options, LoopFolder(tmp_path), Silence())
    assert poisoned.job.ending in {"not promoted", "control passed"}
    assert "superiority" in {each["name"] for each in poisoned.job.stages["verdict"]["checks"]}
    assert set(poisoned.answered.values()) == {poisoned.champion_before}
    with LoopFolder(tmp_path).opened(AutomationConfig()) as stages:
        assert stages.champion() == poisoned.champion_before
        events = [each.event for each in stages.deployments.history()]
        assert events.count("installed") == 1
        assert not {"deployed", "advanced"} & set(events)


def test_a_job_that_failed_is_taken_up_by_the_next_run(first, tmp_path, monkeypatch, caplog):
    folder, _ = first
    copied = LoopFolder(Path(shutil.copytree(folder.path, tmp_path / "loop")))

    def fails(*args):
        raise DatabaseDown("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(stages_module, "learning_of", fails)
        with pytest.raises(AgentGymError, match="the database is away"):
            run_harness(SMALL, copied, Silence())
    options = SMALL.model_copy(update={"rounds": 1})
    told = []
    outcome = run_harness(options, copied, Told(told))
    assert f"go on with train-{outcome.run_id}" in told
    assert "agents play" not in told  # the run that was cut off is the one that was asked for
    assert outcome.cut_off
    rounds = outcome.job.stages["training"]["rounds"]
    assert len(rounds) == SMALL.rounds  # as it was asked for at first
    assert Path(outcome.report).is_file()
    with copied.opened(AutomationConfig()) as stages:
        assert [each.event for each in stages.deployments.history()].count("sealed look") == 2
        assert {batch.status for batch in stages.store.batches.newest(limit=10)} == {"completed"}


class Told(Silence):
    def __init__(self, names):
        self.names = names

    def stage(self, name, total=None):
        self.names.append(name)
        return super().stage(name, total)


def test_what_is_not_ready_is_skipped_with_the_reason(tmp_path):
    options = SMALL.model_copy(update={"force": False, "snapshots": 1, "repeats": 1})
    outcome = run_harness(options, LoopFolder(tmp_path), Silence())
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
    refuse_sealed(made["train"] + made["rehearsal"])
    with pytest.raises(DataError, match="for the promotion gate alone"):
        refuse_sealed(made["train"] + made["sealed"])
    assert {path: path.stat().st_mtime_ns for path in made["train"]} == before
    assert make_snapshots(tmp_path / "other", "train", 1, 1)[0].name != made["train"][0].name


def test_a_sealed_set_is_named_by_what_is_in_it(tmp_path):
    make_snapshots(tmp_path / "a", "sealed", 2, 0)
    make_snapshots(tmp_path / "b", "sealed", 3, 0)
    assert SnapshotSet.of(tmp_path / "a").id != SnapshotSet.of(tmp_path / "b").id
    with pytest.raises(DataError, match="there is no snapshot"):
        SnapshotSet.of(Path(tmp_path / "nowhere"))


def test_nothing_recorded_is_an_error_and_not_an_empty_success():
    lost = {"status": "crashed", "error": {"what": "gone"}}
    refuse_if_nothing([lost, {"status": "ok"}])
    with pytest.raises(StoreError, match="gone"):
        refuse_if_nothing([lost, lost])
