"""A database file that is none any more is refused, with what to do about it."""

import pytest

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database import TrajectoryStore


def test_a_damaged_file_is_named_with_a_remedy(tmp_path):
    (tmp_path / "trajectories.db").write_bytes(b"no database at all\n" * 500)
    with pytest.raises(StoreError) as caught:
        TrajectoryStore.open(folder=tmp_path)
    assert "trajectories.db" in caught.value.where
    assert "put a copy of it back" in caught.value.remedy
