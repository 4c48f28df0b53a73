"""A machine that seems to have StarCraft II: a game folder, maps, and an interpreter with SMAC.

Nothing here is the game. Battles are recorded from our own engine and played back.
"""

import json
import shutil
import sys
from functools import cache
from pathlib import Path

from agent_gym.core import Seeds, SystemClock
from agent_gym.envs.battle import BattleConfig, BattleWorld, script
from agent_gym.envs.starcraft.config import StarCraftConfig
from agent_gym.envs.starcraft.examination import MAP_NAMES
from agent_gym.envs.starcraft.world import StarCraftWorld

HERE = Path(__file__).parent
CLIENT = "#!/bin/sh\nexec sleep 600\n"


def record_battle(map_name, seeds, decide):
    """Return a battle of our own engine as the stand-in plays it back."""
    world = BattleWorld(BattleConfig(map=map_name))
    seen = world.reset(seeds)
    frames, rewards, actions, over = [frame_of(world)], [], [], False
    info = {}
    while not over:
        chosen = decide(world, seen)
        out = world.step(chosen)
        first = out[world.roles[0]]
        over, info = first.terminated, first.info
        seen = {role: outcome.observation for role, outcome in out.items()}
        frames.append(frame_of(world))
        rewards.append(first.reward)
        actions.append([chosen[role] for role in world.roles])
    limit = len(rewards) == world.batch.map.step_limit and not info["won"]
    return {
        "frames": frames,
        "rewards": rewards,
        "actions": actions,
        "won": info["won"],
        "limit": limit,
    }


def frame_of(world):
    batch = world.batch
    observations, state, legal = (part[0].tolist() for part in batch.senses)
    contract = batch.contract
    return {
        "seen": [as_smac(row, contract.observation) for row in observations],
        "state": as_smac(state, contract.state),
        "legal": [[int(may) for may in row] for row in legal],
        "units": [unit_of(batch, u) for u in range(len(batch.map.units))],
    }


def as_smac(row, names):
    """Return a row in SMAC's order: of the kinds of enemies, zealots come first."""
    shown = dict(zip(names, row, strict=True))
    swapped = {"stalker": "zealot", "zealot": "stalker"}
    out = []
    for name in names:
        stem, is_, kind = name.rpartition("_is_")
        ours = name if not is_ or not name.startswith("enemy_") else f"{stem}_is_{swapped[kind]}"
        out.append(shown[ours])
    return out


def unit_of(batch, u):
    unit, fact = batch.units[0, u], batch.facts[u]
    told = unit["target"] if u < batch.n_agents else -1  # the game keeps an enemy's to itself
    return {
        "tag": 100 + u,
        "unit_type": 48 + int(fact["kind"]),
        "pos": {"x": float(unit["x"]), "y": float(unit["y"])},
        "health": float(unit["hp"]),
        "health_max": float(fact["max_hp"]),
        "shield": float(unit["shield"]),
        "shield_max": float(fact["max_shield"]),
        "engaged_target_tag": int(100 + told) if told >= 0 else 0,
    }


def by_script(name):
    decide = script(name, Seeds(0))
    return lambda world, seen: dict(zip(world.roles, decide(world.batch)[0].tolist(), strict=True))


def standing(world, seen):
    return {role: 1 if seen[role].legal[1] else 0 for role in world.roles}


@cache
def battles(map_name, how="nearest"):
    """Return what a stand-in of this map plays: one win and one defeat, or a long wait."""
    world = BattleWorld(BattleConfig(map=map_name))
    seen, state, actions = world.batch.contract.widths
    sizes = {
        "n_agents": world.batch.n_agents,
        "n_enemies": len(world.batch.map.enemies),
        "n_actions": actions,
        "obs_shape": seen,
        "state_shape": state,
        "episode_limit": world.batch.map.step_limit,
    }
    if how == "wait":
        return {"sizes": sizes, "episodes": [record_battle(map_name, Seeds(0), standing)]}
    ends = {}
    for seed in range(100):
        episode = record_battle(map_name, Seeds(seed), by_script(how)) | {"seed": seed}
        ends.setdefault(episode["won"], episode)
        if len(ends) == 2:
            break
    return {"sizes": sizes, "episodes": [ends[True], ends[False]]}


class Machine:
    """A folder in which a game and an interpreter seem to be installed."""

    def __init__(self, place):
        self.game, self.python = place / "StarCraftII", place / "python"
        binary = self.game / "Versions" / "Base75689" / "SC2_x64"
        write_program(binary, CLIENT)
        maps = self.game / "Maps" / "SMAC_Maps"
        maps.mkdir(parents=True)
        for name in MAP_NAMES:
            (maps / f"{name}.SC2Map").write_bytes(b"map")
        self.library = place / "site-packages"
        package = self.library / "smac" / "env"
        package.mkdir(parents=True)
        (self.library / "smac" / "__init__.py").touch()
        shutil.copy(HERE / "starcraft_fake_game.py", package / "__init__.py")
        for name, version in (("SMAC", "1.0.0"), ("PySC2", "4.0.0")):
            about = self.library / f"{name}-{version}.dist-info" / "METADATA"
            about.parent.mkdir()
            about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        paths = f"PYTHONPATH={self.library} exec {sys.executable}"
        write_program(self.python, f'#!/bin/sh\n{paths} "$@"\n')

    def plays(self, map_name="3m", how="nearest", episodes=None):
        recorded = battles(map_name, how)
        if episodes is not None:
            recorded = recorded | {"episodes": episodes}
        (self.game / f"{map_name}.json").write_text(json.dumps(recorded))
        return recorded["episodes"]

    def breaks(self, way):
        """Put a worker there that speaks the protocol, up to a point."""
        (self.game / "way").write_text(way)
        script = HERE / "starcraft_fake_worker.py"
        write_program(self.python, f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')

    def fails(self, fault):
        (self.game / "fault").write_text(fault)

    def config(self, **changes):
        return StarCraftConfig(python=self.python, game=self.game, **changes)

    def world(self, **changes):
        return StarCraftWorld(self.config(**changes))

    @property
    def clients(self):
        """Return the processes that stand for the game."""
        return [int(line) for line in (self.game / "clients").read_text().split()]


def write_program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def seed_of(episode):
    """Return seeds under which a stand-in with two episodes plays this one."""
    return next(
        seeds for seeds in map(Seeds, range(99)) if seeds.child("battle").as_int() % 2 == episode
    )


def is_gone(pid):
    """Return whether a process has ended; one that nobody has fetched yet has, too."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return text.rpartition(")")[2].split()[0] == "Z"


def wait_until(holds, most_s=20.0):
    clock = SystemClock()
    until = clock.monotonic_s() + most_s
    while not holds():
        assert clock.monotonic_s() < until, "it did not come to pass"
        clock.sleep_s(0.01)


def wait_until_gone(*pids):
    wait_until(lambda: all(map(is_gone, pids)))
