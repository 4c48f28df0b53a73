"""Workers that die, hang, lie or babble: a clear error, and nothing is left running."""

import gc
import os
import subprocess
import sys

import pytest

from agent_gym.core import ConfigError, Seeds, VenueError
from agent_gym.envs.starcraft.config import StarCraftConfig
from agent_gym.envs.starcraft.examination import GAME_VARIABLE, PYTHON_VARIABLE
from agent_gym.envs.starcraft.messages import GameLost
from agent_gym.envs.starcraft.world import StarCraftWorld
from tests.envs.starcraft_samples import Machine, is_gone, seed_of, wait_until, wait_until_gone

STOP = 1
OWNER = """
import sys
from pathlib import Path
from agent_gym.core import Seeds
from agent_gym.envs.starcraft.config import StarCraftConfig
from agent_gym.envs.starcraft.world import StarCraftWorld
world = StarCraftWorld(StarCraftConfig(python=Path(sys.argv[1]), game=Path(sys.argv[2])))
world.reset(Seeds(0))
print(world.worker_pid, flush=True)
world.step(dict.fromkeys(world.roles, 1))
"""


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    made.plays()
    return made


def stop_all(world):
    return world.step(dict.fromkeys(world.roles, STOP))


def begun(machine, **changes):
    world = machine.world(**changes)
    world.reset(seed_of(0))
    return world


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("die", r"the worker died \(at step; found exit status 3; .*the floor gave way"),
        ("killed", r"the worker died \(at step; found signal 9"),
        ("garbage", r"an answer that is none .*not json"),
        ("list", "Expected `object`, got `array`"),
        ("two-lines", "trailing characters"),
        ("nan", "invalid character"),
        ("unknown-field", "unknown field `more`"),
        ("text-reward", r"Expected `float`, got `str` - at `\$.reward`"),
        ("other-id", "answers another question .*found 99"),
        ("flood", "says too much"),
    ],
)
def test_a_worker_that_breaks_in_mid_episode_is_ended_and_named(machine, way, text):
    machine.breaks(way)
    world = begun(machine)
    pid = world.worker_pid
    with pytest.raises(GameLost, match=text):
        stop_all(world)
    assert is_gone(pid)
    assert world.worker_pid is None
    with pytest.raises(VenueError, match="over"):
        stop_all(world)


def test_after_a_loss_the_next_episode_starts_a_new_worker(machine):
    machine.breaks("die")
    world = begun(machine)
    with pytest.raises(GameLost):
        stop_all(world)
    machine.breaks("well")
    world.reset(seed_of(0))
    assert not stop_all(world)[world.roles[0]].terminated
    world.close()


def test_a_worker_that_hangs_is_killed_with_the_game(machine):
    machine.breaks("hang-with-child")
    world = begun(machine, step_timeout_s=0.5)
    pid = world.worker_pid
    with pytest.raises(GameLost, match=r"did not answer in time .*expected an answer in 0.5 s"):
        stop_all(world)
    wait_until_gone(pid, *machine.clients)


def test_another_protocol_is_refused(machine):
    machine.breaks("wrong-protocol")
    world = machine.world()
    with pytest.raises(GameLost, match=r"another protocol \(found 2; expected 1\)"):
        world.reset(Seeds(0))
    assert world.worker_pid is None


@pytest.mark.parametrize(
    ("what", "found", "expected"),
    [("observation", 31, 30), ("state", 49, 48), ("actions", 10, 9), ("limit", 61, 60)],
)
def test_a_game_of_other_sizes_is_refused(machine, what, found, expected):
    machine.breaks(f"wrong-size:{what}")
    world = machine.world()
    text = rf"sizes of the contract \(at map 3m; found {what} {found}; expected {what} {expected}\)"
    with pytest.raises(VenueError, match=text):
        world.reset(Seeds(0))
    assert world.worker_pid is None


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("dead-acts", "agent 0 has 0 hit points"),
        ("dead-sees", "agent 0 is dead and sees"),
        ("short-row", "inhomogeneous"),
        ("few-units", "5 units"),
    ],
)
def test_what_breaks_the_contract_is_refused(machine, way, text):
    machine.breaks(way)
    world = machine.world()
    with pytest.raises(VenueError, match=rf"breaks the contract .*{text}"):
        world.reset(Seeds(0))
    assert world.worker_pid is None


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("lost:2", "the client of the game was lost"),
        ("raise:2", "RuntimeError: the socket closed"),
    ],
)
def test_a_game_that_breaks_is_an_error_and_not_a_lost_battle(machine, fault, text):
    machine.fails(fault)
    world = begun(machine)
    stop_all(world)
    with pytest.raises(GameLost, match=text):
        stop_all(world)
    wait_until_gone(*machine.clients)


def test_a_game_that_hangs_is_killed(machine):
    machine.fails("hang:1")
    world = begun(machine, step_timeout_s=0.5)
    pid = world.worker_pid
    with pytest.raises(GameLost, match="in time"):
        stop_all(world)
    wait_until_gone(pid, *machine.clients)


def test_closing_ends_the_game_and_may_be_repeated(machine):
    world = begun(machine)
    pid = world.worker_pid
    assert not is_gone(pid)
    assert not is_gone(machine.clients[0])
    world.close()
    world.close()
    wait_until_gone(pid, *machine.clients)
    with pytest.raises(VenueError, match="over"):
        stop_all(world)


def test_a_world_that_is_forgotten_leaves_nothing(machine):
    world = begun(machine)
    pid = world.worker_pid
    del world
    gc.collect()
    wait_until_gone(pid, *machine.clients)


def test_when_this_side_is_killed_the_worker_ends_the_game(machine, tmp_path):
    """Nobody is left to kill the group; the worker does it, even while it waits for the game."""
    machine.fails("hang:1")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(machine.python), str(machine.game)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    worker = int(owner.stdout.readline())
    assert not is_gone(worker)
    assert not is_gone(machine.clients[0])
    wait_until((machine.game / "hangs").exists)
    owner.kill()
    owner.communicate()
    wait_until_gone(worker, *machine.clients)


def test_a_forked_child_does_not_end_the_game_of_its_parent(machine):
    world = begun(machine)
    child = os.fork()
    if child == 0:
        world._link._end()
        os._exit(0)
    os.waitpid(child, 0)
    assert not stop_all(world)[world.roles[0]].terminated
    world.close()


def test_what_is_missing_is_named_before_anything_starts(machine, monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    monkeypatch.setenv(GAME_VARIABLE, str(machine.game))
    with pytest.raises(ConfigError, match=f"{PYTHON_VARIABLE} is not set.*venv"):
        StarCraftWorld(StarCraftConfig())
    (machine.game / "Maps" / "SMAC_Maps" / "3m.SC2Map").unlink()
    with pytest.raises(ConfigError, match=r"starcraft maps; found not in .*: 3m.*Copy the folder"):
        machine.world()
    machine.world(map="8m")
    (machine.game / "Versions" / "Base75689" / "SC2_x64").unlink()
    with pytest.raises(ConfigError, match="starcraft executable"):
        machine.world(map="8m")


def test_an_interpreter_without_smac_says_so(machine):
    (machine.library / "smac" / "env" / "__init__.py").write_text("raise TypeError('Descriptors')")
    world = machine.world()
    with pytest.raises(
        ConfigError, match=r"StarCraft2Env .*cannot be imported \(TypeError: Descriptors"
    ):
        world.reset(Seeds(0))


def test_an_interpreter_that_is_none_says_so(machine):
    machine.python.write_text("no program")
    with pytest.raises(ConfigError, match="cannot be started"):
        machine.world().reset(Seeds(0))
