"""Replacing a store: the old one stays until the new one is complete, whatever happens."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from rollout_samples import TRADER, Faulty, Walk, WalkConfig, content, made, record, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.rollouts import place as place_module
from agent_gym.rollouts import spool as spool_module
from agent_gym.rollouts.play import EpisodeResult, run_episode
from agent_gym.rollouts.sinks import ParquetSink
from agent_gym.rollouts.store import StepStore
from agent_gym.rollouts.vector import VectorRecorder, VectorStore

HERE = str(Path(__file__).parent)


@pytest.fixture
def old(tmp_path):
    record(tmp_path / "s")
    return content(tmp_path / "s")


def test_the_old_store_stays_until_the_new_one_is_complete(tmp_path, old):
    folder = tmp_path / "s"
    with ParquetSink(folder, overwrite=True, block_steps=1) as sink:
        for t in range(5):
            sink.write(made(t))
            assert old.items() <= content(folder).items()
            assert StepStore.open(folder).manifest.rows == 100
        assert sink.folder == folder / "partial-1"
    assert sink.folder == folder
    assert StepStore.open(folder).columns()["t"].tolist() == list(range(5))
    with ParquetSink(tmp_path / "fresh", block_steps=1) as sink:
        for t in range(5):
            sink.write(made(t))
    assert content(folder) == content(tmp_path / "fresh")
    assert sorted(path.name for path in folder.iterdir()) == sorted(content(folder))


@pytest.mark.parametrize("end", ["abandon", "raise", "interrupt"])
def test_a_partial_run_replaces_nothing_and_is_kept(tmp_path, old, end, caplog):
    folder = tmp_path / "s"
    sink = ParquetSink(folder, overwrite=True)
    for t in range(3):
        sink.write(made(t))
    if end == "abandon":
        sink.abandon("enough")
    elif end == "interrupt":
        sink.finish_episode(EpisodeResult("e", 3, status="interrupted"))
        sink.close()
    else:
        sink.__exit__(ValueError, ValueError("no"), None)
    assert old.items() <= content(folder).items()
    store = StepStore.open(folder)
    assert (store.manifest.status, store.manifest.rows) == ("complete", 100)
    assert store.partial_runs == (folder / "partial-1",) == (sink.folder,)
    kept = StepStore.open(sink.folder)
    assert kept.manifest == sink.manifest
    assert (kept.manifest.status, kept.manifest.rows) == ("partial", 3)
    assert "is kept in the folder above" in kept.manifest.reason
    assert str(sink.folder) in caplog.text
    assert len(list(sink.folder.iterdir())) == 2
    with ParquetSink(folder, overwrite=True) as second:
        second.write(made())
        assert second.folder == folder / "partial-2"
    store = StepStore.open(folder)
    assert store.manifest.rows == 1
    assert store.partial_runs == (folder / "partial-1",)
    assert StepStore.open(folder / "partial-1").manifest == kept.manifest


def test_a_run_that_was_abandoned_before_anything_leaves_no_trace(tmp_path, old):
    sink = ParquetSink(tmp_path / "s", overwrite=True)
    sink.abandon("nothing to do")
    assert content(tmp_path / "s") == old
    assert not (tmp_path / "s" / "partial-1").exists()
    assert (sink.manifest.status, sink.folder) == ("partial", tmp_path / "s")


def test_an_interrupted_episode_without_steps_is_kept_too(tmp_path, old):
    def interrupt():
        raise KeyboardInterrupt

    with ParquetSink(tmp_path / "s", overwrite=True) as sink:
        team = Independent({TRADER: Faulty(interrupt, at=0)})
        run_episode(Walk(WalkConfig()), team, "e", seeds(), (sink,))
    kept = StepStore.open(tmp_path / "s" / "partial-1")
    assert kept.manifest.failed_episodes == 1
    assert StepStore.open(tmp_path / "s").manifest.rows == 100


def test_a_recorder_replaces_in_the_same_way(tmp_path):
    def recorder(**more):
        made = VectorRecorder(2, 2, folder=tmp_path / "v", **more)
        for call in range(5):
            made.record(*(np.full(2, call, dtype=np.int8) for _ in range(6)))
        return made

    recorder().close()
    old = content(tmp_path / "v")
    recorder(overwrite=True).abandon("enough")
    assert old.items() <= content(tmp_path / "v").items()
    store = VectorStore.open(tmp_path / "v")
    assert store.manifest.status == "complete"
    (run,) = store.partial_runs
    assert VectorStore.open(run).manifest.status == "partial"
    assert VectorStore.open(run).columns()["t_index"][:, 0].tolist() == [0, 1, 2, 3, 4]
    last = recorder(overwrite=True)
    last.record(*(np.zeros(2, dtype=np.int8) for _ in range(6)))
    assert VectorStore.open(tmp_path / "v").manifest.rows == 10
    last.close()
    assert VectorStore.open(tmp_path / "v").manifest.rows == 12


def test_another_kind_of_store_leaves_nothing_behind(tmp_path, old):
    VectorRecorder(2, folder=tmp_path / "s", overwrite=True).close()
    assert sorted(path.suffix for path in (tmp_path / "s").iterdir()) == [".json", ".parquet"]
    assert VectorStore.open(tmp_path / "s").manifest.kind == "vectors"


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from rollout_samples import made
    from agent_gym.core.clock import SystemClock
    from agent_gym.rollouts import place, sinks, spool
    folder, point = Path(sys.argv[1]), sys.argv[2]

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_at(module, name, after=False):
        real = getattr(module, name)
        def call(*args, **more):
            result = real(*args, **more) if after else None
            die()
        setattr(module, name, call)

    sink = sinks.ParquetSink(folder, block_steps=10, overwrite=True)
    if point == "open":
        die()
    for t in range(95):
        sink.write(made(t))
    while sink._spool._rows < 90:
        SystemClock().sleep_s(0.01)
    if point == "middle":
        die()
    if point == "convert":
        die_at(spool, "_write_group", after=True)
    elif point == "built":
        die_at(spool, "file_hash")
    elif point == "moved":
        die_at(spool, "write_json")
    elif point == "swapped":
        die_at(spool, "write_json", after=True)
    sink.close()
    """
)


