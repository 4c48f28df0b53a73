"""A workspace whose step files and models stand on a server, seen from two machines."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from agent_gym.apps.cli.main import run
from agent_gym.core.errors import DataError, StoreError
from agent_gym.pipeline.registry import ModelRegistry, RefusedArtifact
from agent_gym.rollouts.database import TrajectoryStore
from tests.pipeline.registry_samples import artifact, blank
from tests.store_blobs import s3_server

sys.path.insert(0, str(Path(__file__).parents[1] / "rollouts"))
from trajectory_samples import fill


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


@pytest.fixture
def place(url, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_GYM_BLOBS", url)
    shutil.copytree(blank(), tmp_path / "one" / "trajectories")
    return tmp_path


def opened(place, name):
    """Open store and registry of a machine; the database is that of the first."""
    url = f"sqlite:///{place / 'one' / 'trajectories' / 'trajectories.db'}"
    store = TrajectoryStore.open(url, folder=place / name / "trajectories")
    return store, ModelRegistry.open(store.database, place / name / "models")


def said(capsys, *words):
    capsys.readouterr()
    code = run([*words, "--json"], as_json=True)
    return code, json.loads(capsys.readouterr().out)


def test_what_one_machine_has_put_another_reads(place):
    store, registry = opened(place, "one")
    ids = fill(store, range(3))
    model = registry.add(artifact(place, "trained"))
    shutil.copytree(place / "one" / "models" / "keys", place / "two" / "models" / "keys")
    shutil.rmtree(place / "one" / "models")
    if store.files.blobs.is_remote:
        shutil.rmtree(place / "one" / "trajectories" / "steps")
    store.close()
    store, registry = opened(place, "two")
    assert len(store.read(ids)) == 3
    assert registry.load(model.version).read("policy.safetensors") == b"weights"
    assert registry.verify() == ()
    assert store.check().whole
    store.close()


def test_a_published_model_is_believed_no_more_than_any_other(place):
    store, registry = opened(place, "one")
    model = registry.add(artifact(place, "trained")).model_hash
    published = registry.artifacts.publication
    files = published.record(model)
    assert set(files) == {
        "artifact/manifest.json",
        "artifact/policy.json",
        "artifact/policy.safetensors",
        "signature.json",
    }
    poison = published.blobs.put(b"poison")
    bad = place / "record.json"

    def publish(said):
        bad.write_text(json.dumps(said))
        published.blobs.shelf.upload(bad, f"records/{model}.json")
        shutil.rmtree(registry.artifacts.root / model, ignore_errors=True)

    forged = files | {"artifact/policy.safetensors": poison}
    publish({"format": "agent_gym.published/1", "files": forged})
    with pytest.raises(RefusedArtifact, match=r"policy\.safetensors was changed"):
        registry.load(model)
    for wrong in ({"../../escape.json": poison}, {"/etc/escape.json": poison}, {"a.json": "x"}):
        publish({"format": "agent_gym.published/1", "files": wrong})
        with pytest.raises(DataError, match="record of a published model is damaged"):
            registry.load(model)
    assert not list(place.rglob("escape.json"))
    store.close()


def test_the_commands_count_check_and_sweep(place, capsys, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(place / "one"))
    store, registry = opened(place, "one")
    ids = fill(store, range(2))
    registry.add(artifact(place, "trained"))
    blobs = store.files.blobs
    stray = blobs.put(b"named by nobody")
    code, counted = said(capsys, "blobs", "stats")
    assert code == 0
    assert [(part["part"], part["blobs"], part["unnamed"]) for part in counted["parts"]] == [
        ("steps", 2, 1),
        ("models", 4, 0),
    ]
    assert said(capsys, "blobs", "verify") == (0, {"ok": True, "checked": 5, "wrong": []})
    _, planned = said(capsys, "blobs", "gc", "--grace-hours", "0", "--dry-run")
    assert planned["parts"]["steps"]["trashed"] == [stray]
    assert blobs.exists(stray)
    _, young = said(capsys, "blobs", "gc")
    assert young["parts"]["steps"]["young"] == 1
    _, done = said(capsys, "blobs", "gc", "--grace-hours", "0")
    assert done["parts"]["steps"]["trashed"] == [stray]
    assert done["parts"]["models"]["named"] == 4
    assert not blobs.exists(stray)
    digest = store.get(ids[0]).step_file
    wrong = place / "wrong"
    wrong.write_bytes(b"rotten")
    blobs.shelf.upload(wrong, blobs.name(digest))
    blobs.forget(digest)
    code, told = said(capsys, "blobs", "verify")
    assert (code, told["wrong"]) == (3, [f"steps {digest} is damaged"])
    assert not store.get(ids[0]).trainable
    with pytest.raises(StoreError):
        store.steps(ids[0])
    everything = capsys.readouterr().out + json.dumps([counted, planned, done, told])
    assert s3_server.KEYS["AWS_SECRET_ACCESS_KEY"] not in everything
    store.close()


def test_an_old_workspace_is_read_as_it_is_and_pushed_when_asked(place, url, capsys, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(place / "one"))
    monkeypatch.delenv("AGENT_GYM_BLOBS")
    store, registry = opened(place, "one")
    ids = fill(store, range(2))
    model = registry.add(artifact(place, "trained"))
    store.close()
    assert (place / "one" / "models" / "artifacts" / model.model_hash / "artifact").is_dir()
    monkeypatch.setenv("AGENT_GYM_BLOBS", url)
    store, registry = opened(place, "one")
    remote = store.files.blobs.is_remote
    if remote:
        assert len(store.read(ids)) == 2  # they are still here
        code, sent = said(capsys, "blobs", "push")
        assert (code, len(sent["steps"]), sent["models"]) == (0, 1, [model.model_hash])
        shutil.rmtree(place / "one" / "trajectories" / "steps")
        assert len(store.read(ids)) == 2
    store.close()


def test_recordings_go_on_while_the_server_is_away(tmp_path, bucket, proxy, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_BLOBS", bucket)
    monkeypatch.setattr("agent_gym.rollouts.blobs.remote.FIRST_PAUSE_S", 0.01)
    shutil.copytree(blank(), tmp_path / "one" / "trajectories")
    store, registry = opened(tmp_path, "one")
    proxy.change = lambda _part: None
    ids = fill(store, range(2))
    assert len(store.read(ids)) == 2
    with pytest.raises(StoreError, match="does not answer"):
        registry.add(artifact(tmp_path, "trained"))
    assert registry.models() == ()
    proxy.change = lambda part: part
    assert len(store.files.blobs.unsent()) == 1
    assert store.check().whole
    fill(store, range(3, 5))  # the first ones follow
    assert store.files.blobs.unsent() == ()
    store.close()


def test_a_recording_that_waits_keeps_its_steps(place):
    store, _ = opened(place, "one")
    kept = store.files.blobs.put(b"steps of a recording")
    row = {"file_hash": kept}
    store.outbox.keep({"step_files": [row], "trajectories": [], "llm_calls": []})
    assert store.named_files() == {kept}
    store.close()
