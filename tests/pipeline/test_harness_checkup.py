"""What is wrong is named, with what to do about it; what has not happened yet is not wrong."""

import shutil

import pytest

from agent_gym.core.errors import StoreError
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness import workspace
from agent_gym.pipeline.harness.checkup import check_up
from agent_gym.pipeline.harness.workspace import LoopFolder
from tests.pipeline.kill_points import Inline, prepare


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("loop") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workspace, "make_executor", Inline)
        prepare(place)
    return place


@pytest.fixture
def place(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "loop")


def found(place):
    return {one.name: one for one in check_up(LoopFolder(place)).findings}


def test_an_empty_place_waits_and_says_what_to_do(tmp_path):
    report = check_up(LoopFolder(tmp_path))
    assert report.ok
    assert report.next_steps[0] == "Run `agent-gym harness`"
    states = {one.name: one.state for one in report.findings}
    assert states["champion"] == states["trajectories"] == states["snapshots: sealed"] == "waiting"


def test_a_whole_loop_is_good(place):
    report = check_up(LoopFolder(place))
    assert report.ok
    states = {one.name: one.state for one in report.findings}
    assert states.pop("readiness") == "waiting"
    assert set(states.values()) == {"good"}


def test_a_changed_snapshot_is_named(place):
    path = sorted((place / "snapshots" / "sealed").glob("*.snapshot.xz"))[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    report = check_up(LoopFolder(place))
    assert not report.ok
    one = found(place)["snapshots: sealed"]
    assert one.state == "bad"
    assert path.name in one.words
    assert report.next_steps[0] == one.next_step


def test_a_sealed_snapshot_among_the_training_ones_is_named(place):
    path = sorted((place / "snapshots" / "sealed").glob("*.snapshot.xz"))[0]
    for one in (path, path.with_name(path.name.replace("snapshot", "truth"))):
        shutil.copy(one, place / "snapshots" / "train" / one.name)
    one = found(place)["snapshots: sets apart"]
    assert one.state == "bad"
    assert "train and sealed" in one.words


def test_a_lost_truth_is_named(place):
    for path in (place / "snapshots" / "train").iterdir():
        if "truth" in path.name:
            path.unlink()
    assert "sealed truth is gone" in found(place)["snapshots: train"].words


def test_a_damaged_step_file_is_named(place):
    path = next((place / "trajectories").rglob("*.arrow"))
    path.write_bytes(path.read_bytes()[:-8] + b"12345678")
    one = found(place)["trajectories"]
    assert one.state == "bad"
    assert "cannot be read" in one.words


def test_a_tampered_model_is_named(place):
    path = next((place / "models").rglob("policy.safetensors"))
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    states = {one.name: one.state for one in check_up(LoopFolder(place)).findings}
    assert states["artifacts and history"] == states["champion"] == "bad"


def test_a_setting_out_of_range_is_named(place, monkeypatch):
    monkeypatch.setenv("TRAINING_MIN_TRAJECTORIES", "0")
    assert found(place)["environment"].state == "bad"


def test_an_unreadable_setting_is_named(place, monkeypatch):
    monkeypatch.setenv("TRAINING_MIN_TRAJECTORIES", "many")
    one = found(place)["environment"]
    assert one.state == "bad"
    assert "TRAINING_MIN_TRAJECTORIES" in one.next_step


def test_a_damaged_record_of_jobs_is_named_and_nothing_is_run(place):
    folder = LoopFolder(place)
    with folder.opened(AutomationConfig()) as stages:
        file = folder.workflows(stages.store)
        with running(stages, file):
            pass
        assert found(place)["jobs"].state == "good"
        file.write_bytes(b"no database" * 500 + file.read_bytes()[5_500:])
        one = found(place)["jobs"]
        assert one.state == "bad"
        assert "move it away" in one.next_step
        with (
            pytest.raises(StoreError, match="the record of jobs is damaged"),
            running(stages, file),
        ):
            pass
