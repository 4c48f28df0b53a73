"""A server that is read-only, locked, slow or restarted: recordings wait, each counts once."""

import threading
from contextlib import closing, contextmanager

import psycopg
import pytest
from sqlalchemy import event, text
from trajectory_samples import fill, play_one

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database import (
    DatabaseDown,
    TrajectoryRecorder,
    TrajectoryStore,
    connection,
    schema,
)
from agent_gym.rollouts.database.connection import Database

N = 6


def content(store):
    rows = store.page(limit=1000).rows
    return {row.trajectory_id: (row.episode_id, row.total_reward) for row in rows}


@pytest.fixture
def want(tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "quiet") as quiet:
        fill(quiet, range(N))
        return content(quiet)


def plain(url):
    """Connect beside the store, as a person with psql does."""
    return psycopg.connect(url, autocommit=True)


def end_others(other):
    other.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )


@contextmanager
def read_only(url):
    with closing(plain(url)) as other:
        name = other.info.dbname
        other.execute(f'alter database "{name}" set default_transaction_read_only = on')
        end_others(other)
        yield
        other.execute("set default_transaction_read_only = off")
        other.execute(f'alter database "{name}" reset default_transaction_read_only')
        end_others(other)


@contextmanager
def locked(url):
    with closing(psycopg.connect(url)) as other:
        other.execute("lock table trajectories in access exclusive mode")
        yield
        other.rollback()


@contextmanager
def slow(url):
    with closing(plain(url)) as other:
        other.execute(
            "create function wait() returns trigger language plpgsql as "
            "$$ begin perform pg_sleep(30); return new; end $$"
        )
        other.execute(
            "create trigger slow before insert on trajectories for each row execute function wait()"
        )
        yield
        other.execute("drop trigger slow on trajectories")


@contextmanager
def not_allowed(url):
    """The right to write is taken from the user whom the store comes as."""
    with closing(plain(url)) as other:
        other.execute("create role guest login")
        other.execute("grant all on all tables in schema public to guest")
        other.execute("grant all on all sequences in schema public to guest")
        other.execute("revoke insert on trajectories from guest")
        yield
        other.execute("grant insert on trajectories to guest")


@pytest.mark.parametrize("fault", [read_only, locked, slow])
def test_recordings_wait_while_the_server_takes_none(
    fault, new_postgres, tmp_path, clock, monkeypatch, want
):
    monkeypatch.setattr(connection, "BUSY_S", 1)
    monkeypatch.setattr(connection, "SLOW_S", 1)
    url = new_postgres()
    with TrajectoryStore.open(url, folder=tmp_path / "s", clock=clock) as store:
        fill(store, range(2))
        with fault(url):
            clock.sleep_s(100.0)
            fill(store, range(2, N))
            assert len(store.outbox.waiting()) == 1
        report = store.deliver()
        assert (report.delivered, report.waiting) == (1, 0)
        assert content(store) == want


def test_a_right_that_is_taken_back_is_an_outage_too(new_postgres, tmp_path, clock, want):
    url = new_postgres()
    guest = url.replace("gym@", "guest@")
    with not_allowed(url), TrajectoryStore.open(guest, folder=tmp_path / "s", clock=clock) as store:
        fill(store, range(N))
        assert len(store.outbox.waiting()) == 1
    with TrajectoryStore.open(guest, folder=tmp_path / "s", clock=clock) as store:
        assert store.deliver().delivered == 1
        assert content(store) == want
        store.close()
    with closing(plain(url)) as other:
        other.execute("drop owned by guest")
        other.execute("drop role guest")


def test_a_file_that_may_only_be_read_is_an_outage(new_sqlite, tmp_path, clock, want):
    with TrajectoryStore.open(new_sqlite(), folder=tmp_path / "s", clock=clock) as store:
        engine = store.database.engine
        engine.dispose()

        def only_read(raw, _record):
            raw.execute("pragma query_only = on")

        event.listen(engine, "connect", only_read)
        fill(store, range(N))
        assert len(store.outbox.waiting()) == 1
        event.remove(engine, "connect", only_read)
        engine.dispose()
        assert store.deliver().delivered == 1
        assert content(store) == want


def test_a_fault_of_ours_is_no_outage(store):
    with pytest.raises(StoreError) as caught, store.database.writing() as connected:
        connected.execute(text("insert into nowhere values (1)"))
    refused = "no such table" if store.database.is_sqlite else "does not exist"
    assert refused in str(caught.value)


