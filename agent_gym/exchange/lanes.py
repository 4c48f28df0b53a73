"""Doors 2 and 3: accounts that step through a tape side by side, in memory that the kernel owns.

The arrays that ``Lanes`` hands out are its own buffers: the next step overwrites them. Whoever
wants to keep one copies it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, ConfigError, StoreError
from agent_gym.core.kernels import direct
from agent_gym.core.types import FloatArray
from agent_gym.exchange.costs import AccountRules, Costs, make_terms
from agent_gym.exchange.kernel import lanes as kernel
from agent_gym.exchange.kernel.layout import CONTEXT, LANE, PRIVATE_FEATURES, aligned, padded_rows
from agent_gym.exchange.tape import Tape


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of the tape an episode covers.

    ``first`` is the earliest bar at whose close a decision is made; ``bars`` the number of steps
    (None: to the end of the tape); ``at_random`` draws the start anew for each episode.
    """

    first: int = 0
    bars: int | None = None
    at_random: bool = False


@dataclass(frozen=True, slots=True)
class LaneSetup:
    """How lanes act, what they pay and earn, and which bars they cover.

    ``levels`` are the targets of discrete actions; without them the action is the target itself.
    Lanes that are ``together`` share their episode windows; others draw their own. Without
    ``autoreset`` a lane that ended stays as it is until ``restart``.
    """

    costs: Costs
    rules: AccountRules
    window: Window = Window()
    levels: tuple[float, ...] | None = None
    linear_reward: bool = False
    sizing_units: bool = False
    threads: int = 1
    lane_offset: int = 0
    together: bool = False
    autoreset: bool = True


