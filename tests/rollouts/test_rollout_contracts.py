import itertools

import numpy as np
import pytest
from msgspec.structs import replace
from rollout_samples import Dice, Walk, WalkConfig

from agent_gym.core.errors import AgentError, VenueError
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
from agent_gym.rollouts.contracts import check_action, check_agent, check_world, trajectory_hash

CONFIGS = [WalkConfig(), WalkConfig(discrete=False), WalkConfig(roles=("trader", "other"))]


@pytest.mark.parametrize("config", CONFIGS)
def test_good_worlds_and_agents_pass(config):
    check_world(lambda: Walk(config))
    check_agent(Dice, lambda: Walk(config))


class Spoilt(Walk):
    """A world with one planted fault."""

    ticks = itertools.count()

    def __init__(self, fault):
        super().__init__(WalkConfig(n=30))
        self.fault = fault
        self.resets = 0
        self.shared = np.zeros(2)
        if fault == "roles":
            self.roles = ("trader", "trader")

    def start(self, role, seeds):
        start = super().start(role, seeds)
        names = {"names": ("close", "close"), "count": ("close",)}.get(self.fault)
        spec = ActionSpec(n=3, levels=(0.0, 1.0)) if self.fault == "levels" else start.actions
        return EpisodeStart(role, names or start.feature_names, spec, seeds)

    def reset(self, seeds):
        self.resets += 1
        first = super().reset(seeds)
        if self.fault == "chance":
            self._rows = self._rows + next(self.ticks)
        if self.fault == "memory" and self.resets > 1:
            self._rows = self._rows * 2
        return first

    def step(self, actions):
        if self.fault == "levels":
            actions = dict.fromkeys(actions, 0)
        outcomes = super().step(actions)
        if self.fault == "reward":
            return {r: Outcome(o.observation, float("inf")) for r, o in outcomes.items()}
        return outcomes

    def _see(self):
        seen = super()._see()
        if self.fault == "shared":
            self.shared[:] = seen.features
            seen = replace(seen, features=self.shared)
        if self.fault == "nan" and self._t == 7:
            seen.features[1] = np.nan
        if self.fault == "float32":
            seen = replace(seen, features=seen.features.astype(np.float32))
        if self.fault == "time":
            seen = replace(seen, ts=Nanos(-self._t))
        if self.fault == "mask":
            seen = replace(seen, legal=np.zeros(3, dtype=bool))
        return seen


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("roles", "each once"),
        ("names", "names repeat"),
        ("count", "not as announced"),
        ("float32", "not as announced"),
        ("levels", "needs a level"),
        ("nan", "not finite"),
        ("time", "time went back"),
        ("mask", "fits no action"),
        ("reward", "reward is not finite"),
        ("shared", "changed after"),
        ("chance", "two different episodes"),
        ("memory", "second reset"),
    ],
)
def test_a_planted_fault_of_a_world_is_found(fault, message):
    with pytest.raises(VenueError, match=message):
        check_world(lambda: Spoilt(fault))


class Naughty(Dice):
    """An agent with one planted fault."""

    ticks = itertools.count()

    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.name = "" if fault == "name" else "naughty"
        self.episodes = 0

    def reset(self, start):
        super().reset(start)
        self.episodes += 1

    def act(self, obs):
        good = super().act(obs)
        if self.fault == "chance":
            return Decision(next(self.ticks) % 3)
        if self.fault == "memory":
            return Decision(self.episodes % 3)
        if self.fault == "meddles":
            obs.features[0] = 0.0
        if self.fault == "tuple":
            return (good.action, None)
        bad = {"range": 3, "float": 1.0, "bool": True, "none": None, "text": "1", "below": -1}
        signals = {"x": float("nan")} if self.fault == "signal" else None
        return Decision(bad.get(self.fault, good.action), signals)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("name", "needs a name"),
        ("chance", "two different episodes"),
        ("memory", "second reset"),
        ("meddles", "changed the observation"),
        ("tuple", "must return a Decision"),
        ("signal", "not a named number"),
        *((kind, "not an action") for kind in ("range", "float", "bool", "none", "text", "below")),
    ],
)
def test_a_planted_fault_of_an_agent_is_found(fault, message):
    with pytest.raises(AgentError, match=message):
        check_agent(lambda: Naughty(fault), lambda: Walk(WalkConfig()))


def test_an_agent_that_learns_may_differ_the_second_time():
    check_agent(lambda: Naughty("memory"), lambda: Walk(WalkConfig()), learns=True)


@pytest.mark.parametrize("action", [0.0, 1, -1.0, np.float64(0.5), np.array([0.5, -0.5])])
def test_numbers_within_bounds_are_actions(action):
    check_action(action, ActionSpec())


@pytest.mark.parametrize(
    "action", [1.1, -2, float("nan"), float("inf"), True, None, "0.5", np.array([0.0, 2.0])]
)
def test_other_things_are_not(action):
    with pytest.raises(AgentError):
        check_action(action, ActionSpec())


def test_the_legal_mask_counts():
    spec, legal = ActionSpec(n=2), np.array([True, False])
    check_action(np.int64(0), spec, legal)
    with pytest.raises(AgentError, match="illegal"):
        check_action(1, spec, legal)


def row(**changes):
    seen, then = Observation(Nanos(1), np.array([1.0])), Observation(Nanos(2), np.array([2.0]))
    step = Step("e", 0, Role("r"), "a", seen, Decision(1.0, {"x": 1.0}, "w"), Outcome(then, 0.5))
    for path, value in changes.items():
        step = changed(step, path.split("__"), value)
    return step


def changed(record, path, value):
    first, *rest = path
    inner = changed(getattr(record, first), rest, value) if rest else value
    return replace(record, **{first: inner})


CHANGES = {
    "episode": "f",
    "t": 1,
    "role": "s",
    "agent": "b",
    "before__ts": 3,
    "before__features": np.array([1.5]),
    "decision__action": 2.0,
    "decision__signals": {"x": 2.0},
    "decision__rationale": None,
    "after__reward": -0.5,
    "after__terminated": True,
    "after__truncated": True,
    "after__observation": Observation(Nanos(2), np.array([2.0, 0.0])),
}


def test_every_field_is_in_the_hash():
    same = trajectory_hash([row()])
    assert trajectory_hash([row()]) == same
    hashes = {trajectory_hash([row(**{path: value})]) for path, value in CHANGES.items()}
    assert len(hashes | {same}) == len(CHANGES) + 1
    assert trajectory_hash([row(), row(t=1)]) != trajectory_hash([row(t=1), row()])
    assert trajectory_hash([]) != same
    assert trajectory_hash([row(decision__action=np.array([1.0]))]) == same
    assert trajectory_hash([row(decision__signals={"y": 1.0})]) not in hashes | {same}
