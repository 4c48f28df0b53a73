"""Old trajectories go with what belongs to them; what is held, waited for or new stays."""

import os

import pytest
from trajectory_samples import fill, play_one

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.pipeline.registry.tables import FAMILY
from agent_gym.rollouts.database import (
    BatchRequest,
    JudgmentRecord,
    LlmCallRecord,
    TrajectoryFilter,
    TrajectoryRecorder,
)
from agent_gym.rollouts.database.keeping.place import files_held
from agent_gym.rollouts.database.keeping.retention import RetentionRules, plan_prune, prune
from agent_gym.rollouts.database.keeping.statistics import figures_of

RULES = RetentionRules(older_than=30.0)


def record(store, numbers, **about):
    """Record into one file, with a call each; the file is as old as the store's clock says."""
    with TrajectoryRecorder(store) as recorder:
        for n in numbers:
            play_one(recorder, n, **about)
            recorder.add_calls([LlmCallRecord(t=0, model="m")])
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in numbers]
    path = store.files.path(store.get(ids[0]).step_file)
    now = store.clock.now_ns()
    os.utime(path, ns=(now, now))
    return ids, path


def judge(store, name):
    said = {"group_id": "g", "judge_model": "j", "judge_version": "1", "overall_score": 0.5}
    store.judgments.add([JudgmentRecord(trajectory_id=name, **said)])


def test_old_ones_go_with_what_belongs_to_them(store, clock):
    old, gone = record(store, range(4))
    judge(store, old[0])
    clock.advance_ns(31 * DAY_NS)
    new, kept = record(store, range(10, 13))
    planned = plan_prune(store, RULES)
    assert store.count() == 7
    done = prune(store, RULES)
    assert done == planned
    assert (done.trajectories, done.calls, done.judgments, done.step_files) == (4, 4, 1, 1)
    assert not gone.exists()
    assert kept.exists()
    assert {row.trajectory_id for row in store.page().rows} == set(new)
    assert store.check().whole
    orphans = figures_of(store, {"registry": FAMILY}).orphans
    assert [orphans.pop("examples"), *orphans.values()] == [[], 0, 0, 0]
    assert prune(store, RULES).trajectories == 0
    with pytest.raises(ConfigError):
        store.get(old[0])


def test_what_a_batch_holds_stays_and_what_it_gave_back_goes(store, clock):
    ids, path = record(store, range(6))
    store.batches.claim(BatchRequest(batch_id="b"))
    held = store.batches.ids("b")[:4]
    store.batches.complete("b", held)
    clock.advance_ns(31 * DAY_NS)
    done = prune(store, RULES)
    assert (done.trajectories, done.held) == (2, 4)
    assert {row.trajectory_id for row in store.page().rows} == set(held)
    assert set(held) < set(ids)
    assert path.exists()  # it holds steps of those that stay
    assert len(store.read_batch("b").ids) == 4


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({"keep_evaluation": False}, 0),
        ({}, 1),
        ({"keep_judged": True}, 2),
        ({"older_than": 40.0}, 3),
    ],
)
def test_each_rule_matters(store, clock, rules, left):
    (_, judged), _ = record(store, range(2))
    record(store, [5], purpose="evaluation")
    judge(store, judged)
    clock.advance_ns(31 * DAY_NS)
    prune(store, RetentionRules(**({"older_than": 30.0} | rules)))
    assert store.count(TrajectoryFilter()) == left


def test_files_that_are_new_or_waited_for_stay(store, clock):
    _, stray = record(store, [0])
    clock.advance_ns(31 * DAY_NS)
    with store.database.writing() as connection:
        for table in ("llm_call_logs", "trajectories", "step_files"):
            connection.exec_driver_sql(f"delete from {table}")
    document = {"step_files": [{"file_hash": stray.stem}], "trajectories": [], "llm_calls": []}
    waiting = store.outbox.keep(document)
    assert prune(store, RULES).step_files == 0
    waiting.unlink()
    now = clock.now_ns()
    os.utime(stray, ns=(now, now))  # a recorder has just met it again
    assert prune(store, RULES).step_files == 0
    os.utime(stray, ns=(now - 2 * DAY_NS, now - 2 * DAY_NS))
    assert prune(store, RULES).step_files == 1
    assert not stray.exists()


def test_nothing_goes_while_a_backup_is_taken(store, clock):
    fill(store, range(2))
    clock.advance_ns(31 * DAY_NS)
    with files_held(store.folder, alone=False), pytest.raises(StoreError, match="somebody else"):
        prune(store, RULES)
    assert store.count() == 2
    assert prune(store, RULES).trajectories == 2


def test_the_same_again_is_met_lately(store):
    ids, path = record(store, [0])
    os.utime(path, ns=(0, 0))
    assert fill(store, [0]) == ids
    assert path.stat().st_mtime_ns > 0
