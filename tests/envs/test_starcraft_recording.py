"""Replays are kept one episode each, never overwritten, with a trace and what they are of."""

import json
from hashlib import sha256

import pytest

from agent_gym.core import StoreError, VenueError
from agent_gym.envs.starcraft.messages import GameLost
from agent_gym.envs.starcraft.recording import new_folder
from tests.envs.starcraft_samples import Machine, seed_of


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    made.plays()
    return made


def played(machine, k=0, **changes):
    """Return a world in which a recorded battle was played out."""
    world, recorded = machine.world(**changes), machine.plays()[k]
    world.reset(seed_of(k))
    for actions in recorded["actions"]:
        world.step(dict(zip(world.roles, actions, strict=True)))
    return world, recorded


@pytest.mark.parametrize("k", [0, 1])
def test_a_replay_is_saved_with_its_metadata_and_trace(machine, tmp_path, k):
    world, recorded = played(machine, k)
    kept = world.save_replay(tmp_path / "replays", checkpoint="0123abcd")
    world.close()
    assert kept.replay.is_absolute()
    assert kept.replay.suffix == ".SC2Replay"
    assert kept.replay.parent == kept.trace.parent == kept.metadata.parent
    assert kept.replay.parent.parent == tmp_path / "replays"
    about = json.loads(kept.metadata.read_text())
    seed = seed_of(k).child("battle").as_int()
    assert about == {
        "schema": 1,
        "engine": "StarCraft II",
        "game_version": "4.10.0",
        "smac": "1.0.0",
        "pysc2": "4.0.0",
        "map": "3m",
        "seed": seed,
        "difficulty": "7",
        "reward": "dense",
        "checkpoint": "0123abcd",
        "won": k == 0,
        "episode_limit": False,
        "return": sum(recorded["rewards"]),
        "steps": len(recorded["actions"]),
        "replay": kept.replay.name,
        "replay_sha256": sha256(b"1 episodes").hexdigest(),
        "trace": "trace.json",
        "trace_sha256": sha256(kept.trace.read_bytes()).hexdigest(),
    }


def test_the_trace_holds_every_unit_at_every_moment(machine, tmp_path):
    world, recorded = played(machine)
    kept = world.save_replay(tmp_path)
    world.close()
    trace = json.loads(kept.trace.read_text())
    assert trace["actions"] == recorded["actions"]
    assert trace["rewards"] == recorded["rewards"]
    assert trace["agents"] == 3
    assert trace["units"] == {"kind": [48] * 6, "max_hp": [45.0] * 6, "max_shield": [0.0] * 6}
    assert len(trace["frames"]) == len(recorded["frames"]) == len(trace["actions"]) + 1
    for frame, told in zip(trace["frames"], recorded["frames"], strict=True):
        units = told["units"]
        assert frame["x"] == [unit["pos"]["x"] for unit in units]
        assert frame["y"] == [unit["pos"]["y"] for unit in units]
        assert frame["hp"] == [unit["health"] for unit in units]
        tags = [unit["engaged_target_tag"] for unit in units]
        assert frame["target"] == [tag - 100 if tag else -1 for tag in tags]
    aimed = {target for frame in trace["frames"] for target in frame["target"][:3]}
    assert aimed >= {-1, 3}
    assert {target for frame in trace["frames"] for target in frame["target"][3:]} == {-1}
    assert json.loads(kept.metadata.read_text())["checkpoint"] is None


def test_two_saves_in_one_second_do_not_overwrite_each_other(machine, tmp_path):
    """The game names a replay by the second; the same seed and prefix, saved four times at once."""
    kept = []
    for _ in range(2):
        world, _ = played(machine)
        kept += [world.save_replay(tmp_path / "replays") for _ in range(2)]
        world.close()
    assert len({each.replay for each in kept}) == 4
    assert all(each.replay.read_bytes() == b"1 episodes" for each in kept)
    assert len({each.metadata for each in kept}) == 4
    folders = sorted(path.name for path in (tmp_path / "replays").iterdir())
    assert [name.rpartition("-")[2] for name in folders] == ["1", "2", "3", "4"]


def test_a_replay_of_several_episodes_or_of_half_of_one_is_refused(machine, tmp_path):
    world, recorded = played(machine, fresh_client=False)
    world.save_replay(tmp_path)
    world.reset(seed_of(0))
    with pytest.raises(VenueError, match="2 begun by this client, the last is under way"):
        world.save_replay(tmp_path)
    for actions in recorded["actions"]:
        world.step(dict(zip(world.roles, actions, strict=True)))
    with pytest.raises(VenueError, match="2 begun by this client, the last is over"):
        world.save_replay(tmp_path)
    world.close()
    with pytest.raises(VenueError, match="one episode"):
        world.save_replay(tmp_path)
    assert len(list(tmp_path.glob("3m-*"))) == 1


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        ("no-replay", GameLost, "one new replay was expected in .*, found 0"),
        ("empty-replay", StoreError, "the replay is empty"),
    ],
)
def test_a_replay_that_is_not_there_has_no_metadata(machine, tmp_path, fault, error, text):
    machine.fails(fault)
    world, _ = played(machine)
    with pytest.raises(error, match=text):
        world.save_replay(tmp_path / "replays")
    world.close()
    assert not list((tmp_path / "replays").rglob("*.json"))


def test_a_replay_that_was_put_elsewhere_is_refused(machine, tmp_path):
    machine.breaks("well")
    world, _ = played(machine)
    with pytest.raises(GameLost, match="elsewhere"):
        world.save_replay(tmp_path / "replays")
    world.close()


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write here"):
        new_folder(tmp_path / "file" / "replays", "3m")
