"""The database goes away, the machine is switched off: nothing is lost, nothing comes twice."""

import json
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from trajectory_samples import fill, play_one

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database import (
    DatabaseDown,
    LlmCallRecord,
    TrajectoryRecorder,
    TrajectoryStore,
    connection,
)

HERE = Path(__file__).parent


def content(store):
    """Return what a store holds, without times and places."""
    rows = store.page(limit=1000, descending=False).rows
    return {
        row.trajectory_id: (row.episode_id, row.total_reward, store.steps(row.trajectory_id).t.size)
        for row in rows
    }


@pytest.fixture
def want(tmp_path):
    """What a run without accidents leaves."""
    with TrajectoryStore.open(folder=tmp_path / "quiet") as quiet:
        fill(quiet, range(12))
        return content(quiet)


def test_a_server_that_stops_in_the_middle_of_a_run(
    postgres_server, new_postgres, tmp_path, clock, want
):
    with TrajectoryStore.open(new_postgres(), folder=tmp_path / "s", clock=clock) as store:
        stopped = False
        with TrajectoryRecorder(store, flush_steps=1) as recorder:
            for n in range(12):
                if n == 4:
                    recorder.flush()
                    postgres_server.stop()
                    stopped = True
                if n == 8:
                    recorder.flush()
                    assert len(store.outbox.waiting()) == 4
                    postgres_server.start()
                    stopped = False
                    clock.sleep_s(100.0)
                assert play_one(recorder, n).status == "ok"
                if stopped:
                    with pytest.raises(DatabaseDown):
                        store.count()
        assert store.outbox.waiting() == ()
        assert content(store) == want
        assert store.deliver().delivered == 0


def test_a_server_that_is_down_from_first_to_last(
    postgres_server, new_postgres, tmp_path, clock, want
):
    url = new_postgres()
    postgres_server.stop()
    try:
        with TrajectoryStore.open(url, folder=tmp_path / "s", clock=clock) as store:
            fill(store, range(12))
            report = store.deliver()
            assert (report.delivered, report.waiting) == (0, 1)
    finally:
        postgres_server.start()
    with TrajectoryStore.open(url, folder=tmp_path / "s", clock=clock) as store:
        assert store.count() == 0
        assert store.deliver().delivered == 1
        assert content(store) == want


def test_while_the_database_is_away_it_is_not_asked_at_every_step(store, clock, monkeypatch):
    asked = []

    def away():
        asked.append(clock.monotonic_s())
        raise DatabaseDown("away")

    monkeypatch.setattr(store.database, "prepare", away)
    document = {"step_files": [], "trajectories": [], "llm_calls": []}
    for _ in range(40):
        assert not store.record(document)
        clock.sleep_s(0.5)
    assert asked == [0.0, 1.0, 3.0, 7.0, 15.0]
    clock.sleep_s(1000.0)
    monkeypatch.undo()
    assert store.record(document)
    assert store.outbox.waiting() == ()


def test_a_locked_file_is_a_database_that_is_down(tmp_path, clock, monkeypatch, want):
    monkeypatch.setattr(connection, "BUSY_S", 0)
    with TrajectoryStore.open(folder=tmp_path / "s", clock=clock) as store:
        with closing(sqlite3.connect(tmp_path / "s" / "trajectories.db")) as other:
            other.execute("begin immediate")
            fill(store, range(12))
            assert len(store.outbox.waiting()) == 1
            other.rollback()
        assert store.deliver().delivered == 1
        assert content(store) == want


def test_an_answer_that_was_lost_does_not_count_twice(store):
    """The commit went through, but the connection broke before anybody heard of it."""
    documents = []
    keep = store.record
    store.record = lambda document: documents.append(document) or keep(document)
    with TrajectoryRecorder(store) as recorder:
        play_one(recorder, 0)
        recorder.add_calls([LlmCallRecord(t=0, model="m")])
    before = content(store)
    for document in documents:
        store.outbox.keep(document)
        store.outbox.keep(document)
    assert store.deliver().delivered == 1
    assert content(store) == before
    assert len(store.calls(next(iter(before)))) == 1


