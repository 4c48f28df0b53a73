"""Kills, servers that go away and servers that lie."""

import logging
import os
import signal
import subprocess
import sys
from hashlib import sha256

import pytest

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.blobs import SweepRules, open_blobs, sweep
from agent_gym.rollouts.blobs import remote as remote_module
from tests.store_blobs import s3_server

WATCHED = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "shutil.copyfile"}
BIG = b"0123456789abcdef" * (6 << 16)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(remote_module, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("os.fsync", lambda _handle: None)


def killed_at(blobs, source, point):
    """Put a file in a fork that is killed at its nth touch of the disk; True if it came so far."""
    child = os.fork()
    if child == 0:
        left = [point]

        def touch(name, _):
            left[0] -= name in WATCHED
            if name in WATCHED and left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(touch)
            blobs.put_file(source)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def test_a_kill_at_any_point_of_a_put_leaves_all_or_nothing(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(BIG)
    digest, states, point = sha256(BIG).hexdigest(), [], 1
    while True:
        blobs = open_blobs("steps", tmp_path / str(point), ".bin")
        killed = killed_at(blobs, source, point)
        states.append(blobs.state(digest))
        assert states[-1] in ("missing", "whole")
        assert blobs.put_file(source) == digest
        later = SweepRules(SystemClock().now_ns() + 10**18)
        sweep(blobs, lambda: {digest}, later)
        left = [path for path in (tmp_path / str(point)).rglob("*") if path.is_file()]
        assert left == [blobs.path(digest)]
        if not killed:
            break
        point += 1
    assert point > 5
    assert set(states) == {"missing", "whole"}


PUT = """
import sys
from pathlib import Path
from agent_gym.rollouts.blobs import open_blobs
open_blobs("steps", Path(sys.argv[1]), ".bin", sys.argv[2]).put_file(Path(sys.argv[3]))
"""


def test_a_kill_in_the_midst_of_sending_leaves_nothing_to_be_seen(bucket, proxy, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(BIG)
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    words = [sys.executable, "-c", PUT, str(tmp_path / "other"), bucket, str(source)]
    process = subprocess.Popen(words)
    while proxy.sent < 1 << 20 and process.poll() is None:
        SystemClock().sleep_s(0.001)
    process.kill()
    process.wait()
    digest = sha256(BIG).hexdigest()
    assert blobs.state(digest) in ("missing", "whole")
    assert blobs.put_file(source) == digest
    assert blobs.state(digest) == "whole"


def test_an_answer_that_breaks_off_is_asked_for_again(bucket, proxy, tmp_path):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    content = BIG[: 2 << 20]
    digest = blobs.put(content)
    blobs.forget(digest)
    passed, cuts = [0], [0]

    def cut(part):
        passed[0] += len(part)
        if passed[0] > 1 << 20 and cuts[0] < 3:
            passed[0], cuts[0] = 0, cuts[0] + 1
            return None
        return part

    proxy.change = cut
    assert blobs.get(digest) == content
    assert cuts[0] > 0


def test_a_server_that_is_gone_is_named_and_nothing_is_lost(bucket, proxy, tmp_path, caplog):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    first = blobs.put(b"first")
    blobs.forget(first)
    proxy.change = lambda _part: None
    with caplog.at_level(logging.WARNING):
        for ask in (lambda: blobs.get(first), lambda: blobs.put(b"second"), blobs.push):
            with pytest.raises(StoreError, match="does not answer") as told:
                ask()
            assert bucket in told.value.where
    assert caplog.text.count("attempt") >= 2 * (remote_module.ATTEMPTS - 1)
    for secret in s3_server.KEYS.values():
        assert secret == "true" or secret not in caplog.text + str(told.value)
    second = sha256(b"second").hexdigest()
    assert blobs.path(second).read_bytes() == b"second"  # it waits here
    proxy.change = lambda part: part
    assert blobs.push() == (second,)
    assert blobs.get(first) == b"first"
    assert blobs.state(second) == "whole"


def test_a_lie_on_the_way_is_refused_and_the_blob_stays_where_it_is(bucket, proxy, tmp_path):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    digest = blobs.put(b"the truth and nothing else")
    blobs.forget(digest)
    lies = iter([b"the tooth", b"the mouth"] * 50)

    def lie(part):
        return part.replace(b"the truth", next(lies)) if b"the truth" in part else part

    proxy.change = lie
    with pytest.raises(StoreError, match="other bytes each time"):
        blobs.get(digest)
    assert not blobs.path(digest).exists()
    proxy.change = lambda part: part
    assert blobs.get(digest) == b"the truth and nothing else"


def test_one_lie_alone_is_told_and_got_over(bucket, proxy, tmp_path, caplog):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    digest = blobs.put(b"the truth and nothing else")
    blobs.forget(digest)
    lies = iter([b"the tooth"])

    def lie(part):
        return (
            part.replace(b"the truth", next(lies, b"the truth")) if b"the truth" in part else part
        )

    proxy.change = lie
    with caplog.at_level(logging.ERROR):
        assert blobs.get(digest) == b"the truth and nothing else"
    assert next(lies, None) is None
    assert "gave other bytes" in caplog.text


def test_a_damaged_copy_in_the_cache_is_fetched_again(bucket, tmp_path):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    digest = blobs.put(b"good")
    blobs.path(digest).write_bytes(b"evil")
    assert blobs.get(digest) == b"good"
    assert (tmp_path / "near" / "damaged" / f"{digest}.bin").read_bytes() == b"evil"


def test_a_bucket_that_is_not_there_is_named_at_once(bucket, tmp_path):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", "s3://no-such-bucket/x")
    with pytest.raises(StoreError, match="NO_SUCH_BUCKET"):
        blobs.put(b"x")


def test_old_copies_go_from_the_cache_and_unsent_ones_stay(bucket, tmp_path):
    blobs = open_blobs("steps", tmp_path / "near", ".bin", bucket)
    digest = blobs.put(b"sent")
    alone = open_blobs("steps", tmp_path / "near", ".bin", f"file://{tmp_path / 'none'}")
    assert alone.put(b"elsewhere")
    unsent = sha256(b"unsent").hexdigest()
    blobs.path(unsent).parent.mkdir(parents=True, exist_ok=True)
    blobs.path(unsent).write_bytes(b"unsent")
    done = sweep(blobs, lambda: {digest}, SweepRules(SystemClock().now_ns() + 10**18))
    assert done.uncached == 1
    assert not blobs.path(digest).exists()
    assert blobs.path(unsent).exists()
    assert blobs.get(digest) == b"sent"


def test_a_file_of_keys_that_others_may_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "keys"
    path.write_text("[default]\naws_secret_access_key = canary\n")
    path.chmod(0o644)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    with pytest.raises(ConfigError, match="others may read"):
        open_blobs("steps", tmp_path / "near", url="s3://bucket/x")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match="no file of keys"):
        open_blobs("steps", tmp_path / "near", url="s3://bucket/x")
    monkeypatch.delenv("AWS_SHARED_CREDENTIALS_FILE")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://id:canary@127.0.0.1:1")
    with pytest.raises(ConfigError, match="no address of a server") as told:
        open_blobs("steps", tmp_path / "near", url="s3://bucket/x")
    assert "canary" not in str(told.value)


def test_a_link_in_the_place_of_a_blob_leads_nowhere(tmp_path):
    """Neither reading, nor setting aside, nor sweeping touches what a link points to."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    blobs = open_blobs("steps", tmp_path / "here", ".bin")
    kept, digest = blobs.put(b"kept"), sha256(b"secret").hexdigest()
    blobs.path(digest).parent.mkdir(parents=True, exist_ok=True)
    blobs.path(digest).symlink_to(outside)  # even if its bytes are right
    with pytest.raises(StoreError, match="missing"):
        blobs.fetch(digest)
    assert list(blobs.digests()) == [kept]
    later = SweepRules(SystemClock().now_ns() + 10**18)
    assert sweep(blobs, lambda: {kept}, later).trashed == []
    assert blobs.put(b"secret") == digest  # the link is replaced, not written through
    assert not blobs.path(digest).is_symlink()
    assert blobs.get(digest) == b"secret"
    blobs.delete(digest)
    assert outside.read_bytes() == b"secret"


def test_a_file_that_is_swapped_after_it_was_checked_is_checked_again(tmp_path):
    blobs = open_blobs("steps", tmp_path / "here", ".bin")
    digest = blobs.put(b"good")
    assert blobs.fetch(digest).read_bytes() == b"good"
    (tmp_path / "evil").write_bytes(b"evil")
    (tmp_path / "evil").replace(blobs.path(digest))
    with pytest.raises(StoreError, match="damaged"):
        blobs.get(digest)
