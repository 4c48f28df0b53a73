"""The desk's memory on disk: it comes back as it was, or says why not."""

import signal as process_signal
import sqlite3
import subprocess
import sys
from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import AgentResponse, PnLSnapshot, RecentContext, SignalFeatures
from agent_gym.agents.desk.context_db import DB_VERSION
from agent_gym.core.errors import AgentError, StoreError
from tests.agents.desk_samples import NOW
from tests.agents.test_desk_context import EVENTS, MOMENTS, parse, shown, tell


@settings(max_examples=25)
@given(events=EVENTS, maxlen=st.sampled_from([2, 5, 100]), moment=MOMENTS)
def test_ring_and_file_agree_and_come_back_the_same(events, maxlen, moment, tmp_path_factory):
    path = tmp_path_factory.mktemp("desk") / "context.db"
    kept = tell(RecentContext(maxlen, path), events)
    ring = tell(RecentContext(maxlen), events)
    assert shown(kept) == shown(ring)
    kept.close()
    back = RecentContext(maxlen, path)
    assert shown(back) == shown(ring)
    assert back.latest == ring.latest
    # What the ring dropped is read again for the past: it shows what a live context showed then.
    live = tell(RecentContext(maxlen), [event for event in events if event[1] <= moment])
    assert shown(back.as_of(moment)) == shown(live)
    back.close()


def test_what_would_not_come_back_the_same_is_not_written(tmp_path):
    context = RecentContext(10, tmp_path / "context.db")
    before = context.digest()
    with pytest.raises(AgentError, match="would not come back"):
        context.store_pnl(PnLSnapshot(NOW, nan, 1.0, 0.0, 0.0))
    with pytest.raises(AgentError, match="cannot be written as JSON"):
        context.store_response(AgentResponse("t", "risk", "ok", payload={"x": object()}))
    assert context.digest() == before
    context.store_response(AgentResponse("t", "risk", "ok", payload={"x": np.float64(0.5)}))
    context.close()
    back = RecentContext(10, tmp_path / "context.db")
    assert back.get_responses()[0].payload == {"x": 0.5}


def some_file(path):
    context = RecentContext(10, path)
    for turn in range(300):
        context.store_signal(parse(f"s{turn}", timestamp=NOW + turn))
    context.close()


def change(path, statement):
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "context.db"
    path.write_bytes(b"signal_id,strategy\n" * 400)
    with pytest.raises(StoreError, match=r"damaged.*Move the file away"):
        RecentContext(10, path)
    assert path.read_bytes() == b"signal_id,strategy\n" * 400


def test_a_database_of_someone_else_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "context.db"
    change(path, "CREATE TABLE orders (id INTEGER)")
    with pytest.raises(StoreError, match="not a memory of the desk"):
        RecentContext(10, path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("orders",)]
    connection.close()


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "context.db"
    some_file(path)
    change(path, f"PRAGMA user_version = {DB_VERSION + 1}")
    with pytest.raises(StoreError, match=r"newer version.*Use the newer version"):
        RecentContext(10, path)


def test_a_file_of_the_first_version_is_read_and_marked_as_new(tmp_path):
    path = tmp_path / "context.db"
    some_file(path)
    before = RecentContext(10, path).digest()
    change(path, "PRAGMA user_version = 1")
    context = RecentContext(10, path)
    assert context.digest() == before
    assert context.get_features() == []
    context.store_features(SignalFeatures("s299", {"side": 1.0}))
    context.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (DB_VERSION,)
    connection.close()
    assert DB_VERSION == 2


def test_damage_inside_the_file_is_told_and_never_read_as_something_else(tmp_path):
    path = tmp_path / "context.db"
    some_file(path)
    whole = path.read_bytes()
    expected = RecentContext(10, path).digest()
    found = [digest_of(path, whole, place) for place in range(0, len(whole), 2048)]
    told = [error for error in found if isinstance(error, StoreError)]
    assert told
    assert all(error.remedy for error in told)
    assert {digest for digest in found if isinstance(digest, str)} <= {expected}


def digest_of(path, whole, place):
    """Return the digest of a file with a hole in it, or the error it gives."""
    broken = bytearray(whole)
    broken[place : place + 200] = b"\xff" * 200
    for journal in path.parent.glob("context.db-*"):
        journal.unlink()
    path.write_bytes(bytes(broken))
    try:
        context = RecentContext(10, path)
    except StoreError as error:
        return error
    context.close()
    return context.digest()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = '{\"signal_id\": 7}' WHERE id = 's299'",
        "UPDATE records SET body = replace(body, '0.1', '0.9') WHERE id = 's299'",
        "UPDATE records SET body = CAST(replace(body, '0.1', '0.9') AS BLOB) WHERE id = 's299'",
        "UPDATE records SET known_at = known_at + 1 WHERE id = 's299'",
        "UPDATE records SET kind = 'outcome' WHERE id = 's299'",
    ],
)
def test_a_record_that_was_changed_is_told(tmp_path, statement):
    path = tmp_path / "context.db"
    some_file(path)
    change(path, statement)
    with pytest.raises(StoreError, match=r"cannot be read.*record 300 does not match its mark"):
        RecentContext(10, path)


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        RecentContext(10, tmp_path / "file" / "context.db")
    with pytest.raises(StoreError):
        RecentContext(10, tmp_path)


def test_a_full_disk_leaves_ring_and_file_as_they_were(tmp_path):
    path = tmp_path / "context.db"
    context = RecentContext(1000, path)
    context.store_signal(parse("s0"))
    pages = context._db._connection.execute("PRAGMA page_count").fetchone()[0]
    context._db._connection.execute(f"PRAGMA max_page_count = {pages}")
    turns = iter(range(1, 500))
    with pytest.raises(StoreError, match="disk has room"):
        tell(context, (("signal", NOW + t, parse(f"s{t}", timestamp=NOW + t)) for t in turns))
    stored = next(turns) - 1
    assert 1 <= stored < 498
    assert len(context.get_recent_signals()) == stored
    before = context.digest()
    assert not context.has_seen(f"s{stored}")
    context.close()
    assert RecentContext(1000, path).digest() == before


KILLED = """
import os, signal, sys
from pathlib import Path
from agent_gym.agents.desk import RecentContext, Signal, SignalParams
context = RecentContext(1000, Path(sys.argv[1]))
for turn in range(int(sys.argv[2])):
    context.store_signal(Signal(f"s{turn}", "momentum", SignalParams(0.1), 1.0 + turn))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_nothing_it_stored(tmp_path):
    path = tmp_path / "context.db"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), "40"], check=False, timeout=60)
    assert done.returncode == -process_signal.SIGKILL
    back = RecentContext(1000, path)
    assert [signal.signal_id for signal in back.get_recent_signals()] == [
        f"s{i}" for i in range(40)
    ]
