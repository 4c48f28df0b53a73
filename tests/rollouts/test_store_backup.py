"""Backups while recorders write, restores into the one kind and the other, and what is refused."""

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from trajectory_samples import fill, play_one

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.pipeline.registry.tables import FAMILY, create
from agent_gym.rollouts.database import (
    AgentRecord,
    BatchRequest,
    DatabaseDown,
    JudgmentRecord,
    LlmCallRecord,
    TrajectoryRecorder,
    TrajectoryStore,
    schema,
)
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.keeping import restore as restoring
from agent_gym.rollouts.database.keeping.backup import back_up, table_file
from agent_gym.rollouts.database.keeping.dump import digest, own_tables
from agent_gym.rollouts.database.keeping.manifest import BackupManifest
from agent_gym.rollouts.database.keeping.place import as_it_is
from agent_gym.rollouts.database.keeping.restore import check_backup, restore
from agent_gym.rollouts.database.keeping.statistics import figures_of

FAMILIES = {"registry": FAMILY}


def rich(store):
    """Put something into every kind of table, with words that are hard to carry."""
    with TrajectoryRecorder(store) as recorder:
        for n in range(6):
            play_one(recorder, n)
            call = LlmCallRecord(
                t=0, model="m", user_prompt='Ж "\\ \u2028 {}', log_prob=-0.1 - n / 3
            )
            recorder.add_calls([call])
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in range(6)]
    judged = {"group_id": "g", "judge_model": "j", "judge_version": "1", "overall_score": 1 / 3}
    store.judgments.add([JudgmentRecord(trajectory_id=ids[0], reasoning="как-то так", **judged)])
    for name in ("b2", "B1", "a_", "a-"):  # a language would sort these otherwise than bytes
        store.batches.claim(BatchRequest(batch_id=name, max_groups=1, max_group_size=2))
    store.agents.add(
        AgentRecord(agent_id="one", name="One", points=2**62, state={"a": [1.5, None]})
    )
    store.events.append("made", "store", {"0.1": 0.1})
    with store.database.writing() as connection:
        create(connection)
    return ids


def held(store):
    with store.database.snapshot() as connection:
        return {
            name: digest(connection, name, lambda _n: None)
            for name in (*own_tables(), *FAMILY.tables)
        }


@pytest.fixture
def backup(store, tmp_path):
    rich(store)
    back_up(store, tmp_path / "backup", FAMILIES)
    return tmp_path / "backup"


def test_a_backup_comes_back_equal_in_either_kind(store, backup, empty_url, tmp_path):
    with as_it_is(empty_url, tmp_path / "there", new=True) as other:
        done = restore(backup, other, FAMILIES)
        assert held(other) == held(store)
        assert (done.step_files, done.copied, done.lost) == (1, 1, 0)
    with TrajectoryStore.open(empty_url, folder=tmp_path / "there") as other:
        ids = [row.trajectory_id for row in other.page().rows]
        for mine, theirs in zip(store.read(ids), other.read(ids), strict=True):
            assert mine.row.as_dict() == theirs.row.as_dict()
            assert mine.steps.reward.tolist() == theirs.steps.reward.tolist()
        assert other.check().whole
        (new,) = fill(other, [77])  # ids go on where they ended
        assert other.get(new).id == max(row.id for row in store.page().rows) + 1
        assert other.events.append("more", "store") == 2


def test_a_backup_of_the_other_kind_can_be_taken_again_and_is_the_same(
    store, backup, empty_url, tmp_path
):
    with as_it_is(empty_url, tmp_path / "there", new=True) as other:
        restore(backup, other, FAMILIES)
        again = back_up(other, tmp_path / "again", FAMILIES)
    first = BackupManifest.read(backup)
    assert again.tables == first.tables
    assert again.steps == first.steps
    for name in first.tables:
        assert (
            table_file(backup, name).read_bytes()
            == table_file(tmp_path / "again", name).read_bytes()
        )


def test_a_backup_while_recorders_write_holds_whole_trajectories(store, tmp_path):
    stop, begun = threading.Event(), threading.Event()

    def go_on():
        with TrajectoryRecorder(store, flush_steps=1) as recorder:
            n = 0
            while not stop.is_set():
                play_one(recorder, n)
                n += 1
                if n == 5:
                    begun.set()

    recorder = threading.Thread(target=go_on)
    recorder.start()
    begun.wait(60)
    try:
        made = [back_up(store, tmp_path / f"b{n}", FAMILIES) for n in range(2)]
    finally:
        stop.set()
        recorder.join()
    counts = [one.tables["trajectories"].rows for one in made]
    assert 0 < counts[0] <= counts[1] <= store.count()
    for n, one in enumerate(made):
        assert one.lost == {}
        with as_it_is(None, tmp_path / f"r{n}", new=True) as other:
            restore(tmp_path / f"b{n}", other, FAMILIES)
        with TrajectoryStore.open(folder=tmp_path / f"r{n}") as other:
            assert other.count() == counts[n]
            assert other.check().whole
            orphans = figures_of(other, FAMILIES).orphans
            assert (orphans["rows_without_file"], orphans["files_of_no_trajectory"]) == (0, 0)


def test_recordings_that_wait_are_part_of_it(new_sqlite, tmp_path, clock, monkeypatch):
    with TrajectoryStore.open(new_sqlite(), folder=tmp_path / "s", clock=clock) as store:

        def away():
            raise DatabaseDown("away")

        monkeypatch.setattr(store.database, "prepare", away)
        fill(store, [0])
        monkeypatch.undo()
        made = back_up(store, tmp_path / "b", FAMILIES)
        assert (len(made.outbox), len(made.steps)) == (1, 1)  # and the steps that it names
    with as_it_is(None, tmp_path / "r", new=True) as other:
        assert restore(tmp_path / "b", other, FAMILIES).outbox == 1
        assert other.deliver().delivered == 1
        assert other.check().whole
        assert other.count() == 1