def test_two_recorders_over_two_restarts_lose_nothing(
    postgres_server, new_postgres, tmp_path, clock, want
):
    """One goes on in a thread of its own while the server dies and comes back, twice."""
    url, played = new_postgres(), threading.Semaphore(0)
    go_on = threading.Semaphore(0)

    def other():
        with (
            TrajectoryStore.open(url, folder=tmp_path / "a", clock=clock) as store,
            TrajectoryRecorder(store, flush_steps=1) as recorder,
        ):
            for n in range(N):
                go_on.acquire(timeout=120)
                play_one(recorder, n)
                recorder.flush()
                played.release()

    thread = threading.Thread(target=other)
    thread.start()
    with (
        TrajectoryStore.open(url, folder=tmp_path / "b", clock=clock) as store,
        TrajectoryRecorder(store, flush_steps=1) as recorder,
    ):
        for n in range(N):
            if n in (1, 4):
                postgres_server.stop()
            if n in (2, 5):
                postgres_server.start()
                clock.sleep_s(100.0)
            go_on.release()
            play_one(recorder, n)  # the same episodes: both find the other's rows
            recorder.flush()
            assert played.acquire(timeout=120)
        recorder.flush()
    thread.join()
    for name in ("a", "b"):
        with TrajectoryStore.open(url, folder=tmp_path / name, clock=clock) as store:
            store.deliver()
            assert store.outbox.waiting() == ()
            assert content(store) == want


# Schemas that are older, while others work.


def old_database(server, version="0002"):
    name = server.new_database()
    engine = Database(server.url(name), lambda _engine: None).engine
    schema._migrate(engine, version)
    engine.dispose()
    return name


def test_others_go_on_writing_while_an_index_is_built(postgres_server, tmp_path):
    name = old_database(postgres_server)
    url = postgres_server.url(name)
    old = TrajectoryStore(Database(url, lambda _engine: None), tmp_path / "s", clock=None)
    with closing(psycopg.connect(url)) as writer:
        writer.execute("lock table trajectories in row exclusive mode")  # one who has just written
        migration = threading.Thread(
            target=lambda: TrajectoryStore.open(url, folder=tmp_path / "s").close()
        )
        migration.start()
        with closing(plain(url)) as look:
            building = "select 1 from pg_stat_progress_create_index where command ~ 'CONCURRENTLY'"
            while not look.execute(building).fetchone():
                assert migration.is_alive()
        with TrajectoryStore.open(folder=tmp_path / "quiet") as quiet:
            made = fill(quiet, [0])
            row = quiet.get(made[0]).as_dict() | {"step_file": None}
        with old.database.writing() as connected:  # would wait for ever behind a plain index
            columns = [column for column in row if column != "id"]
            names = ", ".join(columns)
            values = ", ".join(f":{column}" for column in columns)
            for column in ("reward_components", "metrics", "details"):
                row[column] = "{}"
            connected.execute(text(f"insert into trajectories ({names}) values ({values})"), row)
        assert migration.is_alive()
        writer.rollback()
    migration.join()
    old.close()
    with TrajectoryStore.open(url, folder=tmp_path / "s") as store:
        assert store.count() == 1
        assert schema.state_of(store.database.engine).pending == ()
    postgres_server.drop(name)


def test_an_index_that_was_cut_short_is_built_again(postgres_server, tmp_path):
    name = old_database(postgres_server)
    url, valid = postgres_server.url(name), "select indisvalid from pg_index where indexrelid = "
    with closing(plain(url)) as other:
        other.execute("create index ix_trajectories_tally on trajectories (purpose)")
        other.execute(
            "update pg_index set indisvalid = false where indexrelid = "
            "'ix_trajectories_tally'::regclass"
        )
        with TrajectoryStore.open(url, folder=tmp_path) as store:
            assert store.count() == 0
        assert other.execute(valid + "'ix_trajectories_tally'::regclass").fetchone() == (True,)
        said = other.execute("select pg_get_indexdef('ix_trajectories_tally'::regclass)").fetchone()
        assert "judged_ns" in said[0]
    postgres_server.drop(name)


def test_who_finds_a_migration_under_way_waits_and_then_gives_up(
    postgres_server, tmp_path, monkeypatch
):
    monkeypatch.setattr(schema, "LOCK_WAIT_S", 0.1)
    name = old_database(postgres_server)
    url = postgres_server.url(name)
    with closing(plain(url)) as other:
        other.execute("select pg_advisory_lock(%s)", [schema.MIGRATION_LOCK])
        with TrajectoryStore.open(url, folder=tmp_path) as store:
            with pytest.raises(DatabaseDown, match="migrating"):
                store.count()
            other.execute("select pg_advisory_unlock(%s)", [schema.MIGRATION_LOCK])
            assert store.count() == 0
    postgres_server.drop(name)
