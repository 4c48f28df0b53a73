"""What every store of blobs does, on a folder and on a server alike."""

import logging
from hashlib import sha256

import pytest

from agent_gym.core.clock import DAY_NS, SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.blobs import SweepRules, open_blobs, sweep
from agent_gym.rollouts.blobs.store import DAMAGED, TRASH


def overwrite(blobs, digest, content, tmp_path):
    """Change what the shelf holds, behind the back of the store."""
    path = tmp_path / "wrong"
    path.write_bytes(content)
    blobs.shelf.upload(path, blobs.name(digest))
    blobs.forget(digest)


def test_blobs_come_back_by_their_hash(blobs, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"b" * 3_000_000)
    names = [blobs.put(b"a"), blobs.put(b""), blobs.put_file(source)]
    assert names[0] == sha256(b"a").hexdigest()
    assert set(blobs.digests()) == set(names)
    assert sorted(entry.n_bytes for entry in blobs.entries()) == [0, 1, 3_000_000]
    for digest, content in zip(names, (b"a", b"", source.read_bytes()), strict=True):
        assert blobs.exists(digest)
        assert blobs.get(digest) == content
        blobs.forget(digest)  # and once more, from the shelf itself
        assert blobs.fetch(digest).read_bytes() == content
        assert blobs.state(digest) == "whole"


def test_putting_twice_is_putting_once_and_deleting_is_for_good(blobs):
    digest = blobs.put(b"x")
    assert blobs.put(b"x") == digest
    assert list(blobs.digests()) == [digest]
    blobs.delete(digest)
    blobs.delete(digest)
    assert not blobs.exists(digest)
    assert blobs.state(digest) == "missing"
    with pytest.raises(StoreError, match="not what was written"):
        blobs.get(digest)


@pytest.mark.parametrize("wrong", [b"tHe bytes", b"the byte", b"", b"the bytes and more"])
def test_other_bytes_are_refused_reported_and_set_aside(blobs, tmp_path, wrong, caplog):
    digest = blobs.put(b"the bytes")
    assert blobs.get(digest) == b"the bytes"
    overwrite(blobs, digest, wrong, tmp_path)
    with caplog.at_level(logging.ERROR), pytest.raises(StoreError) as told:
        blobs.fetch(digest)
    assert "damaged" in str(told.value)
    assert digest in told.value.where
    assert "has changed since it was written" in caplog.text
    assert not blobs.exists(digest)
    assert blobs.state(digest) == "damaged"
    assert [entry.name for entry in blobs.shelf.entries(DAMAGED)] == [f"{DAMAGED}/{digest}.bin"]
    assert blobs.put(b"the bytes") == digest  # who still has them can put them back
    assert blobs.get(digest) == b"the bytes"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 63, "A" * 64, "", "a" * 63 + "\n"])
def test_what_is_no_hash_never_becomes_a_name(blobs, name):
    for ask in (blobs.get, blobs.exists, blobs.delete, blobs.state):
        with pytest.raises(StoreError, match="no hash"):
            ask(name)


def test_foreign_files_on_the_shelf_are_no_blobs(blobs, tmp_path):
    digest = blobs.put(b"x")
    path = tmp_path / "note"
    path.write_bytes(b"hello")
    for name in ("note.txt", f"00/{digest}.bin", f"{digest[:2]}/{digest}.txt"):
        blobs.shelf.upload(path, name)
    assert list(blobs.digests()) == [digest]


# The removal of what nobody names.


def days(number, **more):
    return SweepRules(SystemClock().now_ns() + round(number * DAY_NS), **more)


def test_a_blob_goes_by_way_of_the_trash_and_what_is_named_stays(blobs):
    kept, gone = blobs.put(b"kept"), blobs.put(b"gone")
    assert sweep(blobs, lambda: {kept}, days(0)).young == 1
    planned = sweep(blobs, lambda: {kept}, days(2, dry_run=True))
    assert planned.trashed == [gone]
    assert blobs.exists(gone)
    done = sweep(blobs, lambda: {kept}, days(2))
    assert (done.named, done.trashed, done.deleted) == (1, [gone], [])
    assert not blobs.exists(gone)
    again = sweep(blobs, lambda: {kept}, days(0.5))  # not long enough in the trash
    assert (again.trashed, again.deleted) == ([], [])
    last = sweep(blobs, lambda: {kept}, days(4))
    assert last.deleted == [gone]
    assert last.bytes_freed >= 4
    assert list(blobs.shelf.entries(TRASH)) == []
    assert list(blobs.digests()) == [kept]


def test_what_is_needed_again_comes_back_from_the_trash(blobs):
    kept, read, named = blobs.put(b"kept"), blobs.put(b"read"), blobs.put(b"named")
    sweep(blobs, lambda: {kept}, days(2))
    blobs.forget(read)
    assert blobs.get(read) == b"read"  # somebody reads it
    assert blobs.exists(read)
    done = sweep(blobs, lambda: {kept, read, named}, days(9))  # somebody names it
    assert done.restored == [named]
    assert done.deleted == []
    assert blobs.get(named) == b"named"


def test_a_writer_beside_a_sweep_loses_nothing(blobs):
    """It finds an old blob to be there, the sweep takes it away, and only then is it named."""
    kept, old = blobs.put(b"kept"), blobs.put(b"old")

    def marks():
        assert blobs.put(b"old") == old  # between the listing and the moves: it is there already
        blobs.put(b"new")
        return {kept}

    done = sweep(blobs, marks, days(2))
    assert done.trashed == [old]  # what was put after the listing is not even looked at
    named = {kept, old, sha256(b"new").hexdigest()}
    blobs.forget(old)
    assert blobs.get(old) == b"old"
    assert sweep(blobs, lambda: named, days(9)).deleted == []
    assert set(blobs.digests()) == named


def test_a_store_of_which_nothing_is_named_is_not_swept(blobs):
    digest = blobs.put(b"of another database")
    with pytest.raises(StoreError, match="nothing in this store is named"):
        sweep(blobs, set, days(9))
    assert blobs.exists(digest)
    assert sweep(blobs, set, days(9, force=True)).trashed == [digest]


# Addresses.


@pytest.mark.parametrize(
    "said",
    [
        "s3://canary-id:canary-secret@bucket/x",
        "s3://bucket/x?secret_key=canary-secret",
        "s3://bucket/x#canary-secret",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(said, tmp_path):
    with pytest.raises(ConfigError, match="no secrets") as told:
        open_blobs("steps", tmp_path, url=said)
    assert "canary" not in str(told.value.as_dict())


@pytest.mark.parametrize(
    "said", ["s3://", "s3:///x", "s3://B/x", "s3://bucket/../x", "http://h/x", "file://h/x", "x"]
)
def test_what_is_no_address_is_refused(said, tmp_path):
    with pytest.raises(ConfigError, match="no address"):
        open_blobs("steps", tmp_path, url=said)


def test_without_an_address_blobs_lie_where_step_files_always_lay(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_GYM_BLOBS", raising=False)
    blobs = open_blobs("steps", tmp_path, ".arrow")
    digest = blobs.put(b"x")
    assert (tmp_path / digest[:2] / f"{digest}.arrow").read_bytes() == b"x"
    assert not blobs.is_remote