def test_a_place_that_is_not_empty_is_replaced_only_if_told(store, backup, new_database, tmp_path):
    url = new_database()
    with TrajectoryStore.open(url, folder=tmp_path / "there") as other:
        (mine,) = fill(other, [50])
        other.events.append("theirs", "x")
    with as_it_is(url, tmp_path / "there") as other:
        with pytest.raises(StoreError, match="something here already"):
            restore(backup, other, FAMILIES)
        assert other.get(mine).episode_id == "e50"
        done = restore(backup, other, FAMILIES, force=True)
        assert done.replaced == 3
        assert held(other) == held(store)


def test_a_restore_that_fails_leaves_what_was_there(
    store, backup, new_database, tmp_path, monkeypatch
):
    url = new_database()
    with TrajectoryStore.open(url, folder=tmp_path / "there") as other:
        (mine,) = fill(other, [50])
    load = restoring.load_table

    def fails(connection, name, path, tell):
        if name == "reward_judgments":
            raise DataError("the disk is full")
        load(connection, name, path, tell)

    monkeypatch.setattr(restoring, "load_table", fails)
    with as_it_is(url, tmp_path / "there") as other:
        with pytest.raises(DataError, match="full"):
            restore(backup, other, FAMILIES, force=True)
        assert other.get(mine).episode_id == "e50"
        assert other.count() == 1


def test_a_row_that_comes_back_otherwise_is_noticed_before_it_is_kept(
    backup, empty_url, tmp_path, monkeypatch
):
    load = restoring.load_table

    def lies(connection, name, path, tell):
        load(connection, name, path, tell)
        if name == "trajectories":
            connection.execute(text("update trajectories set wall_ms = wall_ms + 1 where id = 2"))

    monkeypatch.setattr(restoring, "load_table", lies)
    with as_it_is(empty_url, tmp_path / "there", new=True) as other:
        with pytest.raises(DataError, match="not those of the backup") as caught:
            restore(backup, other, FAMILIES)
        assert caught.value.where == "trajectories"
        with other.database.snapshot() as connection:
            assert restoring.present(connection, own_tables()) == ()


def spoil(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_backup_that_rots_is_refused_before_anything_is_touched(new_sqlite, tmp_path):
    with TrajectoryStore.open(new_sqlite(), folder=tmp_path / "s") as store:
        rich(store)
        back_up(store, tmp_path / "b", FAMILIES)
    folder = tmp_path / "b"
    (step_file,) = (folder / "steps").glob("??/*.arrow")
    for path in (step_file, table_file(folder, "trajectories"), folder / "manifest.json"):
        kept = path.read_bytes()
        spoil(path)
        with pytest.raises(DataError), as_it_is(None, tmp_path / "r", new=True) as other:
            restore(folder, other, FAMILIES)
        assert not list((tmp_path / "r").rglob("*.arrow"))
        path.unlink()
        with pytest.raises(DataError):
            check_backup(folder)
        path.write_bytes(kept)
    assert check_backup(folder).lost == {}
    said = json.loads((folder / "manifest.json").read_text())
    said["backup"]["tables"]["trajectories"]["rows"] = 5
    (folder / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match="cannot be believed"):
        check_backup(folder)


def test_a_damaged_step_file_is_named_and_the_rest_is_kept(new_sqlite, tmp_path):
    with TrajectoryStore.open(new_sqlite(), folder=tmp_path / "s") as store:
        lost, *_ = fill(store, [0])
        kept, *_ = fill(store, [1])
        path = store.files.path(store.get(lost).step_file)
        spoil(path)
        made = back_up(store, tmp_path / "b", FAMILIES)
        assert made.lost == {path.stem: "damaged"}
        assert list(made.steps) == [store.get(kept).step_file]


def test_a_backup_needs_a_folder_of_its_own(store, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    with pytest.raises(ConfigError, match="folder of its own"):
        back_up(store, tmp_path / "full", FAMILIES)
    with pytest.raises(DataError, match="cut short"):
        check_backup(tmp_path / "full")


def test_a_backup_of_an_older_schema_is_brought_up_to_date(empty_url, new_sqlite, tmp_path):
    engine = Database(empty_url, schema.prepare).engine
    schema._migrate(engine, "0001")
    engine.dispose()
    with as_it_is(empty_url, tmp_path / "old", new=True) as old:
        fill(old, range(3))
        made = back_up(old, tmp_path / "b", FAMILIES)
        assert made.schema_version == "0001"
        assert "events" not in made.tables
    url = new_sqlite()
    with as_it_is(url, tmp_path / "new", new=True) as new:
        restore(tmp_path / "b", new, FAMILIES)
        assert schema.state_of(new.database.engine).pending == ()
        assert new.count() == 3
        assert new.events.append("made", "x") == 1


def test_a_backup_of_a_newer_schema_is_refused(new_sqlite, tmp_path):
    with TrajectoryStore.open(new_sqlite(), folder=tmp_path / "s") as store:
        made = back_up(store, tmp_path / "b", FAMILIES)
    made.model_copy(update={"schema_version": "9999"}).write(tmp_path / "b")
    with (
        as_it_is(None, tmp_path / "r", new=True) as other,
        pytest.raises(StoreError, match="newer"),
    ):
        restore(tmp_path / "b", other, FAMILIES)


def test_nothing_is_made_where_there_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="no store here"):
        as_it_is(None, Path(tmp_path / "nothing"))
    assert list(tmp_path.iterdir()) == []
