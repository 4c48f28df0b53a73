"""What a step store does when something goes wrong: bit rot, lies, kills and full disks."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from rollout_samples import TRADER, Faulty, Walk, WalkConfig, made, record, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.rollouts import spool as spool_module
from agent_gym.rollouts.play import run_episode
from agent_gym.rollouts.sinks import ParquetSink
from agent_gym.rollouts.store import StepStore


@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_one_flipped_bit_is_found(tmp_path, place):
    record(tmp_path / "s")
    path = next((tmp_path / "s").glob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not what was written"):
        StepStore.open(tmp_path / "s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99, "new_field": 1}, "newer version"),
        ({"schema_version": 0}, "another kind"),
        ({"kind": "vectors"}, "another kind"),
        ({"file": "../other.parquet"}, "lies elsewhere"),
        ({"file": "gone.parquet"}, "lies elsewhere"),
        ({"unknown": 1}, "cannot be read"),
        ({"schema_version": "x"}, "cannot be read"),
    ],
)
def test_a_manifest_that_lies_is_refused(tmp_path, change, message):
    record(tmp_path / "s")
    (tmp_path / "other.parquet").write_bytes(b"")
    path = tmp_path / "s" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StoreError, match=message):
        StepStore.open(tmp_path / "s")


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no store here"):
        StepStore.open(tmp_path)
    (tmp_path / "manifest.json").write_text("[1")
    with pytest.raises(StoreError, match="cannot be read"):
        StepStore.open(tmp_path)


def test_a_link_out_of_the_store_is_not_followed(tmp_path):
    record(tmp_path / "s")
    path = next((tmp_path / "s").glob("*.parquet"))
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(StoreError, match="lies elsewhere"):
        StepStore.open(tmp_path / "s")


def test_a_store_is_not_replaced_unless_asked(tmp_path):
    record(tmp_path / "s")
    before = {f.name: f.read_bytes() for f in (tmp_path / "s").iterdir()}
    with pytest.raises(StoreError, match="already"):
        ParquetSink(tmp_path / "s")
    assert {f.name: f.read_bytes() for f in (tmp_path / "s").iterdir()} == before
    sink = ParquetSink(tmp_path / "s", overwrite=True)
    sink.write(made())
    assert StepStore.open(tmp_path / "s").manifest.rows == 100  # the old one, until the end
    sink.close()
    sink.close()
    assert StepStore.open(tmp_path / "s").manifest.rows == 1
    assert len(list((tmp_path / "s").iterdir())) == 2


def test_an_exception_leaves_a_marked_partial_store(tmp_path):
    def interrupted():
        with ParquetSink(tmp_path / "s") as sink:
            for t in range(10):
                sink.write(made(t))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    store = StepStore.open(tmp_path / "s")
    assert store.manifest.status == "partial"
    assert store.manifest.reason == "ended by KeyboardInterrupt"
    assert store.columns()["t"].tolist() == list(range(10))


def test_an_interrupted_episode_marks_the_store(tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    with ParquetSink(tmp_path / "s") as sink:
        team = Independent({TRADER: Faulty(interrupt)})
        assert run_episode(Walk(WalkConfig()), team, "e", seeds(), (sink,)).status == "interrupted"
    store = StepStore.open(tmp_path / "s")
    assert (store.manifest.status, store.manifest.rows) == ("partial", 5)
    assert "interrupted" in store.manifest.reason


def test_a_killed_run_is_readable_up_to_the_last_block(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from rollout_samples import made
        from agent_gym.core.clock import SystemClock
        from agent_gym.rollouts.sinks import ParquetSink
        folder = Path(sys.argv[1])
        sink = ParquetSink(folder, block_steps=10)
        for t in range(95):
            sink.write(made(t))
        while sink._spool._queue.qsize() or (folder / "spool.arrows").stat().st_size < 9 * 500:
            SystemClock().sleep_s(0.01)
        SystemClock().sleep_s(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "s")],
        env=os.environ | {"PYTHONPATH": here},
        check=False,
        timeout=120,
    )
    assert done.returncode == -9
    spool = tmp_path / "s" / "spool.arrows"
    size, rows = spool.stat().st_size, []
    for cut in (0, 1, 300, 777, size // 2, size - 10):
        os.truncate(spool, size - cut)
        store = StepStore.open(tmp_path / "s")
        assert store.manifest.status == "partial"
        assert "killed" in store.manifest.reason
        t = store.columns()["t"]
        assert t.tolist() == list(range(t.size))
        rows.append(t.size)
    assert rows[0] == 90
    assert rows == sorted(rows, reverse=True)
    assert rows[-1] == 0 < rows[-2] < rows[1]
    os.truncate(spool, 0)
    assert StepStore.open(tmp_path / "s").table().num_rows == 0
    with pytest.raises(StoreError, match="already"):
        ParquetSink(tmp_path / "s")


class FullDisk:
    """Fails at the k-th write of the spool or of the final file."""

    def __init__(self, k):
        self.left = k

    def __call__(self, real):
        def writing(*args, **kwargs):
            self.left -= 1
            if self.left < 0:
                raise OSError(28, "No space left on device")
            return real(*args, **kwargs)

        return writing


@pytest.mark.parametrize("k", range(6))
def test_a_full_disk_is_an_error_and_what_was_written_stays(tmp_path, monkeypatch, k):
    # Opening the spool, three blocks go through the writer thread, then the conversion writes.
    disk = FullDisk(k)
    real_stream, real_hash = pa.ipc.new_stream, spool_module.file_hash
    real_group = spool_module._write_group

    class Stream:
        def __init__(self, *args):
            self._real = real_stream(*args)
            self.write_batch, self.close = disk(self._real.write_batch), self._real.close

    monkeypatch.setattr(pa.ipc, "new_stream", disk(Stream))
    monkeypatch.setattr(spool_module, "_write_group", disk(real_group))
    monkeypatch.setattr(spool_module, "file_hash", disk(real_hash))

    def write_all():
        with ParquetSink(tmp_path / "s", block_steps=10) as sink:
            for t in range(30):
                sink.write(made(t))

    with pytest.raises(StoreError, match="could not be written"):
        write_all()
    assert not (tmp_path / "s" / "manifest.json").exists()
    monkeypatch.undo()
    store = StepStore.open(tmp_path / "s")
    assert store.manifest.status == "partial"
    whole = max(0, min(k - 1, 3)) * 10
    assert store.columns(["t"])["t"].tolist() == list(range(whole))


def test_rows_that_cannot_be_read_back_are_not_lost_silently(tmp_path, monkeypatch):
    real = spool_module.read_spool
    monkeypatch.setattr(spool_module, "read_spool", lambda path: list(real(path))[:-1])
    sink = ParquetSink(tmp_path / "s", block_steps=5)
    for t in range(20):
        sink.write(made(t))
    with pytest.raises(StoreError, match="15 of 20 rows"):
        sink.close()
    assert StepStore.open(tmp_path / "s").manifest.status == "partial"


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write here"):
        ParquetSink(tmp_path / "file" / "s")