def test_a_waiting_recording_that_was_changed_is_set_aside(store, clock, monkeypatch):
    def away():
        raise DatabaseDown("away")

    monkeypatch.setattr(store.database, "prepare", away)
    fill(store, [0])
    clock.sleep_s(10.0)
    fill(store, [1])
    monkeypatch.undo()
    bad, good = store.outbox.waiting()
    bad.write_text(bad.read_text().replace('"e0"', '"eX"').replace('"e1"', '"eX"'))
    (store.outbox.folder / "garbage.json").write_bytes(b"\xff\x00")
    report = store.deliver()
    assert report.delivered == 1
    assert set(report.refused) == {bad.name, "garbage.json"}
    assert store.outbox.waiting() == ()
    assert (store.outbox.folder / "refused" / bad.name).exists()
    assert store.count() == 1
    assert not good.exists()


def test_a_recording_of_another_version_is_not_guessed_at(store):
    path = store.outbox.keep({"step_files": [], "trajectories": [], "llm_calls": []})
    said = json.loads(path.read_text()) | {"format": "agent_gym.recording/9"}
    text = json.dumps(said, sort_keys=True)
    path.unlink()
    digest = sha256(text.encode()).hexdigest()
    (path.parent / f"{digest}.json").write_text(text)
    with pytest.raises(StoreError, match="another version"):
        store.deliver()


def test_whatever_the_database_refuses_is_not_lost(store):
    document = {
        "step_files": [],
        "trajectories": [{"trajectory_id": "half a row"}],
        "llm_calls": [],
    }
    with pytest.raises(StoreError, match="refused"):
        store.record(document)
    assert len(store.outbox.waiting()) == 1


# One process imports everything and forks a child for each kill: that is much quicker.
KILLED = textwrap.dedent(
    """
    import json, os, signal, sys
    from pathlib import Path

    sys.path[:0] = [sys.argv[1]]
    from trajectory_samples import play_one
    from agent_gym.rollouts.database import TrajectoryRecorder, TrajectoryStore
    from agent_gym.rollouts.database import delivery, outbox, step_files

    def around(place, name, reached, before, after):
        inner = getattr(place, name)

        def wrapped(*words, **more):
            reached(before)
            made = inner(*words, **more)
            reached(after)
            return made

        setattr(place, name, wrapped)

    def child(url, folder, point, at):
        seen = [0]

        def reached(name):
            seen[0] += name == point
            if seen[0] == at:
                os.kill(os.getpid(), signal.SIGKILL)

        around(step_files.StepFiles, "write", reached, "before file", "after file")
        around(outbox, "insert_new", reached, "before rows", "after rows")
        around(delivery, "insert", reached, "before commit", "after commit")
        with TrajectoryStore.open(url, folder=Path(folder)) as store:
            with TrajectoryRecorder(store, flush_steps=20) as recorder:
                for n in range(12):
                    play_one(recorder, n)
                    reached("episode")

    for words in json.loads(sys.argv[2]):
        pid = os.fork()
        if pid == 0:
            child(*words)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    """
)
POINTS = (
    ("none", 1),
    ("episode", 7),
    ("before file", 2),
    ("after file", 2),
    ("before commit", 1),
    ("before rows", 4),
    ("after rows", 5),
    ("after commit", 2),
)


def test_a_kill_leaves_whole_trajectories_or_none(new_database, tmp_path, want):
    runs = [(new_database(), str(tmp_path / f"s{n}"), *point) for n, point in enumerate(POINTS)]
    words = [sys.executable, "-c", KILLED, str(HERE), json.dumps(runs)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=250)
    codes = [int(line) for line in done.stdout.split()]
    assert codes == [0] + [-signal.SIGKILL] * (len(POINTS) - 1), done.stderr
    sizes = []
    for url, folder, *_ in runs:
        with TrajectoryStore.open(url, folder=Path(folder)) as store:
            found = content(store)
            sizes.append(len(found))
            assert found.items() <= want.items()
            assert store.check().whole
            fill(store, range(12))
            assert content(store) == want
    assert sizes[0] == 12
    assert sizes[1] in (0, 4)  # the writer is a thread of its own
    assert sizes[2:] == [4, 4, 0, 4, 4, 8]
