"""A disk that is really too small, and a ledger whose rows have rotted."""

import os
import resource
import shutil
import sqlite3
import subprocess
from contextlib import contextmanager

import pytest
from nightly_samples import DirectCrew, contents, night, tiny_suite, without_processes

from agent_gym.core.errors import StoreError
from agent_gym.pipeline.nightly import Ledger


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    without_processes(monkeypatch.setattr)


@contextmanager
def file_limit(size):
    """Let no file grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 300, 2_000, 6_000, 12_000])
def test_files_that_may_not_grow_leave_the_old_ones_intact(tmp_path, size):
    assert night(tmp_path, approve="first").exit_code == 0
    old = contents(tmp_path)
    with file_limit(size), pytest.raises(StoreError) as caught:
        night(tmp_path, day=1, level=9.0)
    assert caught.value.remedy
    after = contents(tmp_path)
    assert {name: after[name] for name in old} == old
    assert night(tmp_path, day=1, level=9.0).exit_code == 0  # with room again it goes on


def test_a_small_disk_that_fills_up_leaves_the_old_files_intact(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("no small disk can be mounted here")
    try:
        assert night(disk, approve="first").exit_code == 0
        old, failed = contents(disk), 0
        free = shutil.disk_usage(disk).free
        for left in (0, 8_000, 60_000, 200_000):
            (disk / "ballast").write_bytes(b"x" * max(0, free - left))
            try:
                night(disk, day=1, level=9.0)
            except StoreError:
                failed += 1
                after = contents(disk)
                assert {name: after[name] for name in old} == old
            (disk / "ballast").unlink()
        assert failed >= 2
        assert night(disk, day=1, level=9.0).exit_code == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def edit_rows(home, statement):
    with sqlite3.connect(home / "gym.db") as db:
        changed = db.execute(statement).rowcount
    db.close()
    return changed


def test_rotten_rows_are_set_aside_and_played_again(tmp_path):
    night(tmp_path, approve="first")
    DirectCrew.played.clear()
    rotten = "UPDATE nightly_episodes SET body = body || ' ' WHERE rowid <= 3"
    assert edit_rows(tmp_path, rotten) == 3
    outcome = night(tmp_path, day=1)
    assert (outcome.played, outcome.kept) == (7, 13)
    assert outcome.exit_code == 0
    assert sum("set aside" in note for note in outcome.result.run.notes) == 3
    assert night(tmp_path, day=2).played == 4


def test_a_rotten_night_is_forgotten_and_said(tmp_path):
    night(tmp_path, approve="first")
    assert edit_rows(tmp_path, "UPDATE nightly_runs SET body = '{}'") == 1
    outcome = night(tmp_path, day=1)
    assert outcome.result.past.nights == ()
    assert any("set aside" in note for note in outcome.result.run.notes)


def test_a_ledger_of_a_newer_version_or_of_nothing_at_all_is_refused(tmp_path):
    night(tmp_path, approve="first")
    edit_rows(tmp_path, "UPDATE nightly_meta SET value = '99'")
    with pytest.raises(StoreError, match="newer"):
        night(tmp_path, day=1)
    for name in ("gym.db", "gym.db-wal", "gym.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "gym.db").write_bytes(b"this is no database, whatever it is called" * 30)
    with pytest.raises(StoreError, match="ledger") as caught:
        night(tmp_path, day=1)
    assert "move gym.db away" in caught.value.remedy


def test_what_was_kept_is_found_again_by_its_key_alone(tmp_path):
    with Ledger(tmp_path / "gym.db") as ledger:
        ledger.keep({"a": {"x": 1.5}, "b": {"x": None}})
        with pytest.raises(ValueError, match="JSON"):
            ledger.keep({"c": {"x": float("nan")}})
    with Ledger(tmp_path / "gym.db", read_only=True) as ledger:
        assert ledger.find(["a", "b", "c"]) == {"a": {"x": 1.5}, "b": {"x": None}}


def test_more_seeds_keep_the_finished_ones(tmp_path):
    night(tmp_path, approve="first")
    assert night(tmp_path, tiny_suite(n_seeds=12), day=1).kept == 16