def run_killed(folder, point):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), point],
        env=os.environ | {"PYTHONPATH": HERE},
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["open", "middle", "convert", "built", "moved", "swapped"])
def test_a_kill_at_any_point_leaves_the_old_store_or_the_new_one(tmp_path, old, point, caplog):
    folder = tmp_path / "s"
    run_killed(folder, point)
    store = StepStore.open(folder)
    if point == "swapped":
        assert (store.manifest.status, store.manifest.rows) == ("complete", 95)
    else:
        assert old.items() <= content(folder).items()
        assert (store.manifest.status, store.manifest.rows) == ("complete", 100)
    (left,) = store.partial_runs
    killed = StepStore.open(left)
    assert killed.manifest.status == "partial"
    assert "killed" in killed.manifest.reason
    t = killed.columns()["t"].tolist()
    assert t == list(range({"open": 0, "middle": 90}.get(point, 95)))

    with ParquetSink(folder, overwrite=True) as sink:
        sink.write(made())
    store = StepStore.open(folder)
    assert store.manifest.rows == 1
    if point == "open":  # nothing was written, so nothing is kept
        assert store.partial_runs == ()
        assert len(content(folder)) == 2
        return
    assert store.partial_runs == (left,)
    assert str(left) in caplog.text
    assert StepStore.open(left).columns()["t"].tolist() == t
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        store.manifest.file,
        "partial-1",
    }


def test_what_a_kill_in_the_swap_has_left_is_cleaned_at_the_next_open(tmp_path, old):
    folder = tmp_path / "s"
    run_killed(folder, "moved")
    assert len(list(folder.glob("*.parquet"))) == 2
    (folder / ".manifest.json.abc.tmp").write_text("{")
    (folder / "notes.txt").write_text("of the user")
    sink = ParquetSink(folder, overwrite=True)
    assert len(list(folder.glob("*.parquet"))) == 1
    assert not (folder / ".manifest.json.abc.tmp").exists()
    assert (folder / "notes.txt").exists()
    sink.abandon("only looking")


def test_a_killed_run_is_not_lost_when_it_is_replaced_and_that_fails(tmp_path):
    folder = tmp_path / "s"
    run_killed(folder, "middle")  # nothing to replace: it wrote in the folder itself
    assert StepStore.open(folder).columns()["t"].size == 90
    before = content(folder)
    sink = ParquetSink(folder, overwrite=True)
    sink.write(made())
    assert before.items() <= content(folder).items()
    sink.abandon("no")
    assert StepStore.open(folder).columns()["t"].size == 90
    with ParquetSink(folder, overwrite=True) as sink:
        sink.write(made())
    assert StepStore.open(folder).manifest.rows == 1
    assert not (folder / "spool.arrows").exists()


def test_two_runs_do_not_write_to_one_folder(tmp_path, old):
    first = ParquetSink(tmp_path / "s", overwrite=True)
    first.write(made(0))
    with pytest.raises(StoreError, match="another run is writing here"):
        ParquetSink(tmp_path / "s", overwrite=True)
    first.close()
    assert StepStore.open(tmp_path / "s").manifest.rows == 1
    ParquetSink(tmp_path / "s", overwrite=True).close()
    fresh = ParquetSink(tmp_path / "t")
    with pytest.raises(StoreError, match="another run"):
        ParquetSink(tmp_path / "t")
    fresh.close()