class Lanes:
    """N accounts on one tape, stepped by one compiled call.

    The ``*_slots`` are memory views of the buffers: reading one number through them costs half of
    what an array takes.
    """

    def __init__(self, tape: Tape, features: NDArray[Any], n: int, setup: LaneSetup) -> None:
        _check(tape, features, n, setup.window)
        tape.check_fits(setup.costs)
        self.tape, self.n, self.setup = tape, n, setup
        self._features = padded_rows(features)
        self._terms = make_terms(setup.costs, setup.rules, tape.bars.instrument)
        self._levels = np.array(setup.levels or (0.0,), dtype=np.float64)
        self._queue = np.full((n, setup.costs.latency_bars + 1), np.nan)
        self.state: NDArray[Any] = aligned((n,), LANE)
        width = features.shape[1] + len(PRIVATE_FEATURES)
        self.obs: NDArray[Any] = aligned((n, width), features.dtype)
        self.rewards: FloatArray = np.zeros(n)
        self._worth, self._gains = np.zeros(n), np.zeros(n)
        self.terminated: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
        self.truncated: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
        self.actions: NDArray[Any] = np.zeros(n, np.float64 if setup.levels is None else np.int64)
        self.action_slots: Any = memoryview(self.actions)  # type: ignore[arg-type]
        self.reward_slots: Any = memoryview(self.rewards)  # type: ignore[arg-type]
        self.terminated_slots: Any = memoryview(self.terminated)  # type: ignore[arg-type]
        self.truncated_slots: Any = memoryview(self.truncated)  # type: ignore[arg-type]
        self._context = np.zeros(1, dtype=CONTEXT)
        for name, value in (self._addresses() | self._values(features)).items():
            self._context[name] = value
        self.address: int = self._context.ctypes.data
        self.margin = setup.rules.on_margin(tape.bars.instrument)
        self.kernel_step = direct(kernel.step_margin if self.margin else kernel.step_spot)
        self._threaded = _threaded_step(self.margin) if setup.threads > 1 else None

    def _addresses(self) -> dict[str, Any]:
        buffers = {
            "bars": self.tape.rows,
            "features": self._features,
            "lanes": self.state,
            "actions": self.actions,
            "levels": self._levels,
            "queue": self._queue,
            "obs": self.obs,
            "rewards": self.rewards,
            "worth": self._worth,
            "gains": self._gains,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }
        return {name: buffer.ctypes.data for name, buffer in buffers.items()}

    def _values(self, features: NDArray[Any]) -> dict[str, Any]:
        setup, window = self.setup, self.setup.window
        rest = len(self.tape) - 1 - window.first
        return {
            "n_bars": len(self.tape),
            "n_features": features.shape[1],
            "stride": self._features.strides[0],
            "wide": int(features.dtype == np.float64),
            "n_levels": 0 if setup.levels is None else len(setup.levels),
            "latency": setup.costs.latency_bars,
            "linear_reward": int(setup.linear_reward),
            "first": window.first,
            "episode_bars": rest if window.bars is None else window.bars,
            "random_start": int(window.at_random),
            "lane_offset": setup.lane_offset,
            "lane_step": int(not setup.together),
            "sizing_units": int(setup.sizing_units),
            "autoreset": int(setup.autoreset),
            "cash": setup.rules.cash,
            "ruin": setup.rules.ruin * setup.rules.cash,
            "terms": self._terms,
        }

    @property
    def episode_bars(self) -> int:
        """Return how many bars an episode covers if nothing ends it early."""
        return int(self._context["episode_bars"][0])

    def seed(self, seed: int) -> None:
        """Start the count of episodes anew under a seed."""
        self._context["seed"] = seed
        self.state["episode"] = 0

    def restart(self, lo: int = 0, hi: int | None = None) -> None:
        """Open a new episode in lanes lo..hi."""
        kernel.restart(self.address, lo, self.n if hi is None else hi)

    def restart_as(self, lane: int, seed: int) -> None:
        """Open in one lane the episode that a single lane begins under this seed.

        The lane's own count of episodes goes on as if this one had not been.
        """
        own = {name: self._context[name][0] for name in ("seed", "lane_step", "lane_offset")}
        number = self.state["episode"][lane]
        self._context["seed"], self._context["lane_step"], self._context["lane_offset"] = seed, 0, 0
        self.state["episode"][lane] = 0
        self.restart(lane, lane + 1)
        self.state["episode"][lane] = number
        for name, value in own.items():
            self._context[name] = value

    def kept(self) -> dict[str, NDArray[Any]]:
        """Return copies of all that decides how the lanes go on, by name."""
        return {name: buffer.copy() for name, buffer in self._own().items()}

    def put_back(self, kept: Mapping[str, NDArray[Any]]) -> None:
        """Write what ``kept`` returned into the buffers; lanes of another shape are refused."""
        for name, buffer in self._own().items():
            found = kept.get(name)
            if found is None or found.shape != buffer.shape or found.dtype != buffer.dtype:
                raise StoreError(
                    "the state is not one of these lanes",
                    where=name,
                    found=None if found is None else f"{found.dtype}{found.shape}",
                    expected=f"{buffer.dtype}{buffer.shape}",
                )
        for name, buffer in self._own().items():
            buffer[...] = kept[name]

    def _own(self) -> dict[str, NDArray[Any]]:
        return {
            "seed": self._context["seed"],
            **{f"lane_{name}": self.state[name] for name in LANE.names or ()},
            "queue": self._queue,
            "obs": self.obs,
            "rewards": self.rewards,
            "worth": self._worth,
            "gains": self._gains,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "actions": self.actions,
        }

    def step(self) -> None:
        """Apply ``actions``: ended lanes restart, the others trade through their next bar."""
        if self._threaded is not None:
            events = self._threaded(self.address, self.n, self.setup.threads)
        else:
            events = self.kernel_step(self.address, 0, self.n)
        if events >= kernel.INVALID:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Raise the error that names the first illegal action."""
        limit = len(self._levels)
        expected = "a finite number" if self.setup.levels is None else f"0 to {limit - 1}"
        ok = (
            np.isfinite(self.actions)
            if self.setup.levels is None
            else (self.actions >= 0) & (self.actions < limit)
        )
        lane = int(np.argmax(~ok))
        raise AgentError(
            "an action is not legal",
            where=f"lane {lane}",
            found=self.actions[lane],
            expected=expected,
        )


def _check(tape: Tape, features: NDArray[Any], n: int, window: Window) -> None:
    if n < 1:
        raise ConfigError("there must be at least one lane", found=n)
    if features.dtype not in (np.float32, np.float64) or len(features) != len(tape):
        raise ConfigError(
            "features do not fit the tape",
            found=f"{features.dtype} {features.shape}",
            expected=f"float32 or float64, {len(tape)} rows",
        )
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise ConfigError(
            "a feature is not a finite number", where=f"row {row + 1}, column {column}"
        )
    need = window.first + (1 if window.bars is None else window.bars)
    if window.first < 0 or (window.bars is not None and window.bars < 1) or need >= len(tape):
        raise ConfigError(
            "the episode window does not fit the series",
            found=f"first bar {window.first}, {window.bars or 'all'} bars",
            expected=f"less than {len(tape)} bars in all",
            remedy="Shorten episode_bars or give more bars",
        )


def _threaded_step(margin: bool) -> Callable[[int, int, int], int]:
    """Return the parallel door; passive waiting must be asked for before OpenMP starts."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    threads = import_module("agent_gym.exchange.kernel.threads")
    step: Callable[[int, int, int], int] = (
        threads.step_margin_threads if margin else threads.step_spot_threads
    )
    return step
