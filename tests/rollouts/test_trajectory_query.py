"""Finding trajectories: every page once, and nothing a caller writes becomes SQL."""

import base64
import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy import insert, text
from trajectory_samples import fill

from agent_gym.core.errors import ConfigError
from agent_gym.rollouts.database import (
    SORTS,
    JudgmentRecord,
    Trajectory,
    TrajectoryFilter,
    TrajectoryStore,
)

NASTY = (
    "'; drop table trajectories; --",
    '" or 1=1 --',
    "e0' or '1'='1",
    "%",
    "_",
    "\\",
    "a\x00b",
    "\ud800",
    "x" * 10_000,
    ":name",
    "%(name)s",
    "{0}",
    "null",
    "",
)


def row(n, **more):
    """Return a row as the recorder would make it, without any steps behind it."""
    fields = {column.key: None for column in Trajectory.__table__.columns if column.key != "id"}
    return (
        fields
        | {
            "trajectory_id": f"t{n:06d}",
            "run_id": "r",
            "episode_id": f"e{n}",
            "role": "trader",
            "agent": f"agent-{n % 5}",
            "rules_version": "1",
            "group_key": f"g{n % 20}",
            "scenario_id": f"benchmark-{n % 20}",
            "window_hours": 1,
            "purpose": "training",
            "wall_ms": 0.0,
            "status": "completed",
            "terminated": True,
            "truncated": False,
            "n_steps": 10,
            "total_reward": float(n * 7919 % 101) / 10,
            "has_log_probs": True,
            "n_policy_versions": 1,
            "trainable": True,
            "reward_components": {},
            "metrics": {},
            "details": {},
            "used_in_training": False,
            "steps_hash": "",
            "start_ns": 1000 - n,
            "created_ns": 5,
        }
        | more
    )


def put(store, rows):
    with store.database.writing() as connection:
        connection.execute(insert(Trajectory), rows)


def walk(store, limit, **how):
    """Return the ids of all pages, one after the other."""
    found, after = [], None
    while True:
        page = store.page(limit=limit, after=after, **how)
        assert len(page.rows) <= limit
        found += [one.trajectory_id for one in page.rows]
        after = page.next
        if after is None:
            return found


def test_pages_give_every_row_once_and_in_order(store):
    rows = [row(n, judge_score=None if n % 3 else n % 7 / 7) for n in range(53)]
    rows[10]["total_reward"] = rows[20]["start_ns"] = None
    put(store, rows)
    have = store.page(limit=1000).rows
    for sort, descending in product(SORTS, (True, False)):
        value = {one.trajectory_id: (getattr(one, sort), one.id) for one in have}
        want = [name for name, (key, _) in value.items() if key is not None]
        want.sort(key=value.__getitem__, reverse=descending)
        for limit in (7, 53, 1000):
            assert walk(store, limit, sort=sort, descending=descending) == want
    assert len(walk(store, 1)) == 53


def test_rows_that_come_in_between_are_not_seen_twice(store):
    put(store, [row(n) for n in range(6)])
    page = store.page(limit=3)
    put(store, [row(n) for n in range(6, 12)])
    rest = store.page(limit=10, after=page.next)
    assert [one.episode_id for one in page.rows] == ["e5", "e4", "e3"]
    assert [one.episode_id for one in rest.rows] == ["e2", "e1", "e0"]


FILTERS = [
    ({"agent": "agent-1"}, lambda n: n % 5 == 1),
    ({"scenario_id": "benchmark-3"}, lambda n: n % 20 == 3),
    ({"group_key": "g7", "agent": "agent-2"}, lambda n: n % 20 == 7),
    ({"min_reward": 5.0, "max_reward": 6.0}, lambda n: 50 <= n * 7919 % 101 <= 60),
    ({"status": "error"}, lambda n: n == 9),
    ({"min_steps": 11}, lambda n: n == 4),
    ({"created_from_ns": 6, "created_to_ns": 8}, lambda n: n == 5),
    ({"created_to_ns": 5}, lambda n: False),
    ({"trainable": False}, lambda n: n == 9),
    ({"judged": True}, lambda n: n == 6),
    ({"judged": False}, lambda n: n != 6),
    ({"seed": 0}, lambda n: n == 8),
    ({"has_log_probs": False}, lambda n: n == 8),
    ({"used_in_training": True}, lambda n: False),
    ({"run_id": "other", "window_id": "w", "purpose": "evaluation"}, lambda n: n == 7),
    ({"snapshot_id": "s", "agent_version": "v", "episode_id": "e7"}, lambda n: n == 7),
    ({}, lambda n: True),
]


