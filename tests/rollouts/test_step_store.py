import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_samples import TRADER, Dice, Faulty, Walk, WalkConfig, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.core.types import Decision, Nanos, Observation, Outcome, Role, Step
from agent_gym.rollouts import spool as spool_module
from agent_gym.rollouts.play import play, run_episode
from agent_gym.rollouts.sinks import ColumnSink, MemorySink, ParquetSink
from agent_gym.rollouts.store import StepStore

FLAT = ["t", "ts", "action", "reward", "terminated", "truncated"]


def made(t=0, action=1.0, episode="e", role="trader", **more):
    seen = Observation(Nanos(t), np.array([float(t), 2.0]))
    end = more.pop("end", False)
    return Step(
        episode, t, Role(role), "a", seen, Decision(action, **more), Outcome(seen, t / 3, end)
    )


def record(folder, episodes=("e1", "e2"), config=None, **options):
    memory, config = MemorySink(), config or WalkConfig(n=50)
    with ParquetSink(folder, **options) as sink:
        for episode in episodes:
            team = Independent({role: Dice() for role in Walk(config).roles})
            run_episode(Walk(config), team, episode, seeds(), (sink, memory))
    return memory.steps


def assert_holds(table, steps):
    assert table.column("episode").to_pylist() == [step.episode for step in steps]
    assert table.column("role").to_pylist() == [step.role for step in steps]
    assert table.column("agent").to_pylist() == [step.agent for step in steps]
    assert table.column("t").to_pylist() == [step.t for step in steps]
    assert table.column("ts").to_pylist() == [step.before.ts for step in steps]
    assert table.column("reward").to_pylist() == [step.after.reward for step in steps]
    assert table.column("terminated").to_pylist() == [step.after.terminated for step in steps]
    assert table.column("truncated").to_pylist() == [step.after.truncated for step in steps]
    assert table.column("rationale").to_pylist() == [step.decision.rationale for step in steps]
    pairs = table.column("signals").to_pylist()
    signals = [None if said is None else dict(said) for said in pairs]
    assert signals == [step.decision.signals for step in steps]


@pytest.mark.parametrize("block_steps", [1, 7, 64, 4096])
@pytest.mark.parametrize("roles", [("trader",), ("trader", "other")])
def test_what_went_in_comes_out(tmp_path, block_steps, roles):
    config = WalkConfig(n=50, roles=roles)
    steps = record(tmp_path / "s", config=config, block_steps=block_steps)
    store = StepStore.open(tmp_path / "s")
    assert_holds(store.table(), steps)
    assert store.table().column("action").to_pylist() == [step.decision.action for step in steps]
    assert store.manifest.status == "complete"
    assert store.manifest.rows == len(steps)
    assert [row["status"] for row in store.manifest.episodes] == ["ok", "ok"]
    parts = dict(store.episodes())
    assert list(parts) == ["e1", "e2"]
    for episode, part in parts.items():
        assert_holds(part, [step for step in steps if step.episode == episode])


def test_columns_in_memory_are_the_columns_on_disk(tmp_path):
    steps = record(tmp_path / "s", observations=True)
    memory = ColumnSink(observations=True, block_steps=33)
    for step in steps:
        memory.write(step)
    memory.close()
    stored, kept = StepStore.open(tmp_path / "s").columns(), memory.columns()
    assert list(stored) == list(kept)
    for name, column in stored.items():
        assert column.dtype == kept[name].dtype
        assert np.array_equal(column, kept[name]), name
    features = np.array([step.before.features for step in steps])
    assert stored["observation"].tobytes() == features.tobytes()
    chosen = StepStore.open(tmp_path / "s").columns(["reward", "agent"])
    assert list(chosen) == ["reward", "agent"]
    assert chosen["agent"][0] == "dice"


def test_vectors_are_actions_too(tmp_path):
    sink = ColumnSink(block_steps=2)
    actions = [np.array([1.0, 2.0]), np.array([]), np.array([3.0, 4.0, 5.0])]
    for t, action in enumerate(actions):
        sink.write(made(t, action))
    assert sink.table().column("action").to_pylist() == [a.tolist() for a in actions]


