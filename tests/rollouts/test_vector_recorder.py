from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.rollouts import spool as spool_module
from agent_gym.rollouts.vector import VectorRecorder, VectorStore, vector_dtypes


def feed(recorder, calls, seed=0, exact=True):
    """Record some calls, reusing the buffers as a vector environment does; return what was fed."""
    rng = Seeds(seed).child("feed").rng()
    kinds = vector_dtypes()
    n = recorder.n_lanes
    fed = {
        "t_index": rng.integers(0, 10_000, (calls, n)),
        "action": rng.integers(-3, 4, (calls, n)),
        "reward": rng.normal(size=(calls, n)).astype(np.float32),
        "position": rng.normal(size=(calls, n)).astype(np.float32),
        "equity": rng.normal(size=(calls, n)) * 1e6,
        "flags": rng.integers(0, 8, (calls, n)),
    }
    if exact:
        fed = {name: column.astype(kinds[name]) for name, column in fed.items()}
    buffers = {name: np.empty(n, column.dtype) for name, column in fed.items()}
    for call in range(calls):
        for name, buffer in buffers.items():
            buffer[:] = fed[name][call]
        recorder.record(*buffers.values())
    return fed


def assert_same(columns, fed):
    assert list(columns) == list(vector_dtypes())
    for name, kind in vector_dtypes().items():
        assert columns[name].dtype == kind
        assert columns[name].tobytes() == fed[name].astype(kind).tobytes()
        assert columns[name].shape == fed[name].shape


@settings(max_examples=25, deadline=None)
@given(
    lanes=st.integers(1, 5), block=st.integers(1, 6), calls=st.integers(0, 25), exact=st.booleans()
)
def test_memory_keeps_everything(lanes, block, calls, exact):
    recorder = VectorRecorder(lanes, block)
    fed = feed(recorder, calls, exact=exact)
    assert_same(recorder.columns(), fed)


@settings(max_examples=25, deadline=None)
@given(block=st.integers(1, 5), keep=st.integers(1, 3), calls=st.integers(0, 40))
def test_a_ring_keeps_the_newest(block, keep, calls):
    recorder = VectorRecorder(3, block, keep_blocks=keep)
    fed = feed(recorder, calls)
    columns = recorder.columns()
    kept = columns["reward"].shape[0]
    assert kept >= min(calls, (keep - 1) * block)
    assert kept <= keep * block
    assert_same(columns, {name: column[calls - kept :] for name, column in fed.items()})


@pytest.mark.parametrize("calls", [0, 3, 8, 100, 101])
@pytest.mark.parametrize("group_rows", [10, 131_072])
def test_disk_keeps_everything(tmp_path, monkeypatch, calls, group_rows):
    monkeypatch.setattr(spool_module, "GROUP_ROWS", group_rows)
    recorder = VectorRecorder(4, 8, folder=tmp_path / "v")
    fed = feed(recorder, calls)
    recorder.close()
    recorder.close()
    store = VectorStore.open(tmp_path / "v")
    assert_same(store.columns(), fed)
    assert store.manifest.status == "complete"
    assert store.manifest.details == {"n_lanes": 4}
    assert sorted(path.suffix for path in (tmp_path / "v").iterdir()) == [".json", ".parquet"]


def test_same_feed_same_bytes(tmp_path):
    for name in ("a", "b"):
        recorder = VectorRecorder(4, 8, folder=tmp_path / name)
        feed(recorder, 50)
        recorder.close()
    one, other = ({f.name: f.read_bytes() for f in (tmp_path / n).iterdir()} for n in ("a", "b"))
    assert one == other


def test_a_partial_recording_says_so(tmp_path):
    recorder = VectorRecorder(2, 4, folder=tmp_path / "v")
    fed = feed(recorder, 7)
    recorder.abandon("Ctrl-C")
    store = VectorStore.open(tmp_path / "v")
    assert (store.manifest.status, store.manifest.reason) == ("partial", "Ctrl-C")
    assert_same(store.columns(), fed)


def test_a_recording_that_was_never_closed_is_partial(tmp_path):
    recorder = VectorRecorder(2, 4, folder=tmp_path / "v")
    feed(recorder, 9)
    store = VectorStore.open(tmp_path / "v")
    assert store.manifest.status == "partial"
    assert store.columns()["reward"].shape[1] == 2
    recorder.close()


@pytest.mark.parametrize(
    ("place", "value"), [(1, 128), (1, -129), (5, 256), (5, -1), (0, 2**31), (1, 0.5)]
)
def test_a_whole_number_that_does_not_fit_is_an_error(place, value):
    recorder = VectorRecorder(2)
    columns = [np.zeros(2, dtype=np.float64 if value == 0.5 else np.int64) for _ in range(6)]
    columns[place][1] = value
    with pytest.raises(StoreError, match="does not fit its column"):
        recorder.record(*columns)


def test_continuous_actions_have_their_own_type():
    recorder = VectorRecorder(2, action=np.float32)
    recorder.record(*(np.array([0.5, -0.25], dtype=np.float32) * (i == 1) for i in range(6)))
    assert recorder.columns()["action"].tolist() == [[0.5, -0.25]]


def test_a_wrong_number_of_lanes_is_an_error():
    with pytest.raises(ValueError, match="broadcast"):
        VectorRecorder(3).record(*(np.zeros(2, dtype=np.int8) for _ in range(6)))
    with pytest.raises(ValueError, match="at least 1"):
        VectorRecorder(0)


def test_columns_of_a_disk_recorder_are_read_from_the_store(tmp_path):
    recorder = VectorRecorder(2, folder=tmp_path / "v")
    with pytest.raises(StoreError, match=r"VectorStore\.open"):
        recorder.columns()
    recorder.close()


def test_a_full_disk_does_not_hang_the_recorder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool_module.pa.ipc, "new_stream", full)
    recorder = VectorRecorder(2, 1, folder=tmp_path / "v")
    with pytest.raises(StoreError, match="No space left"):
        feed(recorder, 100)


def test_a_block_is_not_used_again_before_it_is_written(tmp_path, monkeypatch):
    real = spool_module.pa.ipc.new_stream

    class Slow:
        def __init__(self, *args):
            self._real = real(*args)
            self.close = self._real.close

        def write_batch(self, batch):
            SystemClock().sleep_s(0.002)
            self._real.write_batch(batch)

    monkeypatch.setattr(spool_module.pa.ipc, "new_stream", Slow)
    recorder = VectorRecorder(3, 2, folder=tmp_path / "v")
    fed = feed(recorder, 101)
    recorder.close()
    assert_same(VectorStore.open(tmp_path / "v").columns(), fed)


def test_a_closed_recorder_takes_nothing_more(tmp_path):
    row = [np.zeros(2) for _ in range(6)]
    with VectorRecorder(2, folder=tmp_path / "v") as recorder:
        recorder.record(*row)
    with pytest.raises(StoreError, match="closed"):
        recorder.record(*row)
    assert VectorStore.open(tmp_path / "v").columns()["reward"].shape == (1, 2)
    with suppress(ZeroDivisionError), VectorRecorder(2, folder=tmp_path / "w") as recorder:
        recorder.record(*row)
        raise ZeroDivisionError
    assert recorder.manifest is not None
    assert recorder.manifest.status == "partial"
