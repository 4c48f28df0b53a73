"""What a step store does on a disk that is full or read-only."""

import os
import resource
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from rollout_samples import TRADER, content, made, record

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.rollouts.play import EpisodeResult
from agent_gym.rollouts.sinks import ParquetSink
from agent_gym.rollouts.store import StepStore


@contextmanager
def file_limit(size):
    """Let no file grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 100, 700, 5_000, 20_000, 100_000])
@pytest.mark.parametrize("replacing", [False, True])
def test_a_full_disk_is_a_typed_error_and_the_old_store_stays(tmp_path, size, replacing):
    folder = tmp_path / "s"
    old = {}
    if replacing:
        record(folder)
        old = content(folder)

    def write_all():
        with ParquetSink(folder, block_steps=10, overwrite=replacing) as sink:
            for episode in range(400):  # so that the manifest is the largest file
                sink.write(made(0, episode=f"e{episode}"))
                sink.finish_episode(EpisodeResult(f"e{episode}", 1, {TRADER: 0.0}))

    with file_limit(size), pytest.raises(StoreError) as caught:
        write_all()
    assert caught.value.remedy
    assert old.items() <= content(folder).items()
    if replacing:
        assert StepStore.open(folder).manifest.rows == 100
    write = {"overwrite": True} if replacing or (folder / "partial.json").exists() else {}
    with ParquetSink(folder, **write) as sink:  # nothing is locked, nothing is in the way
        sink.write(made())
    assert StepStore.open(folder).manifest.rows == 1


def test_the_manifest_is_what_did_not_fit(tmp_path):
    """The test above reaches the last file: its largest limit stops the manifest alone."""
    with ParquetSink(tmp_path / "s", block_steps=10) as sink:
        for episode in range(400):
            sink.write(made(0, episode=f"e{episode}"))
            sink.finish_episode(EpisodeResult(f"e{episode}", 1, {TRADER: 0.0}))
    sizes = {path.suffix: path.stat().st_size for path in (tmp_path / "s").iterdir()}
    assert sizes[".parquet"] < 20_000 < sizes[".json"]


@contextmanager
def no_rights(folder):
    """Take away the right to write to a folder; root has it always, so root becomes nobody."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def open_tmp():
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_read_only_folder_is_a_typed_error(open_tmp):
    record(open_tmp / "s")
    (open_tmp / "empty").mkdir()
    old = content(open_tmp)
    for name, options in (("s", {"overwrite": True}), ("empty", {}), ("empty/below", {})):
        with no_rights(open_tmp / name.split("/")[0]):
            with pytest.raises(StoreError, match="cannot write here") as caught:
                ParquetSink(open_tmp / name, **options)
            assert caught.value.remedy
    assert content(open_tmp) == old
    for name in ("s", "empty"):
        ParquetSink(open_tmp / name, overwrite=True).close()


def test_a_folder_that_turns_read_only_is_a_typed_error_too(open_tmp):
    record(open_tmp / "s")
    old = content(open_tmp / "s")
    sink = ParquetSink(open_tmp / "s", overwrite=True, block_steps=1)
    sink.write(made())
    while not sink._spool._rows:
        SystemClock().sleep_s(0.01)
    with no_rights(open_tmp / "s"), pytest.raises(StoreError) as caught:
        sink.close()
    assert caught.value.remedy
    assert old.items() <= content(open_tmp / "s").items()
    assert StepStore.open(open_tmp / "s" / "partial-1").columns()["t"].tolist() == [0]
