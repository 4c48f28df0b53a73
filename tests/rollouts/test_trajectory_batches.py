"""Claims: a batch is exactly what is marked as used, and no two batches share a trajectory."""

from threading import Barrier, Thread

import pytest
from pydantic import ValidationError
from rollout_samples import Dice
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError
from trajectory_samples import fill, play_one

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database import (
    BatchRequest,
    LlmCallRecord,
    Trajectory,
    TrajectoryFilter,
    TrajectoryRecorder,
    reading,
)

USED = TrajectoryFilter(used_in_training=True)


def used(store):
    return {row.trajectory_id for row in store.page(USED, limit=1000).rows}


def test_exactly_the_members_are_marked_as_used(store):
    fill(store, range(8))
    other = fill(store, range(8, 12), snapshot_id="later")
    batch = store.batches.claim(BatchRequest(batch_id="b1", max_groups=1))
    assert (batch.status, batch.n_trajectories, batch.n_groups) == ("pending", 4, 1)
    assert set(store.batches.ids("b1")) == used(store) == set(other)
    assert store.count(TrajectoryFilter(trained_in_batch="b1")) == 4
    found = store.read_batch("b1")
    assert set(found.ids) == set(other)
    assert [group.group_key for group in found.groups] == ["later/1/v1"]
    assert found.data_hash == batch.data_hash
    assert all(len(one.steps) == one.row.n_steps for one in found.groups[0].trajectories)
    counts = store.counts()
    assert (counts.trainable, counts.unused) == (12, 8)


def test_the_same_name_again_is_the_same_batch(store):
    fill(store, range(4))
    first = store.batches.claim(BatchRequest(batch_id="b", max_groups=1))
    again = store.batches.claim(BatchRequest(batch_id="b"))
    assert first.as_dict() == again.as_dict()
    assert len(used(store)) == 2


def test_groups_are_whole_large_enough_and_never_mixed(store):
    fill(store, range(5))
    fill(store, [90], snapshot_id="lonely")
    fill(store, [91, 92], snapshot_id=None)
    request = BatchRequest(batch_id="b", min_group_size=3, max_group_size=3)
    batch = store.batches.claim(request)
    assert (batch.n_trajectories, batch.n_groups) == (3, 1)
    (group,) = store.read_batch("b").groups
    assert {one.row.snapshot_id for one in group.trajectories} == {"s0"}
    assert {one.row.agent_version for one in group.trajectories} == {"v1"}
    for lone in (1, 0):
        with pytest.raises(ValidationError):
            BatchRequest(batch_id="c", min_group_size=lone)


def test_too_little_takes_nothing(store):
    fill(store, range(4))
    for request in (
        BatchRequest(batch_id="b", min_groups=3),
        BatchRequest(batch_id="b", min_group_size=3),
        BatchRequest(batch_id="b", chosen=TrajectoryFilter(agent="nobody")),
    ):
        assert store.batches.claim(request) is None
    assert used(store) == set()
    assert store.batches.newest() == ()
    with pytest.raises(ConfigError, match="no such batch"):
        store.batches.get("b")
    with pytest.raises(ConfigError, match="no such batch"):
        store.read_batch("b")


def test_what_cannot_be_learned_from_is_never_taken(store):
    fill(store, range(4), purpose="evaluation")
    fill(store, range(4, 8), agent=Dice())
    assert store.batches.claim(BatchRequest(batch_id="b")) is None
    without = store.batches.claim(BatchRequest(batch_id="b", log_probs=False))
    assert without.n_trajectories == 4


def test_what_was_trained_on_stays_used_and_the_rest_goes_back(store):
    ids = set(fill(store, range(4)))
    store.batches.claim(BatchRequest(batch_id="b"))
    store.batches.set_status("b", "training")
    trained = store.batches.ids("b")[:3]
    store.batches.complete("b", trained, model_version="hash", training_loss=0.25)
    batch = store.batches.get("b")
    assert (batch.status, batch.model_version, batch.training_loss) == ("completed", "hash", 0.25)
    assert used(store) == set(store.batches.ids("b")) == set(trained)
    assert set(store.read_batch("b").ids) == set(trained)
    left = ids - set(trained)
    outcomes = {m.trajectory_id: m.outcome for m in store.batches.members("b")}
    assert {name for name, outcome in outcomes.items() if outcome == "dropped"} == left
    store.batches.complete("b", trained)
    with pytest.raises(StoreError, match="ended already"):
        store.batches.complete("b", trained[:1])
    with pytest.raises(StoreError, match="ended already"):
        store.batches.release("b", "too late")
    with pytest.raises(StoreError, match="ended already"):
        store.batches.set_status("b", "scoring")


