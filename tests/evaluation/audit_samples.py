"""Agents with one planted defect each, and their healthy twins; none of them needs torch."""

from __future__ import annotations

import random  # noqa: TID251 (a planted defect)
from importlib import import_module

import numpy as np

from agent_gym.core.registry import Config
from agent_gym.core.types import Decision
from agent_gym.evaluation.audit import Subject, market_world
from tests.samples import random_bars

CHECKS = (
    "accounting",
    "clamps",
    "determinism",
    "evaluation_mode",
    "features",
    "learning",
    "look_ahead",
    "options",
    "purity",
    "saving",
    "time_order",
)
for module in CHECKS:
    import_module(f"agent_gym.evaluation.audit.{module}")

BARS = random_bars(360, 5, kind="spot")


def subject_of(factory, *, config=None, world=market_world, bars=BARS, **choices):
    return Subject(getattr(factory, "__name__", "world"), bars, factory, config, world, **choices)


class Follower:
    """Healthy: holds what rose in the last bar; keeps the last few closes."""

    name = "sample/follower"
    needs = ("close",)
    memory = 3

    def reset(self, start):
        self._column = start.column("close")
        self._seen = []
        self._spec = start.actions

    def act(self, obs):
        self._seen = [*self._seen, obs.features[self._column]][-self.memory :]
        return Decision(self._spec.encode(self.target(np.array(self._seen))))

    def observe(self, step):
        pass

    def target(self, closes):
        return 1.0 if closes[-1] > closes[0] else 0.0

    def targets(self, start, columns):
        close = columns["close"]
        firsts = [max(0, t + 1 - self.memory) for t in range(len(close))]
        return np.array([self.target(close[a : t + 1]) for t, a in enumerate(firsts)])


class LookAheadFit(Follower):
    """Scales by the mean of the whole series, test span included."""

    def targets(self, start, columns):
        close = columns["close"]
        return (close > close.mean()).astype(float)


class Peeker(Follower):
    """Is one bar off: it holds what rises in the next bar."""

    def targets(self, start, columns):
        close = columns["close"]
        return (np.append(close[1:], close[-1]) > close).astype(float)


class SparsePeeker(Follower):
    """Knows the next bar, and acts on it only if it moves much."""

    ahead = True

    def targets(self, start, columns):
        moves = columns["close"][1:] / columns["close"][:-1] - 1.0
        moves = np.append(moves, 0.0) if self.ahead else np.append(0.0, moves)
        return self.chosen(moves)

    def target(self, closes):
        return float(self.chosen(closes[-1] / closes[-2] - 1.0)) if len(closes) > 1 else 0.0

    def chosen(self, moves):
        size = np.abs(moves)
        return np.where((size > 0.0132) & (size < 0.2), np.sign(moves), 0.0)


class SparseFollower(SparsePeeker):
    """Healthy: the same of the last bar."""

    ahead = False


class TwoMinds(Follower):
    """Decides causally, but otherwise in a series than step by step."""

    def targets(self, start, columns):
        return 1.0 - super().targets(start, columns)


class BackDoor(Follower):
    """Is shown nothing of the future, but its world left the tape within reach."""

    tape = None

    def act(self, obs):
        now = obs.features[self._column]
        rows = BackDoor.tape
        later = rows.close[rows.ts + rows.period_ns > obs.ts]
        return Decision(1.0 if later.size and later[0] > now else 0.0)

    targets = None


def taped_world(bars):
    BackDoor.tape = bars
    return market_world(bars)


class GlobalDice(Follower):
    """Throws the dice that everybody throws."""

    targets = None

    def act(self, obs):
        return Decision(float(np.random.random() < 0.5))  # noqa: NPY002


class PlainGlobalDice(GlobalDice):
    def act(self, obs):
        return Decision(random.random())


class SeededDice(Follower):
    """Healthy: throws dice of its own."""

    targets = None

    def reset(self, start):
        self._rng = start.seeds.child("dice").rng()

    def act(self, obs):
        return Decision(float(self._rng.random() < 0.5))


class Address(Follower):
    """Decides by where an object happens to lie."""

    targets = None

    def act(self, obs):
        return Decision(float(np.frombuffer(_fresh(), dtype=np.uint8)[0] % 2))


def _fresh():
    with open("/dev/urandom", "rb") as source:  # noqa: PTH123
        return source.read(1)


