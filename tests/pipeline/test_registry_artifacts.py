import json
import os
import stat
import subprocess
import sys

import pytest

from agent_gym.agents.artifact import MANIFEST, read_manifest
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.pipeline.registry import ArtifactStore, KeyRing, RefusedArtifact, next_version
from agent_gym.pipeline.registry.artifacts import FILES, SIGNATURE
from tests.pipeline.registry_samples import Site, artifact


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


@pytest.fixture
def store(tmp_path):
    return ArtifactStore(tmp_path / "artifacts", KeyRing.open(tmp_path / "keys"))


def test_an_artifact_comes_back_as_it_was_put(store, tmp_path):
    source = artifact(tmp_path, "one")
    kept = store.put(source)
    assert kept.model_hash == read_manifest(source).model_hash
    assert kept.read("policy.safetensors") == b"weights"
    assert kept.folder.parent.name == kept.model_hash
    assert read_manifest(kept.folder) == read_manifest(source)
    assert store.hashes() == (kept.model_hash,)
    assert sorted(path.name for path in store.root.iterdir()) == [kept.model_hash]


def test_the_same_artifact_is_never_overwritten(store, tmp_path):
    kept = store.put(artifact(tmp_path, "one"))
    before = (kept.folder.parent / SIGNATURE).stat()
    again = store.put(artifact(tmp_path, "one"))
    assert again == kept
    assert (kept.folder.parent / SIGNATURE).stat().st_mtime_ns == before.st_mtime_ns


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def _extra(place):
    (place / FILES / "more.json").write_text("{}")


def _beside(place):
    (place / "notes.txt").write_text("x")


def _gone(place):
    (place / FILES / "policy.json").unlink()


def _unsigned(place):
    (place / SIGNATURE).unlink()


def _no_manifest(place):
    (place / FILES / MANIFEST).unlink()


def _linked(place):
    target = place / FILES / "policy.json"
    copy = place.parent / "copy.json"
    copy.write_bytes(target.read_bytes())
    target.unlink()
    target.symlink_to(copy)


def _garbage(place):
    (place / SIGNATURE).write_text('{"key": 1}')


def _huge(place):
    (place / SIGNATURE).write_text(json.dumps({"key": "x" * 10_000}))


def _manifest_agrees_with_changed_weights(place):
    """Whoever changes a file can also mend the manifest; he cannot sign it."""
    files = {"policy.json": b"{}", "policy.safetensors": b"poison"}
    folder = artifact(place.parent.parent / "forged", "one", b"poison")
    (folder / "policy.json").write_bytes((place / FILES / "policy.json").read_bytes())
    for name in (*files, MANIFEST):
        (place / FILES / name).write_bytes((folder / name).read_bytes())


TAMPERED = {
    "policy.safetensors was changed": lambda place: flip(place / FILES / "policy.safetensors"),
    "policy.json was changed": lambda place: flip(place / FILES / "policy.json"),
    "manifest.json is not what was signed": lambda place: flip(place / FILES / MANIFEST),
    "more.json was added": _extra,
    "notes.txt was added": _beside,
    "policy.json is missing": _gone,
    "signature.json is missing (unsigned)": _unsigned,
    "manifest.json is missing": _no_manifest,
    "policy.json is missing or no file": _linked,
    "signature.json cannot be read": _garbage,
    "signature.json is too large": _huge,
    "not what was signed": _manifest_agrees_with_changed_weights,
}


@pytest.mark.parametrize("words", TAMPERED)
def test_whatever_was_tampered_with_is_refused_by_name_and_recorded(words, tmp_path):
    site = Site(tmp_path)
    model = site.add("one")
    assert site.registry.verify() == ()
    TAMPERED[words](site.registry.artifacts.root / model)
    with pytest.raises(RefusedArtifact, match=words.replace("(", r"\(").replace(")", r"\)")):
        site.registry.load(model)
    last = site.registry.history()[-1]
    assert (last.event, last.data["model"]) == ("artifact refused", model)
    assert words in last.data["found"]
    with pytest.raises(RefusedArtifact):
        site.service.install(model)
    assert site.service.state().champion is None
    assert [words in found for found in site.registry.verify(model)] == [True]


