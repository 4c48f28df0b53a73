"""A player that hangs or dies, or a damaged snapshot: the recordings of the others are whole."""

import pytest

from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation import recording
from agent_gym.pipeline.automation.recording import Recording, refuse_if_nothing
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.rollouts.database import TrajectoryStore
from agent_gym.rollouts.executor import LocalExecutor
from tests.pipeline.clumsy_samples import ENDINGS, ClumsyPlay
from tests.pipeline.kill_points import Inline, make_snapshots


def rows_of(store):
    return {
        row.trajectory_id: (row.snapshot_id, row.total_reward, len(store.steps(row.trajectory_id)))
        for row in store.page(limit=100).rows
    }


class Hasty(LocalExecutor):
    def run(self, jobs, progress=None, *, timeout_s=None):
        return super().run(jobs, progress, timeout_s=10.0)


def test_a_bad_job_costs_its_own_snapshot(tmp_path, monkeypatch):
    paths = make_snapshots(tmp_path / "snapshots", 5)
    untrained(paths, Seeds(0)).save(tmp_path / "model")
    with TrajectoryStore.open(folder=tmp_path / "quiet") as store:
        Recording(store, Inline(), ("a",), 2).play(tmp_path / "model", paths, "run")
        want = rows_of(store)
    assert len(want) == 10
    names = [path.name.partition(".")[0] for path in paths]
    paths[3].write_bytes(b"damaged")
    monkeypatch.setenv(ENDINGS, f"{names[0]}=dies,{names[1]}=hangs")
    monkeypatch.setattr(recording, "RecordedPlay", ClumsyPlay)
    executor = Hasty(2, imports=(ClumsyPlay.__module__,))
    with TrajectoryStore.open(folder=tmp_path / "store") as store:
        rows = Recording(store, executor, ("a",), 2).play(tmp_path / "model", paths, "run")
        found = rows_of(store)
        assert store.check().whole
    assert [row["status"] for row in rows] == ["crashed", "timeout", "ok", "error", "ok"]
    refuse_if_nothing(rows)
    with pytest.raises(StoreError, match="nothing could be played"):
        refuse_if_nothing(rows[:2])
    bad = {names[0], names[1], names[3]}
    assert {one: row for one, row in found.items() if row[0] not in bad} == {
        one: row for one, row in want.items() if row[0] not in bad
    }
    assert [row[0] for row in found.values() if row[0] in bad] == [names[0]]  # before it died
    assert found.items() <= want.items()