def test_a_filter_finds_what_it_says(store):
    special = {
        4: {"n_steps": 11},
        5: {"created_ns": 7},
        6: {"judged_ns": 1, "judge_score": 0.5},
        7: {
            "run_id": "other",
            "window_id": "w",
            "purpose": "evaluation",
            "snapshot_id": "s",
            "agent_version": "v",
        },
        8: {"seed": 0, "has_log_probs": False},
        9: {"status": "error", "trainable": False},
    }
    put(store, [row(n, **special.get(n, {})) for n in range(60)])
    for fields, want in FILTERS:
        chosen = TrajectoryFilter(**fields)
        expected = {f"t{n:06d}" for n in range(60) if want(n)}
        assert set(walk(store, 13, chosen=chosen)) == expected, fields
        assert store.count(chosen) == len(expected)
    asked = {name for fields, _ in FILTERS for name in fields}
    assert asked == set(TrajectoryFilter.model_fields) - {"trained_in_batch"}


TEXTS = (
    "run_id",
    "episode_id",
    "agent",
    "agent_version",
    "snapshot_id",
    "scenario_id",
    "group_key",
    "window_id",
    "trained_in_batch",
)


def test_nothing_in_a_filter_becomes_sql(store):
    fill(store, [0], run_id="r")
    for nasty, name in product(NASTY, TEXTS):
        assert store.count(TrajectoryFilter(**{name: nasty})) == 0
    for nasty in NASTY:
        with pytest.raises(ConfigError, match="no such trajectory"):
            store.get(nasty)
        assert store.calls(nasty) == ()
    assert store.count() == store.count(TrajectoryFilter(run_id="r")) == 1


def test_only_known_orders_are_taken(store):
    for sort in ("trajectory_id; drop table x", "id desc", "", "seed", "metrics", "ID"):
        with pytest.raises(ConfigError, match="no sort order is named"):
            store.page(sort=sort)
    for limit in (0, -1, 1001):
        with pytest.raises(ConfigError, match="too large or too small"):
            store.page(limit=limit)


@pytest.mark.parametrize(
    "wrong", [{"unknown": 1}, {"status": "fine"}, {"seed": 2**70}, {"min_reward": float("nan")}]
)
def test_only_known_filters_are_taken(wrong):
    with pytest.raises(ValidationError):
        TrajectoryFilter(**wrong)


def forged(mark, value, row_id):
    return base64.urlsafe_b64encode(json.dumps([mark, value, row_id]).encode()).decode()


def test_a_forged_or_foreign_cursor_is_refused(store):
    put(store, [row(n) for n in range(4)])
    cursor = store.page(limit=2, sort="total_reward").next
    mark = json.loads(base64.urlsafe_b64decode(cursor))[0]
    bad = [
        forged(mark, "1 or 1=1", 1),
        forged(mark, {"a": 1}, 1),
        forged(mark, None, 1),
        forged(mark, 1.0, "1"),
        forged(mark, 1.0, True),
        forged(mark, 2**70, 1),
        forged(mark, 1.0, 2**70),
        forged(mark, float("nan"), 1),
        forged(mark, float("inf"), 1),
        forged("other", 1.0, 1),
        "garbage",
        "",
        "é",
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    ]
    for wrong in bad:
        with pytest.raises(ConfigError, match="no place to go on from"):
            store.page(sort="total_reward", after=wrong)
    with pytest.raises(ConfigError, match="another filter or order"):
        store.page(sort="id", after=cursor)
    with pytest.raises(ConfigError, match="another filter or order"):
        store.page(TrajectoryFilter(agent="x"), sort="total_reward", after=cursor)
    assert len(store.page(sort="total_reward", after=cursor).rows) == 2


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    with TrajectoryStore.open(folder=tmp_path_factory.mktemp("small")) as opened:
        put(opened, [row(n) for n in range(3)])
        yield opened


@settings(max_examples=60)
@given(st.text(), st.text())
def test_any_text_is_only_text(small_store, value, cursor):
    assert small_store.count(TrajectoryFilter(agent=value)) == 0
    with pytest.raises(ConfigError):
        small_store.page(after=cursor)
    with small_store.database.reading() as session:
        assert session.scalar(text("select count(*) from trajectories")) == 3


def test_judging_changes_no_count_but_its_own(store):
    ids = fill(store, range(4))
    before = store.counts()
    said = [
        JudgmentRecord(
            trajectory_id=made, group_id="g", judge_model="m", judge_version="1", overall_score=0.5
        )
        for made in ids
    ]
    store.judgments.add(said)
    after = store.counts()
    assert (before.judged, after.judged) == (0, 4)
    assert (after.total, after.trainable, after.unused) == (4, 4, 4)
    assert (before.groups, before.full_groups, before.steps) == (after.groups, 2, 24)
    assert store.counts(min_group_size=3).full_groups == 0


def test_an_empty_store_counts_to_nothing(store):
    counts = store.counts()
    assert (counts.total, counts.trainable, counts.groups, counts.steps) == (0, 0, 0, 0)
    assert store.page().rows == ()
