from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.training.rl.checkpoints import ARRAYS, HASHES, VALUES, CheckpointStore
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.resuming import training_versions
from agent_gym.training.rl.snapshot import Snapshot, state_hash
from agent_gym.training.rl.tables import Table
from agent_gym.training.rl.trainer import Trainer
from tests.training.rl_samples import StopAt, csv_files, small_config


def snapshot(i: int) -> Snapshot:
    big = 2**100 + i
    return Snapshot(
        {"a/b.c": np.arange(5.0) + i, "empty": np.zeros((0, 2), np.float32)}, {"state": big}
    )


def filled(folder: Path, steps: tuple[int, ...] = (10, 20, 30), keep: int = 3) -> CheckpointStore:
    store = CheckpointStore(folder, keep, say=lambda _: None)
    for step in steps:
        store.save(step, snapshot(step), {"iteration": step})
    return store


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    found = filled(tmp_path).latest()
    assert found is not None
    assert (found.step, found.extra) == (30, {"iteration": 30})
    assert state_hash(found.snapshot) == state_hash(snapshot(30))
    assert CheckpointStore(tmp_path / "none").latest() is None


def test_only_the_last_are_kept(tmp_path: Path) -> None:
    store = filled(tmp_path, (1, 2, 3, 4, 5), keep=2)
    assert store.steps() == [4, 5]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "flipped": flip,
    "truncated": truncate,
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", [ARRAYS, VALUES, HASHES])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_one_is_named_and_passed_over(name: str, damage: str, tmp_path: Path) -> None:
    filled(tmp_path)
    said: list[str] = []
    store = CheckpointStore(tmp_path, 3, said.append)
    DAMAGES[damage](store.path(30) / name)
    found = store.latest()
    assert found is not None
    assert found.step == 20
    assert "step_000000000030" in said[0]
    assert len(said) == 1
    store.save(40, snapshot(40), {})
    assert store.steps() == [10, 20, 40], "the bad one goes when there is a new good one"


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    store = filled(tmp_path, (10,))
    for name in (ARRAYS, VALUES, HASHES):
        path = store.path(10) / name
        whole = path.read_bytes()
        for i in range(0, len(whole), 13):
            path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
            with pytest.raises(DataError):
                store.load(10)
        path.write_bytes(whole)
    assert store.load(10).step == 10


def test_all_damaged_is_a_clear_error(tmp_path: Path) -> None:
    store = filled(tmp_path)
    for step in store.steps():
        flip(store.path(step) / ARRAYS)
    with pytest.raises(DataError, match="no checkpoint of this run can be read") as caught:
        store.latest()
    assert "--fresh" in str(caught.value)
    assert str(caught.value).count("step_") == 3


def test_without_a_listener_a_bad_one_is_a_warning(tmp_path: Path) -> None:
    filled(tmp_path)
    store = CheckpointStore(tmp_path)
    flip(store.path(30) / VALUES)
    with pytest.warns(UserWarning, match="step_000000000030"):
        store.latest()


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (tmp_path / ".step_000000000040.abc.tmp").mkdir()
    assert store.steps() == [10, 20, 30]
    store.clean()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["numpy.savez", "pathlib.Path.rename", "os.fsync"])
def test_full_disk_leaves_the_old_ones(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(call, full)
        with pytest.raises(StoreError, match="No space left"):
            store.save(40, snapshot(40), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step_000000000010",
        "step_000000000020",
        "step_000000000030",
    ]
    found = store.latest()
    assert found is not None
    assert found.step == 30


# --- tables ----------------------------------------------------------------------------------


def test_table_is_cut_back_and_grows_again(tmp_path: Path) -> None:
    table = Table(tmp_path / "t.csv", ("step", "value"))
    table.begin()
    table.append([(1, 0.1), (2, None)])
    seen = table.sync()
    whole = table.path.read_bytes()
    assert whole == b"step,value\n1,0.1\n2,\n"
    table.append([(3, float("nan"))])
    table.cut(seen)
    assert table.path.read_bytes() == whole
    with pytest.raises(DataError, match="are gone"):
        table.cut(seen._replace(size=seen.size + 1))
    with pytest.raises(ValueError, match="cells"):
        table.append([(1, 2, 3)])


def test_row_that_does_not_fit_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path / "t.csv", ("step",))
    table.begin()
    table.append([(1,)])

    class Full(type(table._open())):  # type: ignore[misc]
        def write(self, content: bytes) -> int:
            super().write(content[:2])
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("agent_gym.training.rl.tables.FileIO", Full)
        with pytest.raises(StoreError, match="No space left"):
            table.append([(123456,)])
    assert table.path.read_bytes() == b"step\n1\n"


# --- a whole run -----------------------------------------------------------------------------


def stopped_run(folder: Path, seed: int = 5) -> None:
    with pytest.raises(StopAt.Killed):
        Trainer(small_config("a2c"), seed, folder, [StopAt(14)]).train()


def test_run_goes_on_from_the_good_one_before_a_damaged_one(tmp_path: Path) -> None:
    whole = Trainer(small_config("a2c"), 5, tmp_path / "whole").train()
    stopped_run(tmp_path / "broken")
    store = CheckpointStore(RunFolder(tmp_path / "broken").checkpoints)
    before, last = store.steps()
    flip(store.path(last) / ARRAYS)
    said: list[str] = []
    result = Trainer(small_config("a2c"), 5, tmp_path / "broken").train(say=said.append)
    assert store.path(last).name in said[0]
    assert said[1] == f"going on from step {before}"
    assert result.state_hash == whole.state_hash
    assert csv_files(tmp_path / "broken") == csv_files(tmp_path / "whole")


def test_run_whose_checkpoints_are_all_damaged_says_so_and_touches_nothing(tmp_path: Path) -> None:
    stopped_run(tmp_path)
    folder = RunFolder(tmp_path)
    store = CheckpointStore(folder.checkpoints)
    for step in store.steps():
        (store.path(step) / VALUES).unlink()
    before = folder.metrics.read_bytes()
    with pytest.raises(DataError, match="--fresh"):
        Trainer(small_config("a2c"), 5, tmp_path).train(say=lambda _: None)
    assert folder.metrics.read_bytes() == before
    assert Trainer(small_config("a2c"), 5, tmp_path).train(resume=False).status == "done"


def test_other_config_seed_or_version_is_refused_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_run(tmp_path)
    other = small_config("a2c", agent={"gamma": 0.5}, steps=999)
    with pytest.raises(ConfigError, match="--fresh") as caught:
        Trainer(other, 5, tmp_path).train()
    found = str(caught.value)
    assert "agent.gamma: 0.99 there, 0.5 here" in found
    assert "steps: 360 there, 999 here" in found
    with pytest.raises(ConfigError, match="seed: 5 there, 6 here"):
        Trainer(small_config("a2c"), 6, tmp_path).train()
    versions = training_versions() | {"torch": "9.9"}
    monkeypatch.setattr("agent_gym.training.rl.resuming.training_versions", lambda: versions)
    with pytest.raises(ConfigError, match=r"versions\.torch: .* there, 9\.9 here"):
        Trainer(small_config("a2c"), 5, tmp_path).train()
    assert json.loads(RunFolder(tmp_path).config.read_bytes())["steps"] == 360


def test_run_that_is_done_is_not_run_again(tmp_path: Path) -> None:
    first = Trainer(small_config("a2c"), 5, tmp_path).train()

    class Never:
        def on_iteration(self, _: object) -> None:
            raise AssertionError

    assert Trainer(small_config("a2c"), 5, tmp_path, [Never()]).train() == first
