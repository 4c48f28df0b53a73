"""The parts of the soak: the plan, what is read from files and databases, what goes wrong."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from hashlib import sha256
from itertools import islice

import psycopg
import pytest

from agent_gym.agents.artifact import write_artifact
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import StoreError
from agent_gym.core.files import write_text
from agent_gym.pipeline.registry import ModelDeploymentService, ModelRegistry
from agent_gym.rollouts.database import AgentRecord, PlayedTick, TrajectoryRecorder, TrajectoryStore
from tests.rollouts.postgres import binaries
from tests.soak import files, reading
from tests.soak.acks import Acks, Heard
from tests.soak.actors import ROOT, Actor, descendants
from tests.soak.databases import BUSY, Postgres, Sqlite
from tests.soak.disk import Disk
from tests.soak.invariants import Memory, violations
from tests.soak.launch import set_clock
from tests.soak.look import Look
from tests.soak.page import page, passed
from tests.soak.plan import KINDS, planned
from tests.soak.recorder import record


@pytest.mark.parametrize("database", KINDS)
def test_the_plan_comes_from_the_seed_and_each_round_has_every_kind(database):
    kinds = KINDS[database]
    plan = list(islice(planned(3, database), 3 * len(kinds)))
    assert plan == list(islice(planned(3, database), 3 * len(kinds)))
    assert plan != list(islice(planned(4, database), 3 * len(kinds)))
    for k in range(0, len(plan), len(kinds)):
        assert sorted(one.kind for one in plan[k : k + len(kinds)]) == sorted(kinds)
    assert Counter(one.number for one in plan) == dict.fromkeys(range(len(plan)), 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("latest.json", '{"a": 1'),
        ("nightly.html", "<html><body>"),
        ("junit.xml", "<a><b></a>"),
        ("figures.prom", "# TYPE a gauge\na 1"),
    ],
)
def test_half_a_file_is_named_until_it_is_whole(tmp_path, name, text):
    path = tmp_path / "reports" / name
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    looked = files.Files(tmp_path)
    assert looked.broken()[0].startswith(f"reports/{name}")
    assert looked.broken()
    whole = {
        ".json": '{"a": 1}',
        ".html": "<html></html>\n",
        ".xml": "<a/>",
        ".prom": "# TYPE a gauge\na 1\n",
    }
    write_text(path, whole[path.suffix])
    assert looked.broken() == []
    (path.parent / ".half.json.tmp").write_text("{", encoding="utf-8")  # it has no final name yet
    assert looked.broken() == []
    assert files.half_written(tmp_path) == 1


def test_a_step_file_has_the_hash_it_is_called_by(tmp_path):
    folder = tmp_path / "trajectories" / "steps"
    folder.mkdir(parents=True)
    (folder / f"{sha256(b'rows').hexdigest()}.arrow").write_bytes(b"rows")
    looked = files.Files(tmp_path)
    assert looked.broken() == []
    (folder / f"{sha256(b'other').hexdigest()}.arrow").write_bytes(b"oth")
    assert len(looked.broken()) == 1


def test_a_trace_in_a_log_is_told_once(tmp_path):
    log, seen = tmp_path / "service-1.log", {}
    place = 'File "x.py", line 3, in save'
    trace = f'Traceback (most recent call last):\n  File "a"\n  {place}\n    do()\nOSError: full\n'
    log.write_text(f"fine\n{trace}")
    assert files.traces(tmp_path, seen) == [f"service-1.log has a trace: OSError: full ({place})"]
    assert files.traces(tmp_path, seen) == []


def loop(home):
    """Return a small workspace: two recordings, a champion, an agent that has played a tick."""
    acks = Acks(home / "acks.jsonl")
    with TrajectoryStore.open(folder=home / "trajectories") as store:
        with TrajectoryRecorder(store) as recorder:
            for number in range(2):
                made, n = record(recorder, 1, number)
                acks.say("trajectory", id=made, steps=n)
        write_artifact(home / "trained", "neural/market", {"policy.json": b"{}"})
        registry = ModelRegistry.open(store.database, home / "models")
        model = registry.add(home / "trained").model_hash
        ModelDeploymentService(registry).install(model)
        store.agents.add(AgentRecord(agent_id="ann", name="ann", points=5))
        store.agents.advance("ann", PlayedTick(0, 1, model, call={"tick": 0}))
        acks.say("tick", agent="ann", tick=0)
    return model


def seen_in(home):
    heard = Heard(home).catch_up()
    with reading.reading(None, home) as reader:
        rows = reading.rows(reader, heard.ticks)
    looked = files.Files(home)
    return Look(
        acknowledged=heard,
        rows=rows,
        waiting=reading.waiting(home),
        broken=looked.broken(),
        unsigned=looked.unsigned(list(rows.models)),
    )


def wrong_in(home):
    found = violations(seen_in(home), Memory(points={"ann": 5}))
    return {one["invariant"] for one in found}


STATEMENTS = {
    "steps once": "update trajectories set n_steps = n_steps - 1, first_row = 0",
    "steps in place": "update trajectories set first_row = first_row + 1000",
    "ticks once": "insert into events (kind, subject, data, at_ns) "
    "select kind, subject, data, at_ns from events",
    "points conserved": "update service_agents set points = points + 1",
    "money conserved": "update trajectories set final_balance = 10001, final_pnl = 0",
    "one champion": "update trained_models set status = 'archived'",
    "history chained": "update registry_pointer set history_length = history_length + 1",
}


def test_what_is_planted_into_a_real_workspace_is_caught(tmp_path):
    good = tmp_path / "good"
    good.mkdir()
    model = loop(good)
    assert wrong_in(good) == set()
    for name, statement in STATEMENTS.items():
        home = shutil.copytree(good, tmp_path / name.replace(" ", "-"))
        with closing(sqlite3.connect(home / "trajectories" / "trajectories.db")) as database:
            database.execute(statement)
            database.commit()
        assert name in wrong_in(home), name
    policy = good / "models" / "artifacts" / model / "artifact" / "policy.json"
    policy.write_bytes(b"[]")
    assert wrong_in(good) == {"models signed"}


def test_what_waits_in_the_outbox_is_not_lost(tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "trajectories") as store:
        path = str(store.database.url.database)
        with (
            Sqlite(tmp_path).locked(),
            closing(sqlite3.connect(path, 0.0)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("begin immediate")
        store.outbox.keep({"trajectories": [{"trajectory_id": "w", "n_steps": 3}]})
    assert reading.waiting(tmp_path) == {"w": 3}


@pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed")
def test_a_server_is_locked_read_only_and_away_and_comes_back(tmp_path):
    place = Postgres(tmp_path)
    try:
        with psycopg.connect(place.url, autocommit=True) as own:
            for name in BUSY:
                own.execute(f"create table {name} (n int)")
            write = f"insert into {BUSY[0]} values (1)"
            own.execute("set lock_timeout = '50ms'")
            with place.locked(), pytest.raises(psycopg.errors.LockNotAvailable):
                own.execute(write)
            own.execute(write)
            with place.read_only(), psycopg.connect(place.url) as other:
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    other.execute(write)
                other.rollback()
        with place.away(), pytest.raises(psycopg.OperationalError):
            psycopg.connect(place.url)
        with psycopg.connect(place.url) as own:
            own.execute(write)
            assert own.execute(f"select count(*) from {BUSY[0]}").fetchone() == (2,)
    finally:
        place.close()


def test_a_full_disk_refuses_and_has_room_again(tmp_path):
    disk = Disk(tmp_path / "disk", lambda: [os.getpid()])
    try:
        old = disk.place / "old.json"
        write_text(old, "old")
        with disk.full(), pytest.raises((OSError, StoreError)):
            write_text(old, "new" * 100_000)
        assert old.read_text() == "old"
        write_text(old, "new" * 100_000)
    finally:
        disk.close()


def test_the_clock_of_a_command_is_moved_from_outside(tmp_path):
    clock = tmp_path / "clock"
    words = (
        "import sys; from pathlib import Path; from tests.soak.launch import move_clock, set_clock;"
        "from agent_gym.core.clock import SystemClock; path = Path(sys.argv[1]); "
        "set_clock(path, 0); move_clock(path); now = SystemClock().now_ns; before = now(); "
        f"set_clock(path, {-(10**6) * SECOND_NS}); print(now() < before)"
    )
    said = subprocess.run(
        [sys.executable, "-c", words, str(clock)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "True\n"
    set_clock(clock, 5)
    assert clock.read_bytes() == (5).to_bytes(8, "little")


def test_an_actor_is_killed_and_its_ending_is_counted(tmp_path):
    actor = Actor("clock", tmp_path, {"PYTHONPATH": str(ROOT)})
    actor.start("http.server", "0")
    assert actor.alive
    assert actor.pid in descendants(os.getpid())
    assert actor.end()
    assert not actor.alive
    assert (actor.lives, actor.codes) == (1, {"signal 9": 1})


def act(**more):
    fields = {
        "database": "sqlite",
        "disk": "small",
        "seconds": 60.0,
        "faults": {"kill service": 2, "disk full": 1},
        "starts": dict.fromkeys(("service", "harness", "nightly", "recorder"), 1),
        "figures": {"ticks": 1234, "answers": {"200": 3, "422": 1}},
        "looks": 5,
        "looks_at_database": 4,
        "looks_at_service": 4,
        "rss_mb_most": 500.0,
        "violations": [],
        "problems": [],
        "not_done": [],
    }
    return fields | more


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"violations": [{"invariant": "one champion", "words": "two"}]}, "one champion: two"),
        ({"problems": ["the service did not come back"]}, "the service did not come back"),
        ({"not_done": ["clock jump"]}, "never done: clock jump"),
    ],
)
def test_a_page_says_what_did_not_hold(more, words):
    said = {"command": "make soak", "passed": True}
    assert passed([act()])
    good = page(said, [act()])
    assert "| ticks of agents | 1,234 |" in good
    assert words not in good
    assert not passed([act(), act(**more)])
    bad = page(said | {"passed": False}, [act(**more)])
    assert "**NOT everything held**" in bad
    assert words in bad
