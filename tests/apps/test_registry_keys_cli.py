"""``agent-gym registry keys`` and ``audit``, as they are called."""

import json

import pytest
from sqlalchemy import text

from agent_gym.apps.cli.main import run
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import ModelRegistry
from agent_gym.rollouts.database import TrajectoryStore
from tests.pipeline.registry_samples import artifact


@pytest.fixture
def loop(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    made = LoopFolder(tmp_path / "loop")
    with TrajectoryStore.open(folder=made.trajectories) as store:
        ModelRegistry.open(store.database, made.models).add(artifact(tmp_path, "one"))
    return made


@pytest.fixture
def call(loop, capsys):
    def said(*words):
        capsys.readouterr()
        code = run(["registry", *words, "--folder", str(loop.path), "--json"], as_json=True)
        return code, json.loads(capsys.readouterr().out)

    return said


def test_keys_are_rotated_and_revoked(call):
    _, before = call("keys", "list")
    (old,) = before["keys"]
    assert old["signs"]
    assert call("keys", "rotate", "--dry-run")[1]["done"] is False
    assert call("keys", "list")[1] == before
    _, after = call("keys", "rotate")
    assert [key["signs"] for key in after["keys"]] == [True, False]
    assert after["keys"][1]["key"] == old["key"]
    assert after["keys"][1]["retired_ns"] is not None
    code, told = call("keys", "revoke", old["key"], "--reason", "stolen")
    assert code == 0
    assert told["keys"][1]["reason"] == "stolen"
    assert call("verify")[0] == 0
    assert call("keys", "sign", "v1.0.0")[1]["signed_by"] == after["keys"][0]["key"]
    assert call("keys", "revoke", "0" * 32, "--reason", "x")[0] == 2
    assert call("audit", "verify") == (0, {"ok": True, "entries": 5, "anchors": 0, "wrong": []})


def test_an_audit_with_an_anchor_that_was_kept(call, loop, tmp_path):
    kept = tmp_path / "kept.json"
    assert call("audit", "anchor", "--out", str(kept))[0] == 0
    assert call("audit", "verify", "--anchor", str(kept))[0] == 0
    with TrajectoryStore.open(folder=loop.trajectories) as store, store.database.writing() as db:
        db.execute(text("drop trigger registry_history_no_delete"))
        db.execute(text("delete from registry_history"))
        db.execute(text("update registry_pointer set history_length = 0, history_hash = ''"))
    (loop.models / "history.anchor.json").unlink()
    assert call("audit", "verify")[0] == 0  # nothing is left that could tell
    code, told = call("audit", "verify", "--anchor", str(kept))
    assert code == 3
    assert told["wrong"] == ["it was cut off: 1 entries were anchored, 0 are left"]
    assert call("audit", "anchor", "--anew", "restored an older copy")[0] == 0
    assert call("audit", "verify")[0] == 0
    assert call("audit", "verify", "--anchor", str(tmp_path / "none.json"))[0] == 3
