"""Case 31: a trajectory that cannot be what was played does not count as good."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from agent_gym.pipeline.automation.stock import CHECKS

pytestmark = pytest.mark.case(31)
N = 5


def trajectory(**changed):
    steps = {
        "t": np.arange(N),
        "observation": np.zeros((N, 3)),
        "action": np.ones(N),
        "log_prob": np.full(N, -0.5),
        "reward": np.full(N, 0.1),
    } | {name: value for name, value in changed.items() if name not in ("n_steps", "total_reward")}
    row = {"n_steps": N, "total_reward": 0.5} | {
        name: value for name, value in changed.items() if name in ("n_steps", "total_reward")
    }

    class Steps(SimpleNamespace):
        def __len__(self):
            return len(self.t)

    return SimpleNamespace(steps=Steps(**steps), row=SimpleNamespace(**row))


def spoiled(value, n=N):
    column = np.zeros(n)
    column[2] = value
    return column


POISON = {
    "a step is left out": ("steps follow each other", {"t": np.array([0, 1, 3, 4, 5])}),
    "a step comes twice": ("steps follow each other", {"t": np.array([0, 1, 1, 2, 3])}),
    "fewer than announced": ("steps follow each other", {"n_steps": 9}),
    "nothing was seen": ("observations are numbers", {"observation": None}),
    "an observation is none": (
        "observations are numbers",
        {"observation": np.tile(spoiled(np.nan), (3, 1)).T},
    ),
    "an infinite action": ("actions are numbers", {"action": spoiled(np.inf)}),
    "nobody drew": ("every decision has its log-probability", {"log_prob": spoiled(np.nan)}),
    "a made up total": ("rewards add up to the total", {"total_reward": 100.0}),
    "no total": ("rewards add up to the total", {"total_reward": None}),
    "a reward slipped in": ("rewards add up to the total", {"reward": spoiled(7.0)}),
    "a reward is none": ("rewards add up to the total", {"reward": spoiled(np.nan)}),
}


@pytest.mark.parametrize("name", POISON)
def test_poison_fails_its_check(name):
    check, changed = POISON[name]
    assert not CHECKS[check](trajectory(**changed))


def test_what_was_played_passes_every_check():
    assert all(check(trajectory()) for check in CHECKS.values())