class HashOrder(Follower):
    """Weighs columns in the order in which a set gives them."""

    targets = None

    def reset(self, start):
        super().reset(start)
        self._order = [float(len(name)) for name in set(start.feature_names)]

    def act(self, obs):
        weights = np.array(self._order)
        return Decision(float(np.tanh(weights @ np.arange(weights.size) / 1e4)))


class SortedOrder(HashOrder):
    """Healthy: sorts first."""

    def reset(self, start):
        super().reset(start)
        self._order = sorted(self._order)


class SharedMemory(Follower):
    """Keeps its memory in the class."""

    seen: list[float] = []  # noqa: RUF012 (the defect)

    def reset(self, start):
        super().reset(start)
        self.seen.clear()

    def act(self, obs):
        self.seen.append(obs.features[self._column])
        return Decision(1.0 if self.seen[-1] > self.seen[max(0, len(self.seen) - 3)] else 0.0)


class KeepsCounting(Follower):
    """A coin that depends on how often act() was ever called."""

    targets = None
    calls = 0

    def act(self, obs):
        self.calls += 1
        return Decision(1.0 if self.calls % 7 < 3 else 0.0)


class CountsAnew(KeepsCounting):
    """Healthy: the count belongs to the episode."""

    def reset(self, start):
        super().reset(start)
        self.calls = 0


class Scribbler(Follower):
    """Scales the observation in place."""

    def act(self, obs):
        obs.features[self._column] /= 1.0001
        return super().act(obs)


class OneArray(Follower):
    """Hands out the same array with every decision."""

    targets = None

    def reset(self, start):
        super().reset(start)
        self._action = np.zeros(1)

    def act(self, obs):
        self._action[0] = super().act(obs).action
        return Decision(self._action)


class NewArray(OneArray):
    """Healthy: a new array each time."""

    def act(self, obs):
        return Decision(super().act(obs).action.copy())


class Greedy(Follower):
    """Takes the last column, whatever it is."""

    targets = None

    def act(self, obs):
        return Decision(1.0 if obs.features[-1] > 0.0 else -1.0)


class FixedWidth(Follower):
    """Healthy: takes all columns, and only those it was made for."""

    targets = None
    width = None

    def reset(self, start):
        if len(start.feature_names) != 47:
            raise ValueError(f"47 columns, not {len(start.feature_names)}")

    def act(self, obs):
        return Decision(float(np.tanh(obs.features[:5] @ np.ones(5) / 1e9)))


class VolumeReader(Follower):
    """Trades on volume, which in some markets tells of the bar before."""

    targets = None

    def reset(self, start):
        self._column = start.column("volume")

    def act(self, obs):
        return Decision(1.0 if obs.features[self._column] > 1e6 else -1.0)


class OptionsConfig(Config):
    size: float = 1.0
    bonus: float = 0.5
    with_bonus: bool = False
    memory: int = 3


class Optioned(Follower):
    """Healthy: every option acts, the bonus only if it is switched on."""

    targets = None

    def __init__(self, config):
        self.config = config
        self.memory = config.memory

    def target(self, closes):
        bonus = self.config.bonus if self.config.with_bonus else 0.0
        return self.config.size * super().target(closes) * (0.5 + 0.5 * bonus)


class DeadOption(Optioned):
    """Takes a memory and uses another."""

    def __init__(self, config):
        self.config = config
        self.memory = 3


class MaskIgnorer(Follower):
    """Reads the book where there is none."""

    targets = None

    def reset(self, start):
        self._columns = [start.column(n) for n in ("book_imbalance", "return_z")]

    def act(self, obs):
        return Decision(float(np.tanh(obs.features[self._columns].sum())))


class MaskHonourer(MaskIgnorer):
    """Healthy: multiplies by the mask."""

    def reset(self, start):
        super().reset(start)
        self._known = [start.column(n) for n in ("book_imbalance_known", "return_z_known")]

    def act(self, obs):
        known = obs.features[self._columns] * obs.features[self._known]
        return Decision(float(np.tanh(known.sum())))


class ConstantInside(Follower):
    """Asks for volume and then looks it up under a name that does not exist."""

    needs = ("close", "volume")

    def targets(self, start, columns):
        volume = {"close": columns["close"]}.get("Volume", 1000.0)
        return super().targets(start, columns) * (volume > 0.0)


class Raiser(Follower):
    """Cannot be played."""

    def act(self, obs):
        raise ValueError("no price")
