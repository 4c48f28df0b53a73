"""``agent-gym db`` from the outside: what it prints, what it refuses, what it leaves alone."""

import json

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli.db import app
from agent_gym.core.errors import DataError, StoreError
from agent_gym.pipeline.registry import ModelRegistry
from agent_gym.rollouts.database import (
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
    schema,
)
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.play import EpisodeResult


@pytest.fixture
def loop(tmp_path, monkeypatch):
    """A workspace with a trajectory that failed, and a registry."""
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    monkeypatch.delenv("AGENT_GYM_DATABASE", raising=False)
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    with TrajectoryStore.open() as store:
        ModelRegistry.open(store.database, tmp_path / "home" / "models")
        with TrajectoryRecorder(store) as recorder:
            recorder.begin(TrajectoryContext(snapshot_id="s", agent_version="v"))
            recorder.finish_episode(EpisodeResult("e0"))
    return tmp_path


def said(*words, code=0):
    result = CliRunner().invoke(app, [*words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code
    return json.loads(result.stdout)


def everything(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_workspace_is_carried_to_another_place_and_is_the_same(loop):
    made = said("backup", "--out", str(loop / "copy"))
    assert made["tables"]["trajectories"]["rows"] == 1
    assert made["tables"]["registry_pointer"]["rows"] == 1
    assert said("verify", str(loop / "copy"))["rows"] == made["rows"]
    there = ("--folder", str(loop / "there"))
    done = said("restore", str(loop / "copy"), *there)
    assert done["rows"] == made["rows"]
    again = said("backup", "--out", str(loop / "again"), *there)
    assert again["tables"] == made["tables"]
    with pytest.raises(StoreError, match="something here already"):
        said("restore", str(loop / "copy"), *there)
    assert said("restore", str(loop / "copy"), *there, "--force")["replaced"] == 1


def test_a_backup_without_a_name_goes_into_the_results(loop):
    made = said("backup")
    assert made["folder"].startswith(str(loop / "home" / "backups" / "backup-"))
    shown = CliRunner().invoke(app, ["verify", made["folder"]]).stdout
    assert "registry_pointer" in shown


@pytest.mark.parametrize(
    "words", [("backup",), ("migrate",), ("prune", "--yes", "--older-than", "0"), ("restore", "C")]
)
def test_a_dry_run_changes_nothing(loop, words):
    said("backup", "--out", str(loop / "copy"))
    before = everything(loop)
    given = [str(loop / "copy") if word == "C" else word for word in words]
    found = said(*given, "--dry-run")
    assert found.get("done", found.get("carried_out")) is False
    assert {p: c for p, c in everything(loop).items() if "-shm" not in p.name} == {
        p: c for p, c in before.items() if "-shm" not in p.name
    }


def test_an_older_schema_is_migrated_after_a_backup(loop):
    place = loop / "old" / "trajectories"
    place.mkdir(parents=True)
    database = Database(f"sqlite:///{place / 'trajectories.db'}", lambda _engine: None)
    schema._migrate(database.engine, "0001")
    database.close()
    there = ("--folder", str(loop / "old"))
    assert said("migrate", *there, "--dry-run")["plan"]["pending"] == ["0002", "0003"]
    done = said("migrate", *there)
    assert done["migrated"]
    assert said("verify", done["backup"])["schema_version"] == "0001"
    again = said("migrate", *there)
    assert (again["migrated"], again["backup"]) == (False, None)


def test_a_newer_schema_is_refused_by_all(loop):
    with TrajectoryStore.open() as store, store.database.writing() as connection:
        connection.exec_driver_sql("update store_version set version_num = '9999'")
    for words in (("migrate",), ("stats",), ("prune",)):
        with pytest.raises(StoreError, match="newer"):
            said(*words)


def test_figures_of_a_store(loop):
    found = said("stats")
    tables = {each["name"]: each["rows"] for each in found["tables"]}
    assert (tables["trajectories"], tables["registry_history"]) == (1, 0)
    assert found["bytes"] > 0
    assert found["schema"]["pending"] == []
    assert "ix_trajectories_tally" in {each["name"] for each in found["indexes"]}
    assert found["orphans"]["rows_without_file"] == 0
    assert "trajectories" in CliRunner().invoke(app, ["stats"]).stdout


def test_what_is_old_goes_only_with_yes(loop):
    words = ("prune", "--older-than", "0")
    assert said(*words)["trajectories"] == 1
    done = said(*words, "--yes")
    assert (done["trajectories"], done["carried_out"]) == (1, True)
    assert said(*words)["trajectories"] == 0


def test_what_is_no_backup_or_no_store_is_refused(loop):
    with pytest.raises(DataError, match="no backup"):
        said("restore", str(loop / "home"))
    with pytest.raises(StoreError, match="no store here"):
        said("backup", "--folder", str(loop / "nowhere"))
    assert not (loop / "nowhere").exists()