def test_a_reader_in_the_middle_of_the_swap_gets_the_new_store(tmp_path, old, monkeypatch):
    folder, real = tmp_path / "s", StepStore.open.__globals__["_check_file"]
    calls = []

    def swap_first(*args):
        if not calls:
            calls.append(args)
            with ParquetSink(folder, overwrite=True) as sink:
                sink.write(made())
        return real(*args)

    monkeypatch.setitem(StepStore.open.__globals__, "_check_file", swap_first)
    assert StepStore.open(folder).manifest.rows == 1


def test_ctrl_c_while_closing_leaves_a_readable_partial(tmp_path, old, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(spool_module, "_write_group", interrupt)
    sink = ParquetSink(tmp_path / "s", overwrite=True)
    sink.write(made())
    with pytest.raises(KeyboardInterrupt):
        sink.close()
    monkeypatch.undo()
    assert old.items() <= content(tmp_path / "s").items()
    assert StepStore.open(tmp_path / "s" / "partial-1").columns()["t"].tolist() == [0]
    sink.close()
    ParquetSink(tmp_path / "s", overwrite=True).close()


def of_another_width(t):
    step = made(t)
    return replace(step, before=replace(step.before, features=np.zeros(5)))


def test_a_lost_block_makes_the_store_partial(tmp_path):
    with ParquetSink(tmp_path / "s", block_steps=2, observations=True) as sink:
        sink.write(made(0))
        odd = of_another_width(1)
        with pytest.raises(StoreError, match="does not fit"):
            sink.write(odd)
        sink.write(made(2))
    manifest = StepStore.open(tmp_path / "s").manifest
    assert (manifest.status, manifest.rows) == ("partial", 1)
    assert "steps were lost" in manifest.reason


def test_a_misfit_at_the_end_is_raised_and_what_fits_is_kept(tmp_path):
    sink = ParquetSink(tmp_path / "s", block_steps=2, observations=True)
    for t in range(2):
        sink.write(made(t))
    sink.write(of_another_width(2))
    with pytest.raises(StoreError, match="does not fit"):
        sink.close()
    manifest = StepStore.open(tmp_path / "s").manifest
    assert (manifest.status, manifest.rows) == ("partial", 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"failed_episodes": 7}, "cannot be read"),
        ({"episodes": 3}, "cannot be read"),
        ({"episodes": ["x"]}, "cannot be read"),
    ],
)
def test_a_manifest_whose_count_is_false_is_refused(tmp_path, old, change, message):
    path = tmp_path / "s" / "manifest.json"
    raw = json.loads(path.read_text()) | change
    if "episodes" in change:
        del raw["failed_episodes"]
    path.write_text(json.dumps(raw))
    with pytest.raises(StoreError, match=message) as caught:
        StepStore.open(tmp_path / "s")
    assert caught.value.remedy


def test_failed_episodes_are_counted_where_an_older_manifest_has_no_count(tmp_path):
    record(tmp_path / "s", episodes=("e", "e"))
    path = tmp_path / "s" / "manifest.json"
    raw = json.loads(path.read_text())
    assert raw.pop("failed_episodes") == 1
    path.write_text(json.dumps(raw))
    assert StepStore.open(tmp_path / "s").manifest.failed_episodes == 1


def test_a_manifest_of_endless_depth_is_refused(tmp_path, old):
    (tmp_path / "s" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match="cannot be read"):
        StepStore.open(tmp_path / "s")


def test_a_store_from_the_future_is_refused_or_replaced_but_never_guessed(tmp_path):
    VectorRecorder(2, folder=tmp_path / "v").close()
    path = tmp_path / "v" / "manifest.json"
    path.write_text(json.dumps({"schema_version": 99, "parts": ["a", "b"]}))
    with pytest.raises(StoreError, match="newer version") as caught:
        VectorStore.open(tmp_path / "v")
    assert "Update" in caught.value.remedy
    files = content(tmp_path / "v")
    recorder = VectorRecorder(2, folder=tmp_path / "v", overwrite=True)
    assert files.items() <= content(tmp_path / "v").items()
    recorder.close()
    assert VectorStore.open(tmp_path / "v").manifest.rows == 0


def test_a_folder_that_cannot_be_locked_is_refused(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(place_module.fcntl, "flock", unsupported)
    with pytest.raises(StoreError, match="Operation not supported"):
        ParquetSink(tmp_path / "s")
