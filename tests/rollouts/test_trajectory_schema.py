"""A database that is older is brought up to date, a newer or foreign one is refused."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from trajectory_samples import fill

from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database import DatabaseDown, TrajectoryStore, migrations, schema
from agent_gym.rollouts.database.base import Base
from agent_gym.rollouts.database.connection import Database, database_url


def engine_of(url):
    return Database(url, schema.prepare).engine


def version(url):
    engine = engine_of(url)
    with engine.connect() as connection:
        found = schema.version_of(connection)
    engine.dispose()
    return found


def test_the_migrations_make_exactly_the_tables_of_the_code(empty_url, tmp_path):
    with (
        TrajectoryStore.open(empty_url, folder=tmp_path) as store,
        store.database.engine.connect() as connection,
    ):
        names = set(inspect(connection).get_table_names())
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        differences = compare_metadata(context, Base.metadata)
    assert names == {*Base.metadata.tables, schema.VERSION_TABLE}
    assert differences == []


def test_an_older_database_keeps_its_rows_and_gets_the_new_tables(empty_url, tmp_path):
    engine = engine_of(empty_url)
    schema._migrate(engine, "0001")
    assert "events" not in inspect(engine).get_table_names()
    engine.dispose()
    old = TrajectoryStore(Database(empty_url, lambda engine: None), tmp_path, ManualClock(1))
    ids = fill(old, range(3))
    old.close()
    with TrajectoryStore.open(empty_url, folder=tmp_path) as store:
        assert [store.get(made).trajectory_id for made in ids] == ids
        assert store.events.append("migrated", "store") == 1
    assert version(empty_url) == schema.head() == "0003"
    if empty_url.startswith("sqlite"):
        copy = Path(f"{database_url(empty_url).database}.before-0001")
        with closing(sqlite3.connect(copy)) as kept:
            assert kept.execute("select version_num from store_version").fetchall() == [("0001",)]
            assert kept.execute("select count(*) from trajectories").fetchone() == (3,)


def test_a_new_database_needs_no_backup(tmp_path):
    TrajectoryStore.open(folder=tmp_path).close()
    TrajectoryStore.open(folder=tmp_path).close()
    assert not list(tmp_path.glob("*.before-*"))


def test_a_newer_database_is_refused_and_left_alone(database_url, tmp_path):
    with engine_of(database_url).begin() as connection:
        connection.execute(text("update store_version set version_num = '9999'"))
    with pytest.raises(StoreError, match="newer version") as caught:
        TrajectoryStore.open(database_url, folder=tmp_path / "s")
    assert not isinstance(caught.value, DatabaseDown)
    assert caught.value.found == "9999"
    assert version(database_url) == "9999"


def test_tables_of_others_are_not_touched(empty_url, tmp_path):
    engine = engine_of(empty_url)
    with engine.begin() as connection:
        connection.execute(text("create table events (id integer primary key)"))
    with pytest.raises(StoreError, match="not made by agent-gym"):
        TrajectoryStore.open(empty_url, folder=tmp_path)
    assert inspect(engine).get_table_names() == ["events"]
    engine.dispose()


def test_other_tables_in_the_same_database_do_no_harm(empty_url, tmp_path):
    engine = engine_of(empty_url)
    with engine.begin() as connection:
        connection.execute(text("create table alembic_version (version_num text)"))
    with TrajectoryStore.open(empty_url, folder=tmp_path) as store:
        assert store.count() == 0
    engine.dispose()


def test_a_migration_that_fails_changes_nothing(database_url, tmp_path, monkeypatch):
    source = Path(migrations.__file__).parent / "versions"
    folder = tmp_path / "later" / "versions"
    folder.mkdir(parents=True)
    for path in source.glob("v*.py"):
        (folder / path.name).write_text(path.read_text())
    (folder / "v0004_broken.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        "revision, down_revision = '0004', '0003'\n"
        "def upgrade():\n"
        "    op.create_table('half', sa.Column('id', sa.Integer()))\n"
        "    op.execute('insert into nowhere values (1)')\n"
    )
    monkeypatch.setattr(schema, "_scripts", lambda: ScriptDirectory(str(folder.parent)))
    with (
        pytest.raises(StoreError),
        TrajectoryStore.open(database_url, folder=tmp_path / "s") as store,
    ):
        store.count()
    monkeypatch.undo()
    assert version(database_url) == "0003"
    assert "half" not in inspect(engine_of(database_url)).get_table_names()
    with TrajectoryStore.open(database_url, folder=tmp_path / "s") as store:
        assert store.count() == 0


def test_many_may_open_a_new_database_at_once(empty_url, tmp_path):
    def once(n):
        with TrajectoryStore.open(empty_url, folder=tmp_path) as store:
            return store.events.append("opened", str(n))

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(once, range(4))) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/x", "sqlite://", "sqlite:///:memory:", "x", ""]
)
def test_a_url_that_is_none_is_refused_without_its_password(url):
    with pytest.raises(ConfigError) as caught:
        database_url(url)
    assert "secret" not in str(caught.value)


def test_a_password_is_never_shown(tmp_path):
    url = "postgresql://gym:hunter2@127.0.0.1:1/none"
    with TrajectoryStore.open(url, folder=tmp_path) as store, pytest.raises(DatabaseDown) as caught:
        store.count()
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "trajectories.db").write_bytes(b"this is no database, it is a letter" * 100)
    with pytest.raises(StoreError, match="not a database"):
        TrajectoryStore.open(folder=tmp_path)


def test_sqlite_is_set_up_to_be_safe(tmp_path):
    with TrajectoryStore.open(folder=tmp_path) as store, store.database.reading() as session:
        found = {
            name: session.scalar(text(f"pragma {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
