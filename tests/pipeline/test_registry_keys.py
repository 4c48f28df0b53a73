"""Keys that are rotated, revoked and stolen; kills in between."""

import base64
import json
import os
import shutil
import signal
import sys

import pytest

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.pipeline.registry import ArtifactStore, KeyRing, RefusedArtifact
from agent_gym.pipeline.registry.artifacts import SIGNATURE
from tests.pipeline.registry_samples import Site, artifact


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


def test_a_rotation_signs_with_another_key_and_old_signatures_stay_good(tmp_path):
    ring = KeyRing.open(tmp_path / "keys")
    store = ArtifactStore(tmp_path / "artifacts", ring)
    old = store.put(artifact(tmp_path, "old"))
    store.keys = ring.rotated(10**19)
    assert store.keys.id != ring.id
    assert KeyRing.open(tmp_path / "keys").id == store.keys.id
    assert store.load(old.model_hash).signed_by == ring.id
    assert store.put(artifact(tmp_path, "new")).signed_by == store.keys.id
    assert store.sign(old.model_hash).signed_by == store.keys.id
    secret = (tmp_path / "keys" / "signing.key").read_bytes()
    assert (tmp_path / "keys" / "signing.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "keys").rglob("*.key")] == ["signing.key"]
    assert secret not in b"".join(p.read_bytes() for p in (tmp_path / "keys").rglob("*.pub"))


def test_a_retired_key_signs_nothing_more(tmp_path):
    stolen = KeyRing.open(tmp_path / "keys")
    now_ns = 1_000
    ring = stolen.rotated(now_ns)
    forger = ArtifactStore(tmp_path / "artifacts", stolen)  # signs today, with the old key
    model = artifact(tmp_path, "one")
    forger.put(model)
    with pytest.raises(RefusedArtifact, match=f"retired key {stolen.id}"):
        ArtifactStore(tmp_path / "artifacts", ring).put(model)


def test_nothing_of_a_revoked_key_counts_whenever_it_was_signed(tmp_path):
    site = Site(tmp_path)
    model = site.add("one")
    stolen = site.registry.artifacts.keys
    with pytest.raises(ConfigError, match="this key signs"):
        site.registry.revoke_key(stolen.id, "stolen")
    other = artifact(tmp_path / "more", "two")
    site.registry.rotate_key()  # signs the first model again
    site.registry.revoke_key(stolen.id, "stolen")
    assert site.registry.verify() == ()
    assert site.registry.load(model).signed_by == site.registry.artifacts.keys.id
    forged = ArtifactStore(site.registry.artifacts.root, stolen).put(other)  # before or after
    with pytest.raises(RefusedArtifact, match=f"revoked key {stolen.id}"):
        site.registry.artifacts.load(forged.model_hash)
    events = [(entry.event, entry.data.get("reason")) for entry in site.registry.history()]
    assert events[-3:] == [("key rotated", None), ("signed again", None), ("key revoked", "stolen")]
    for key, reason in (("0" * 32, "x"), (stolen.id, " ")):
        with pytest.raises(ConfigError):
            site.registry.revoke_key(key, reason)


def test_a_model_that_was_changed_is_not_signed_again(tmp_path):
    site = Site(tmp_path)
    good, bad = site.add("one"), site.add("two")
    place = site.registry.artifacts.root / bad / "artifact"
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["config"] = {"trained": "elsewhere"}  # the files and their hashes stay right
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RefusedArtifact, match="not the one that was registered"):
        site.registry.sign(bad)
    site.registry.rotate_key()
    assert site.registry.load(good).signed_by == site.registry.artifacts.keys.id
    with pytest.raises(RefusedArtifact):
        site.registry.load(bad)
    (place / "policy.safetensors").write_bytes(b"poison")
    with pytest.raises(RefusedArtifact):
        site.registry.sign(bad)


def test_what_was_signed_before_signatures_had_a_date_stays_good(tmp_path):
    ring = KeyRing.open(tmp_path / "keys")
    store = ArtifactStore(tmp_path / "artifacts", ring)
    kept = store.put(artifact(tmp_path, "one"))
    path = kept.folder.parent / SIGNATURE
    said = json.loads(path.read_text())
    del said["signed_ns"]
    path.write_text(json.dumps(said | {"format": "agent_gym.signature/1"}))
    with pytest.raises(RefusedArtifact, match="not what was signed"):  # the date was signed too
        store.load(kept.model_hash)
    message = b"agent-gym artifact manifest\n" + (kept.folder / "manifest.json").read_bytes()
    said["signature"] = base64.b64encode(ring.sign(message)).decode()
    path.write_text(json.dumps(said | {"format": "agent_gym.signature/1"}))
    assert store.load(kept.model_hash).signed_by == ring.id


def test_a_damaged_list_of_keys_is_refused(tmp_path):
    ring = KeyRing.open(tmp_path / "keys").rotated(5)
    for words in ("{", "[]", '{"format": "x", "keys": {}}', '{"keys": {"a": {"b": 1}}}'):
        (ring.folder / "ring.json").write_text(words)
        with pytest.raises(DataError, match="list of keys"):
            KeyRing.open(tmp_path / "keys")


def test_a_kill_at_any_point_of_a_rotation_leaves_a_ring_that_signs(tmp_path):
    watched, point = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}, 1
    first = KeyRing.open(tmp_path / "first")
    while True:
        folder = tmp_path / str(point)
        shutil.copytree(first.folder, folder)
        child = os.fork()
        if child == 0:
            left = [point]

            def touch(name, _, left=left):
                left[0] -= name in watched
                if name in watched and left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            try:
                sys.addaudithook(touch)
                KeyRing.open(folder).rotated(7)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        ring = KeyRing.open(folder)
        assert not (folder / "next.key").exists()
        assert ring.refusal(ring.id, 10) is None
        assert ring.refusal(first.id, 5) is None
        if os.waitstatus_to_exitcode(status) == 0:
            assert ring.id != first.id
            break
        point += 1
    assert point > 10
