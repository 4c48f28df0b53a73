"""Step files that rot, vanish or lie are named, set aside and never believed."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update
from trajectory_samples import context, fill, step_of

from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database import (
    StepFile,
    Trajectory,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.play import EpisodeResult


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def two_files(store):
    """Record two trajectories into each of two files; return (path, ids) of both."""
    made = [fill(store, numbers) for numbers in ((0, 2), (4, 6))]
    return [(store.files.path(store.get(ids[0]).step_file), ids) for ids in made]


def test_a_whole_store_passes(store):
    two_files(store)
    report = store.check()
    assert report.whole
    assert (report.checked, report.damaged, report.missing, report.unknown) == (2, (), (), ())


@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_a_flipped_bit_is_named_and_set_aside(store, place):
    (bad, lost), (_, kept) = two_files(store)
    assert len(store.read(lost)) == 2
    flip(bad, place)
    with pytest.raises(StoreError, match="not what was written") as caught:
        store.steps(lost[0])
    assert caught.value.where == str(bad)
    for _ in range(2):  # what was set aside is still missed the second time
        report = store.check()
        assert report.damaged == (bad.stem,)
        assert set(report.trajectories) == set(lost)
        assert not report.whole
    assert not bad.exists()
    assert (store.files.folder / "damaged" / bad.name).exists()
    assert [store.get(made).trainable for made in (*lost, *kept)] == [False, False, True, True]
    assert store.counts().trainable == 2
    assert len(store.read(kept)) == 2
    with pytest.raises(StoreError, match="not what was written"):
        store.steps(lost[1])


def test_a_file_that_is_gone_is_missed(store):
    (gone, lost), _ = two_files(store)
    gone.unlink()
    report = store.check()
    assert report.missing == (gone.stem,)
    assert set(report.trajectories) == set(lost)


def test_a_link_in_the_place_of_a_file_is_not_followed(store, tmp_path):
    (path, ids), _ = two_files(store)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="missing"):
        store.steps(ids[0])
    assert store.check().missing == (path.stem,)


def test_a_file_that_no_row_names_is_reported_and_kept(store):
    stray = store.files.folder / "ab" / f"ab{'0' * 62}.arrow"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"left by a kill")
    report = store.check()
    assert report.whole
    assert report.unknown == (stray.stem,)
    assert stray.exists()


@pytest.mark.parametrize("name", ["../../etc/passwd", "a" * 63, "A" * 64, "", "a" * 63 + "\n"])
def test_what_is_no_hash_never_becomes_a_path(store, name):
    with pytest.raises(StoreError, match="no hash"):
        store.files.path(name)


def test_a_row_that_points_beyond_its_file_is_not_believed(store):
    (made, *_) = fill(store, [0])
    for change in ({"n_steps": 99}, {"first_row": 5}, {"first_row": 1_000_000}):
        with store.database.writing() as connection:
            chosen = update(Trajectory).where(Trajectory.trajectory_id == made)
            connection.execute(chosen.values({"n_steps": 6, "first_row": 0} | change))
        with pytest.raises(StoreError, match="not what was written"):
            store.steps(made)


def test_a_file_says_itself_what_it_holds(store):
    ids = fill(store, range(3))
    path = store.files.path(store.get(ids[0]).step_file)
    with pa.ipc.open_file(str(path)) as reader:
        said = reader.schema.metadata
        assert reader.read_all().num_rows == 18
    assert said[b"format"] == b"agent_gym.steps/1"
    assert all(made.encode() in said[b"trajectories"] for made in ids)


def test_equal_runs_have_equal_files(store, tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "other") as other:
        fill(store, range(5))
        fill(other, range(5))
        assert store.files.names() == other.files.names()
        assert len(store.files.names()) == 1


def test_ids_do_not_depend_on_what_is_recorded_beside_them(store, tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "other") as other:
        together = fill(store, range(6))
        alone = [fill(other, [n])[0] for n in (5, 3, 4, 0, 1, 2)]
    assert sorted(together) == sorted(alone)


def test_the_state_of_a_file_is_in_the_database(store):
    (bad, _), _ = two_files(store)
    flip(bad)
    store.check()
    with store.database.reading() as session:
        states = {row.file_hash: row.state for row in session.query(StepFile)}
    assert states[bad.stem] == "damaged"
    assert sorted(states.values()) == ["damaged", "whole"]


NUMBER = st.floats(allow_nan=False, width=64)
WORDS = st.none() | st.text(max_size=5)
STEP = st.tuples(
    st.lists(NUMBER, min_size=2, max_size=2),
    st.none() | st.dictionaries(st.sampled_from(("log_prob", "mood", "age")), NUMBER),
    WORDS,
    st.floats(-1e6, 1e6),
)


@pytest.fixture(scope="module")
def quick_store(tmp_path_factory):
    with TrajectoryStore.open(folder=tmp_path_factory.mktemp("quick")) as opened:
        yield opened


@settings(max_examples=25)
@given(st.lists(st.lists(STEP, min_size=1, max_size=6), min_size=1, max_size=4))
def test_whatever_is_said_comes_back(quick_store, episodes):
    with TrajectoryRecorder(quick_store) as recorder:
        for n, steps in enumerate(episodes):
            recorder.begin(context(n))
            for t, (action, said, words, reward) in enumerate(steps):
                more = {"signals": said, "rationale": words, "reward": reward}
                recorder.write(step_of(t, pa.array(action).to_numpy(), f"e{n}", **more))
            recorder.finish_episode(EpisodeResult(f"e{n}"))
        ids = [recorder.trajectory_ids(f"e{n}")["trader"] for n in range(len(episodes))]
    for (row, found), steps in zip(
        [(one.row, one.steps) for one in quick_store.read(ids)], episodes, strict=True
    ):
        assert found.action.tolist() == [action for action, *_ in steps]
        assert found.reward.tolist() == [reward for *_, reward in steps]
        for name in ("mood", "age"):
            want = [(said or {}).get(name) for _, said, *_ in steps]
            have = found.signals.get(name, [float("nan")] * len(steps))
            assert [None if value != value else value for value in have] == want
        log_probs = [(said or {}).get("log_prob", float("nan")) for _, said, *_ in steps]
        known = [abs(value) < float("inf") for value in log_probs]
        assert [value == value for value in found.log_prob] == known
        assert row.has_log_probs == all(known)
        clean = [None if words is None else words.replace("\x00", "?") for _, _, words, _ in steps]
        assert list(found.rationale) == clean
