"""Runs that were stored before a setting existed, and what is damaged in a stored run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.training.rl.checkpoints import CheckpointStore
from agent_gym.training.rl.jobs import TrainingJob, begin_anew
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.resuming import check_folder, finished_result
from agent_gym.training.rl.run_records import FRESH, completed
from agent_gym.training.rl.trainer import Trainer
from tests.training.rl_samples import StopAt, small_config

CONFIG = small_config(
    "a2c",
    steps=54,
    checkpoints={"every": 18},
    evaluation={"every": 18, "episodes": 1, "final_episodes": 2},
)


def forget(path: Path, *names: str) -> None:
    """Take settings out of a stored document, as if they had come later."""
    said = json.loads(path.read_text())
    inside = said.get("config", said)
    for name in names:
        del inside[name]
    del inside["agent"]["use_sde"]
    path.write_text(json.dumps(said))


def stopped(folder: Path, iteration: int = 2) -> RunFolder:
    with pytest.raises(StopAt.Killed):
        Trainer(CONFIG, 5, folder, [StopAt(iteration)]).train()
    return RunFolder(folder)


def test_a_finished_run_from_before_a_setting_is_found_done(tmp_path):
    done = Trainer(CONFIG, 5, tmp_path).train()
    files = RunFolder(tmp_path)
    forget(files.config, "threads", "learner")
    forget(files.result, "threads", "learner")
    before = files.result.read_bytes()
    found = finished_result(files, CONFIG, 5)
    assert found is not None
    assert found.state_hash == done.state_hash
    assert Trainer(CONFIG, 5, tmp_path).train().state_hash == done.state_hash
    assert files.result.read_bytes() == before
    assert finished_result(files, CONFIG.model_copy(update={"threads": 2}), 5) is None
    assert finished_result(files, CONFIG, 6) is None


def test_a_stopped_run_from_before_a_setting_goes_on(tmp_path):
    whole = Trainer(CONFIG, 5, tmp_path / "whole").train()
    files = stopped(tmp_path / "stopped")
    forget(files.config, "threads")
    assert check_folder(files, CONFIG)
    assert Trainer(CONFIG, 5, files.path).train().state_hash == whole.state_hash


def test_another_setting_is_still_refused_and_all_say_the_same_remedy(tmp_path):
    files = stopped(tmp_path)
    forget(files.config, "threads")
    other = CONFIG.model_copy(update={"threads": 2})
    job = TrainingJob(label="x", config=other, seed=5, folder=tmp_path)
    for refused in (lambda: check_folder(files, other), job.known):
        with pytest.raises(ConfigError) as told:
            refused()
        assert "threads: 1 there, 2 here" in str(told.value.found)
        assert told.value.remedy == FRESH
        assert "--fresh" in FRESH


def test_what_is_no_training_is_left_as_it_is():
    for kept in (None, [], {"algo": "none"}, {"agent": {"gama": 1}}, {"n_envs": -1}):
        assert completed(kept) == kept


def test_fresh_removes_a_run_that_cannot_even_be_read(tmp_path):
    files = stopped(tmp_path / "seed_5")
    files.config.write_bytes(b"{")
    (tmp_path / "notes").mkdir()
    with pytest.raises(DataError) as told:
        check_folder(files, CONFIG)
    assert told.value.remedy == FRESH
    begin_anew([files.path, tmp_path / "notes", tmp_path / "gone"])
    assert not files.path.exists()
    assert (tmp_path / "notes").is_dir()


def test_one_changed_byte_of_a_table_is_refused(tmp_path):
    files = stopped(tmp_path)
    assert CheckpointStore(files.checkpoints).steps()
    content = bytearray(files.metrics.read_bytes())
    place = content.index(b"\n") + 1
    content[place] = ord("9") if content[place] != ord("9") else ord("8")
    files.metrics.write_bytes(content)
    with pytest.raises(DataError, match="were changed") as told:
        Trainer(CONFIG, 5, tmp_path).train()
    assert str(files.metrics) in str(told.value)
    assert told.value.remedy == FRESH


def test_a_checkpoint_from_before_hashes_goes_on(tmp_path):
    whole = Trainer(CONFIG, 5, tmp_path / "whole").train()
    files = stopped(tmp_path / "stopped")
    store = CheckpointStore(files.checkpoints)
    for step in store.steps():
        found = store.load(step)
        sizes = {name: seen["size"] for name, seen in found.extra["tables"].items()}
        store.save(step, found.snapshot, found.extra | {"tables": sizes})
    assert Trainer(CONFIG, 5, files.path).train().state_hash == whole.state_hash


def test_a_file_where_checkpoints_lie_blocks_nothing(tmp_path):
    whole = Trainer(CONFIG, 5, tmp_path / "whole").train()
    files = stopped(tmp_path / "stopped")
    store = CheckpointStore(files.checkpoints)
    for step in (54, 999):  # one of them where a checkpoint must go
        store.path(step).write_text("not a checkpoint")
    assert max(store.steps()) < 54
    assert Trainer(CONFIG, 5, files.path).train().state_hash == whole.state_hash
    assert store.path(54).is_dir()


def test_a_damaged_best_model_is_told_at_once_with_the_way_out(tmp_path):
    files = stopped(tmp_path)
    weights = files.best / "policy.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DataError) as told:
        Trainer(CONFIG, 5, tmp_path).train()
    assert "policy.safetensors" in str(told.value)
    assert told.value.remedy == FRESH
    assert json.loads(files.result.read_bytes())["steps"] == 0  # before any training
    assert Trainer(CONFIG, 5, tmp_path).train(resume=False).status == "done"
