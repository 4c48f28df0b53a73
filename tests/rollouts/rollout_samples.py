"""Small worlds and agents for the tests of this room; workers import this module by name."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

from agent_gym.agents.team import Independent
from agent_gym.core.clock import SystemClock
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    ActionSpec,
    Decision,
    EpisodeStart,
    Nanos,
    Observation,
    Outcome,
    Role,
    Step,
)
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import run_episode
from agent_gym.rollouts.sinks import MemorySink, ParquetSink

TRADER, OTHER = Role("trader"), Role("other")


class WalkConfig(Config):
    n: int = 20
    roles: tuple[str, ...] = ("trader",)
    discrete: bool = True
    nan_at: int | None = None


class Walk:
    """Pays action times the next move; the second role leaves halfway."""

    def __init__(self, config):
        self.config = config
        self.roles = tuple(Role(role) for role in config.roles)
        self.spec = ActionSpec(n=3, levels=(-1.0, 0.0, 1.0)) if config.discrete else ActionSpec()

    def start(self, role, seeds):
        return EpisodeStart(role, ("close", "move"), self.spec, seeds)

    def reset(self, seeds):
        moves = seeds.child("market").rng().normal(0.0, 0.01, self.config.n + 1)
        self._rows = np.column_stack([np.exp(np.cumsum(moves)), moves])
        self._t, self._left = 0, set()
        return dict.fromkeys(self.roles, self._see())

    def step(self, actions):
        self._t += 1
        over, outcomes = self._t == self.config.n, {}
        for role, action in actions.items():
            target = self.spec.levels[action] if self.config.discrete else action
            reward = float(target * self._rows[self._t, 1])
            reward = float("nan") if self._t == self.config.nan_at else reward
            leaves = role == OTHER and self._t == self.config.n // 2
            outcomes[role] = Outcome(self._see(), reward, terminated=leaves, truncated=over)
        return outcomes

    def _see(self):
        return Observation(Nanos(self._t * 60), self._rows[self._t].copy())


@register("world", "sample/walk", WalkConfig)
def walk(config):
    return Walk(config)


class AgentConfig(Config):
    at: int = 5
    mark: str = ""


class Dice:
    """Acts by its own generator, says something now and then, and counts what it is told."""

    name = "dice"

    def __init__(self, at=5):
        self.at = at

    def reset(self, start):
        self.rng, self.seen, self.told = start.seeds.child("dice").rng(), 0, 0
        self.discrete = start.actions.n is not None

    def act(self, obs):
        self.seen += 1
        draw = self.rng.integers(3) if self.discrete else self.rng.uniform(-1, 1)
        action = int(draw) if self.discrete else float(draw)
        if self.seen % 4 == 1:
            return Decision(action, {"mood": self.seen / 2, "age": float(self.seen)}, f"n{action}")
        return Decision(action)

    def observe(self, step):
        self.told += 1


class Faulty(Dice):
    """A Dice that does something bad in its act number ``at``."""

    def __init__(self, fault, at=5):
        super().__init__(at)
        self.fault = fault
        self.name = "faulty"

    def act(self, obs):
        if self.seen == self.at:
            self.fault()
        return super().act(obs)


def _raise():
    raise ValueError("a plain mistake")


def _hang():
    SystemClock().sleep_s(600.0)


FAULTS = {
    "error": _raise,
    "exit": lambda: os._exit(3),
    "leave": lambda: sys.exit(4),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": _hang,
}

register("agent", "sample/dice", AgentConfig)(lambda config: Dice(config.at))
for _name, _fault in FAULTS.items():
    register("agent", f"sample/{_name}", AgentConfig)(
        lambda config, fault=_fault: Faulty(fault, config.at)
    )


class PidJob(Job):
    """Says which process did it, or gives something that JSON cannot say."""

    not_json: bool = False

    def run(self):
        if self.not_json:
            return {"status": "ok", "value": float("nan")}
        return {"status": "ok", "pid": os.getpid(), "group": os.getpgid(0)}


class LoadedJob(Job):
    """Says whether its process has loaded a module."""

    module: str

    def run(self):
        return {"status": "ok", "loaded": self.module in sys.modules}


class HashJob(Job):
    """Says what a word hashes to here, and which seed of hashes it was told."""

    def run(self):
        return {"status": "ok", "hash": hash("word"), "told": os.environ["PYTHONHASHSEED"]}


class MarkJob(Job):
    """Writes a process id to a file: its own and then hangs, or its child's and then crashes."""

    path: str
    child: bool = False

    def run(self):
        child = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "600") if self.child else None
        Path(self.path).write_text(f"{child or os.getpid()}\n")
        if self.child:
            os._exit(5)
        _hang()


class SlowJob(Job):
    """Takes a while and gives a number that the seed decides."""

    seconds: float = 0.0
    seed: int = 0

    def run(self):
        SystemClock().sleep_s(self.seconds)
        return {"status": "ok", "seed": self.seed, "draw": float(Seeds(self.seed).rng().normal())}


class HeavyJob(Job):
    """Adds up a long list that many jobs share, and its own number."""

    numbers: tuple[int, ...]
    own: int

    def run(self):
        return {"status": "ok", "sum": sum(self.numbers) + self.own}


class ReadJob(Job):
    """Says what is in a file, and which file it was told to read."""

    path: Path

    def reads(self):
        return (self.path,)

    def run(self):
        return {"status": "ok", "path": str(self.path), "size": len(self.path.read_bytes())}


class NodeKiller(Job):
    """Kills the process that its worker was started for, some times, then gives its row."""

    marks: Path
    times: int

    def run(self):
        if len(list(self.marks.iterdir())) < self.times:
            (self.marks / f"{os.getpid()}").touch()
            server = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()
            os.kill(int(server[1]), signal.SIGKILL)
            _hang()
        return {"status": "ok"}


def seeds(root=0):
    return Seeds(root)


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


def content(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