def test_a_signature_of_a_foreign_key_is_refused_until_it_is_trusted(tmp_path):
    ours = ArtifactStore(tmp_path / "artifacts", KeyRing.open(tmp_path / "keys"))
    theirs = ArtifactStore(tmp_path / "artifacts", KeyRing.open(tmp_path / "other keys"))
    model = theirs.put(artifact(tmp_path, "one")).model_hash
    with pytest.raises(RefusedArtifact, match=f"foreign key {theirs.keys.id}"):
        ours.load(model)
    (tmp_path / "keys" / "trusted").mkdir()
    public = (tmp_path / "other keys" / "signing.pub").read_text()
    (tmp_path / "keys" / "trusted" / "them.pub").write_text(public)
    trusting = ArtifactStore(tmp_path / "artifacts", KeyRing.open(tmp_path / "keys"))
    assert trusting.load(model).signed_by == theirs.keys.id


def test_a_signature_cannot_be_moved_to_another_artifact(store, tmp_path):
    one, two = (store.put(artifact(tmp_path, name)) for name in ("one", "two"))
    (two.folder.parent / SIGNATURE).write_bytes((one.folder.parent / SIGNATURE).read_bytes())
    with pytest.raises(RefusedArtifact, match="not what was signed"):
        store.load(two.model_hash)


def test_an_artifact_cannot_stand_under_another_name(store, tmp_path):
    one = store.put(artifact(tmp_path, "one"))
    other = store.root / ("0" * 64)
    one.folder.parent.rename(other)
    with pytest.raises(RefusedArtifact, match="names another model"):
        store.load("0" * 64)


def test_bytes_that_change_after_loading_are_refused_when_read(store, tmp_path):
    kept = store.put(artifact(tmp_path, "one"))
    flip(kept.folder / "policy.safetensors")
    with pytest.raises(RefusedArtifact, match=r"policy\.safetensors was changed"):
        kept.read("policy.safetensors")
    with pytest.raises(ConfigError):
        kept.read("../signature.json")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a" * 63, "A" * 64, "%2e%2e", "", "a\0"])
def test_a_name_that_is_no_hash_reaches_nothing(store, name):
    with pytest.raises(ConfigError, match="no model hash"):
        store.load(name)


def test_the_private_key_is_for_its_owner_alone(tmp_path):
    ring = KeyRing.open(tmp_path / "keys")
    path = tmp_path / "keys" / "signing.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyRing.open(tmp_path / "keys").id == ring.id
    path.chmod(0o644)
    with pytest.raises(DataError, match="others may read"):
        KeyRing.open(tmp_path / "keys")


def test_a_lost_public_key_is_made_again_and_a_wrong_one_refused(tmp_path):
    ring = KeyRing.open(tmp_path / "keys")
    public = tmp_path / "keys" / "signing.pub"
    public.unlink()
    assert KeyRing.open(tmp_path / "keys").id == ring.id
    KeyRing.open(tmp_path / "other")
    public.write_text((tmp_path / "other" / "signing.pub").read_text())
    with pytest.raises(DataError, match="not that of the private one"):
        KeyRing.open(tmp_path / "keys")
    (tmp_path / "other" / "signing.key").write_text("no key")
    with pytest.raises(DataError, match="no Ed25519 key"):
        KeyRing.open(tmp_path / "other")


def test_the_private_key_is_in_no_other_file(tmp_path):
    site = Site(tmp_path)
    site.add("one")
    secret = (tmp_path / "models" / "keys" / "signing.key").read_text().splitlines()[1]
    holders = [
        path.name
        for path in tmp_path.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert holders == ["signing.key"]


def test_two_processes_make_one_key(tmp_path):
    code = (
        "import sys; from pathlib import Path;"
        "from agent_gym.pipeline.registry.keys import KeyRing;"
        "print(KeyRing.open(Path(sys.argv[1])).id)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "keys")],
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for _ in range(3)
    ]
    ids = {process.communicate()[0] for process in started}
    assert len(ids) == 1
    assert ids != {b""}


def test_versions_count_patches():
    assert next_version([]) == "v1.0.0"
    assert next_version(["v1.0.0", "v1.0.2", "else"]) == "v1.0.3"
    assert next_version(["v1.0.9", "v2.1.3"]) == "v2.1.4"


def test_models_are_found_by_version_hash_and_prefix(tmp_path):
    site = Site(tmp_path)
    one, two = site.add("one"), site.add("two")
    assert [model.version for model in site.registry.models()] == ["v1.0.0", "v1.0.1"]
    assert site.add("one") == one
    assert len(site.registry.models()) == 2
    for name in ("v1.0.1", two, two[:8]):
        assert site.registry.find(name).model_hash == two
    for name in (two[:7], "v9.9.9", "", "%"):
        with pytest.raises(ConfigError, match="no such model"):
            site.registry.find(name)