def test_what_was_dropped_is_not_taken_again_unless_asked(store):
    fill(store, [0, 2])
    store.batches.claim(BatchRequest(batch_id="b"))
    store.batches.complete("b", [])
    assert used(store) == set()
    assert store.batches.claim(BatchRequest(batch_id="c")) is None
    assert store.batches.claim(BatchRequest(batch_id="c", dropped_before=True)) is not None


def test_a_training_cannot_have_used_what_it_did_not_claim(store):
    ids = fill(store, range(4))
    store.batches.claim(BatchRequest(batch_id="b", max_groups=1))
    stranger = next(iter(set(ids) - set(store.batches.ids("b"))))
    with pytest.raises(StoreError, match="does not hold"):
        store.batches.complete("b", [stranger])
    assert store.batches.get("b").status == "pending"


def test_a_failed_batch_gives_everything_back(store):
    fill(store, range(4))
    store.batches.claim(BatchRequest(batch_id="b"))
    store.batches.release("b", "out of memory")
    store.batches.release("b", "again")
    batch = store.batches.get("b")
    assert (batch.status, batch.error) == ("failed", "out of memory")
    assert used(store) == set()
    assert store.batches.ids("b") == ()
    assert len(store.batches.members("b")) == 4
    assert store.batches.claim(BatchRequest(batch_id="c")).n_trajectories == 4
    with pytest.raises(StoreError, match="ended already"):
        store.batches.complete("b", [])


def test_the_two_ends_have_calls_of_their_own(store):
    fill(store, range(2, 6))
    store.batches.claim(BatchRequest(batch_id="b"))
    for status in ("completed", "failed"):
        with pytest.raises(ConfigError, match="complete"):
            store.batches.set_status("b", status)
    store.batches.set_status("b", "scoring")
    started = store.batches.get("b").started_ns
    store.batches.set_status("b", "training")
    assert store.batches.get("b").started_ns == started is not None
    assert [batch.batch_id for batch in store.batches.newest("training")] == ["b"]
    assert store.batches.newest("failed") == ()


def test_claims_at_the_same_moment_never_overlap(store):
    fill(store, range(24), agent_version="v1")
    for n in range(6):
        fill(store, range(100 * n, 100 * n + 4), snapshot_id=f"group-{n}")
    n_claims = 8
    barrier, claimed, failed = Barrier(n_claims), {}, []

    def claim(n):
        barrier.wait()
        try:
            batch = store.batches.claim(BatchRequest(batch_id=f"b{n}", max_groups=1))
        except StoreError as error:
            failed.append(error)
        else:
            claimed[n] = () if batch is None else store.batches.ids(f"b{n}")

    threads = [Thread(target=claim, args=(n,)) for n in range(n_claims)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    taken = [name for ids in claimed.values() for name in ids]
    assert len(claimed) == n_claims
    assert len(taken) == len(set(taken)) == 24 + 24
    assert set(taken) == used(store)


def test_the_database_itself_refuses_a_half_marked_row(store):
    (made,) = fill(store, [0])
    changes = [{"used_in_training": True}, {"n_steps": 0}, {"trained_in_batch": "nobody"}]
    for change in changes:
        chosen = update(Trajectory).where(Trajectory.trajectory_id == made)
        with (
            pytest.raises(StoreError, match="refused") as caught,
            store.database.writing() as connection,
        ):
            connection.execute(chosen.values(change))
        assert isinstance(caught.value.__cause__, IntegrityError)
    assert used(store) == set()


def test_a_batch_can_be_read_group_by_group(store, monkeypatch):
    monkeypatch.setattr(reading, "GROUPS_AT_ONCE", 1)
    fill(store, range(6))
    store.batches.claim(BatchRequest(batch_id="b"))
    whole, groups = store.read_batch("b"), tuple(store.stream_batch("b"))
    assert [group.group_key for group in groups] == [group.group_key for group in whole.groups]
    for mine, theirs in zip(groups, whole.groups, strict=True):
        assert [one.row.trajectory_id for one in mine.trajectories] == [
            one.row.trajectory_id for one in theirs.trajectories
        ]
        assert [one.steps.reward.tolist() for one in mine.trajectories] == [
            one.steps.reward.tolist() for one in theirs.trajectories
        ]
    with pytest.raises(ConfigError, match="no such batch"):
        next(store.stream_batch("other"))


def test_calls_of_many_are_those_of_each(store):
    with TrajectoryRecorder(store) as recorder:
        for n in range(3):
            play_one(recorder, n)
            calls = [LlmCallRecord(t=t, model="m", response=f"{n} {t}") for t in range(n)]
            recorder.add_calls(calls)
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in range(3)]
    found = store.calls_of(ids)
    said = [[call.response for call in found[name]] for name in ids]
    assert said == [[], ["1 0"], ["2 0", "2 1"]]
    assert said == [[call.response for call in store.calls(name)] for name in ids]


def test_counting_can_stop(store):
    fill(store, range(5))
    assert [store.count(at_most=n) for n in (2, 5, 9)] == [2, 5, 5]
