"""Stores to test: every test that asks for one runs on SQLite and on a real PostgreSQL."""

import shutil

import postgres
import pytest

from agent_gym.core.clock import ManualClock
from agent_gym.rollouts.database import TrajectoryStore

BACKENDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres_server():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = postgres.new_server()
    yield server
    postgres.end(server)


@pytest.fixture(scope="session")
def made_sqlite(tmp_path_factory):
    """A database with its tables, to be copied: making them takes longer than most tests."""
    folder = tmp_path_factory.mktemp("made")
    TrajectoryStore.open(f"sqlite:///{folder / 'gym.db'}", folder=folder).close()
    return folder / "gym.db"


@pytest.fixture(scope="session")
def made_postgres(postgres_server, tmp_path_factory):
    name = postgres_server.new_database()
    folder = tmp_path_factory.mktemp("made")
    TrajectoryStore.open(postgres_server.url(name), folder=folder).close()
    return name


@pytest.fixture(params=BACKENDS)
def empty_url(request, tmp_path):
    """The address of a database without tables."""
    if request.param == "sqlite":
        (tmp_path / "db").mkdir(exist_ok=True)
        yield f"sqlite:///{tmp_path / 'db' / 'gym.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    name = server.new_database()
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def new_postgres(postgres_server, made_postgres):
    """Makes PostgreSQL databases with their tables."""
    names = []

    def make():
        names.append(postgres_server.new_database(made_postgres))
        return postgres_server.url(names[-1])

    yield make
    for name in names:
        postgres_server.drop(name)


@pytest.fixture
def new_sqlite(made_sqlite, tmp_path):
    """Makes files of SQLite with their tables."""
    folder = tmp_path / "db"
    folder.mkdir(exist_ok=True)

    def make():
        path = folder / f"gym-{len(list(folder.iterdir()))}.db"
        shutil.copy(made_sqlite, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture(params=BACKENDS)
def new_database(request):
    """Makes databases with their tables, of the one kind and of the other."""
    kind = "new_sqlite" if request.param == "sqlite" else "new_postgres"
    return request.getfixturevalue(kind)


@pytest.fixture
def database_url(new_database):
    """The address of a database with its tables."""
    return new_database()


@pytest.fixture
def clock():
    return ManualClock(1_794_000_000_000_000_000)


@pytest.fixture
def store(database_url, tmp_path, clock):
    with TrajectoryStore.open(database_url, folder=tmp_path / "store", clock=clock) as opened:
        yield opened