@pytest.mark.parametrize("first", [1.0, np.array([1.0])])
@pytest.mark.parametrize("second", ["x", None, np.array([1.0, 2.0]), [[1.0]], 2.0])
def test_a_step_that_does_not_fit_is_an_error(first, second):
    fits = np.ndim(first) == np.ndim(second) and not isinstance(second, str) and second is not None
    sink = ColumnSink()
    sink.write(made(0, first))
    sink.write(made(1, second))
    if fits:
        assert sink.table().num_rows == 2
        return
    with pytest.raises(StoreError, match="does not fit the columns"):
        sink.close()


def test_an_observation_of_another_width_is_an_error():
    sink = ColumnSink(observations=True, block_steps=1)
    sink.write(made(0))
    odd = made(1)
    odd.before = Observation(Nanos(1), np.zeros(5))
    with pytest.raises(StoreError, match="after some of 2"):
        sink.write(odd)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["e1", "e2", "x"]),
            st.sampled_from(["a", "b"]),
            st.floats(allow_nan=False),
            st.booleans(),
            st.none() | st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False)),
            st.none() | st.text(max_size=5),
        ),
        max_size=30,
    ),
    block_steps=st.integers(1, 8),
)
def test_any_steps_survive_the_columns(rows, block_steps):
    steps = [
        made(t, x, e, r, end=end, signals=signals, rationale=text)
        for t, (e, r, x, end, signals, text) in enumerate(rows)
    ]
    sink = ColumnSink(block_steps=block_steps)
    for step in steps:
        sink.write(step)
    table = sink.table()
    assert_holds(table, steps)
    assert table.column("action").to_pylist() == [step.decision.action for step in steps]


def test_same_seed_same_bytes(tmp_path):
    for name in ("a", "b"):
        record(tmp_path / name, config=WalkConfig(n=300), block_steps=16)
    files = [{f.name: f.read_bytes() for f in (tmp_path / n).iterdir()} for n in ("a", "b")]
    assert files[0] == files[1]
    assert len(files[0]) == 2
    record(tmp_path / "c", config=WalkConfig(n=301))
    assert not {f.name for f in (tmp_path / "c").iterdir()} <= set(files[0])


def test_one_group_of_rows_or_many_read_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_module, "GROUP_ROWS", 40)
    steps = record(tmp_path / "s", episodes=("a", "b", "c", "d"), block_steps=16)
    store = StepStore.open(tmp_path / "s")
    assert_holds(store.table(), steps)
    assert [name for name, _ in store.episodes()] == ["a", "b", "c", "d"]
    assert_holds(pa.concat_tables([part for _, part in store.episodes()]), steps)


def test_no_steps_is_a_store_too(tmp_path):
    ParquetSink(tmp_path / "s").close()
    store = StepStore.open(tmp_path / "s")
    assert store.table().num_rows == 0
    assert list(store.episodes()) == []
    assert store.columns()["reward"].size == 0


def test_an_episode_that_failed_at_once_is_in_the_manifest(tmp_path):
    def fail():
        raise ValueError("no")

    with ParquetSink(tmp_path / "s") as sink:
        team = Independent({TRADER: Faulty(fail, at=0)})
        run_episode(Walk(WalkConfig()), team, "bad", seeds(), (sink,))
    store = StepStore.open(tmp_path / "s")
    assert store.manifest.episodes[0]["status"] == "error"
    assert store.manifest.episodes[0]["error"]["what"] == "no"
    assert store.manifest.status == "complete"


def test_mixed_episodes_are_told_and_not_guessed(tmp_path):
    with ParquetSink(tmp_path / "s") as sink:
        for t, episode in enumerate(["a", "b", "a"]):
            sink.write(made(t, episode=episode))
    with pytest.raises(StoreError, match="mixed"):
        list(StepStore.open(tmp_path / "s").episodes())


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
        from test_step_store import made
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


def test_play_does_not_need_sinks_to_be_closed_in_between(tmp_path):
    sink = ColumnSink()
    for episode in ("a", "b"):
        play(Walk(WalkConfig()), Independent({TRADER: Dice()}), episode, seeds(), (sink,))
        assert sink.table().num_rows == (20 if episode == "a" else 40)
