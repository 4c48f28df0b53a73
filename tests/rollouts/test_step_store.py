import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rollout_samples import TRADER, Dice, Faulty, Walk, WalkConfig, made, record, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.core.types import Decision, Nanos, Observation
from agent_gym.rollouts import spool as spool_module
from agent_gym.rollouts.columns import SCHEMA_VERSION, StepEncoder
from agent_gym.rollouts.play import EpisodeResult, play, run_episode
from agent_gym.rollouts.sinks import ColumnSink, MemorySink, ParquetSink
from agent_gym.rollouts.store import StepStore

FLAT = ["t", "ts", "action", "reward", "terminated", "truncated"]


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
    assert store.manifest.failed_episodes == 0
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
    if fits:
        sink.write(made(1, second))
        assert sink.table().num_rows == 2
        return
    with pytest.raises(StoreError, match="does not fit the columns"):
        _write_and_close(sink, made(1, second))


def _write_and_close(sink, step):
    sink.write(step)
    sink.close()


def test_an_observation_of_another_width_is_an_error():
    sink = ColumnSink(observations=True, block_steps=1)
    sink.write(made(0))
    odd = replace(made(1), before=Observation(Nanos(1), np.zeros(5)))
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
    assert store.manifest.failed_episodes == 1
    assert json.loads((tmp_path / "s" / "manifest.json").read_text())["failed_episodes"] == 1


def stored_unchecked(folder, names):
    """Write a store as a sink without checks would."""
    spool = spool_module.Spool(folder, "steps", SCHEMA_VERSION)
    encoder = StepEncoder(spool.put, 2)
    for t, name in names:
        encoder.write(made(t, episode=name))
    encoder.flush()
    spool.finish(encoder.schema)
    return StepStore.open(folder)


@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", "a", "b", "b", "b", "a"]])
def test_mixed_episodes_are_told_and_not_guessed(tmp_path, names):
    store = stored_unchecked(tmp_path / "s", enumerate(names))
    with pytest.raises(StoreError, match="mixed"):
        list(store.episodes())


@pytest.mark.parametrize("first", [1, 2, 3])
def test_two_episodes_in_a_row_do_not_merge_when_read(tmp_path, first):
    store = stored_unchecked(tmp_path / "s", [(t, "a") for n in (first, 3) for t in range(n)])
    if first == 1:  # a step of the same moment may be that of another role
        assert [name for name, _ in store.episodes()] == ["a"]
        return
    with pytest.raises(StoreError, match="mixed"):
        list(store.episodes())


@pytest.mark.parametrize("names", [["e", "e"], ["e", "f", "e"], ["e", "".join(["", "e"])]])
@pytest.mark.parametrize("roles", [("trader",), ("trader", "other")])
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize("block_steps", [1, 7, 4096])
def test_a_second_episode_of_a_name_is_refused(tmp_path, names, roles, n, block_steps):
    config = WalkConfig(n=n, roles=roles)

    def team():
        return Independent({role: Dice() for role in Walk(config).roles})

    memory = MemorySink()
    with ParquetSink(tmp_path / "s", block_steps=block_steps) as sink:
        for name in names[:-1]:
            play(Walk(config), team(), name, seeds(), (sink, memory))
        with pytest.raises(StoreError, match="of this name is in the store already"):
            play(Walk(config), team(), names[-1], seeds(), (sink,))
    store = StepStore.open(tmp_path / "s")
    assert_holds(store.table(), memory.steps)
    assert [name for name, _ in store.episodes()] == names[:-1]


def test_a_refused_episode_is_a_failed_one(tmp_path):
    record(tmp_path / "s", episodes=("e", "f", "e", "g"))
    store = StepStore.open(tmp_path / "s")
    assert [row["status"] for row in store.manifest.episodes] == ["ok", "ok", "error", "ok"]
    assert store.manifest.episodes[2]["error"]["error"] == "StoreError"
    assert "its own name" in store.manifest.episodes[2]["error"]["remedy"]
    assert store.manifest.failed_episodes == 1
    assert [name for name, _ in store.episodes()] == ["e", "f", "g"]


def test_a_name_is_taken_even_by_an_episode_without_steps(tmp_path):
    with ParquetSink(tmp_path / "s") as sink:
        sink.finish_episode(EpisodeResult("e", status="error"))
        with pytest.raises(StoreError, match="of this name"):
            sink.write(made())
        sink.write(made(episode="f"))
    assert StepStore.open(tmp_path / "s").manifest.rows == 1


def test_a_closed_sink_takes_no_steps(tmp_path):
    sink = ParquetSink(tmp_path / "s")
    write = sink.write
    write(made(0))
    sink.close()
    for call in (write, sink.write):
        with pytest.raises(StoreError, match="closed"):
            call(made(1))
    assert StepStore.open(tmp_path / "s").manifest.rows == 1


def test_play_does_not_need_sinks_to_be_closed_in_between(tmp_path):
    sink = ColumnSink()
    for episode in ("a", "b"):
        play(Walk(WalkConfig()), Independent({TRADER: Dice()}), episode, seeds(), (sink,))
        assert sink.table().num_rows == (20 if episode == "a" else 40)


def test_a_step_that_was_refused_leaves_nothing_behind():
    sink = ColumnSink(observations=True)
    sink.write(made(0))
    bad = replace(made(1), decision=Decision("x", {"doubt": 1.0}, "because"))
    with pytest.raises(StoreError, match="does not fit the columns"):
        sink.write(replace(bad, after=replace(bad.after, terminated=True)))
    sink.write(made(1))
    table = sink.table()
    assert table.num_rows == 2
    assert table.column("signals").to_pylist() == [None, None]
    assert not any(table.column("terminated").to_pylist())


def test_a_buffer_that_is_filled_again_does_not_change_what_was_recorded():
    sink = ColumnSink(observations=True)
    action, signals, features = np.zeros(2), {"doubt": 0.0}, np.zeros(2)
    for t in range(3):
        action[:], features[:], signals["doubt"] = t, -t, float(t)
        step = replace(made(t, action), before=Observation(Nanos(t), features))
        sink.write(replace(step, decision=Decision(action, signals)))
    table = sink.table()
    assert table.column("action").to_pylist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert table.column("observation").to_pylist() == [[0.0, 0.0], [-1.0, -1.0], [-2.0, -2.0]]
    assert table.column("signals").to_pylist() == [[("doubt", float(t))] for t in range(3)]
