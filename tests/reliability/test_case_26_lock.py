"""Case 26: whoever locks holds the file that is there, not one that has just been removed."""

from __future__ import annotations

import fcntl

import pytest

from agent_gym.core.clock import SystemClock
from agent_gym.pipeline.nightly.lock import LockHeld, one_run

pytestmark = pytest.mark.case(26)


def test_a_file_removed_between_opening_and_locking_lets_nobody_else_in(tmp_path, monkeypatch):
    path, plain, removed = tmp_path / "nightly.lock", fcntl.flock, []

    def slowly(handle, how):
        if not removed:  # somebody tidies up just before we lock what we have opened
            removed.append(path)
            path.unlink()
        plain(handle, how)

    monkeypatch.setattr(fcntl, "flock", slowly)
    with one_run(path, SystemClock(), "first"):
        assert removed
        with pytest.raises(LockHeld), one_run(path, SystemClock(), "second"):
            raise AssertionError("two are in")
