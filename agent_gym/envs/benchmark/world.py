"""``BenchmarkWorld``: one agent on one snapshot; ticks are steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Outcome,
    Role,
)
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.features import Sheet, feature_names
from agent_gym.envs.benchmark.floor import Floor
from agent_gym.envs.benchmark.words import describe
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.types import Snapshot

TRADER = Role("trader")


class BenchmarkWorld:
    """Implements SoloWorld on a snapshot.

    The action holds one target for each market, a signed share of its budget. A market trades when
    its target differs from the one before. An action that is not such an array is invalid: it is
    counted, and what is held is kept. The reward is the change of equity over the starting cash.
    """

    roles = (TRADER,)

    def __init__(self, config: BenchmarkWorldConfig, snapshot: Snapshot | None = None) -> None:
        self.config = config
        self.snapshot = load_snapshot(config.snapshot) if snapshot is None else snapshot
        self.floor = Floor(self.snapshot, config)
        self._sheet = Sheet(self.snapshot)
        self._names = feature_names(self.snapshot)
        self._over = True

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe the role before the episode."""
        if role != TRADER:
            raise AgentError("no such role trades here", found=role, expected=TRADER)
        spec = ActionSpec(n=None, low=-1.0, high=1.0)
        return EpisodeStart(role, self._names, spec, seeds, Nanos(self.snapshot.tick_ns))

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Go back to tick 0; a snapshot is a recording, so the seeds change nothing."""
        self.floor.reset()
        self._sheet.reset()
        self._over = False
        self._equity = self.floor.equity()
        self._targets: list[float] = [0.0] * self.floor.n_markets
        self._counted = 0
        return {TRADER: self._observation()}

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let the trader act and play the next tick."""
        if set(actions) != {TRADER}:
            raise AgentError("one role trades here", found=sorted(actions), expected=TRADER)
        return {TRADER: self.advance(actions[TRADER])}

    def advance(self, action: Action) -> Outcome:
        """Trade to the targets and play the next tick."""
        if self._over:
            raise VenueError("the episode is over", remedy="Call reset() for a new one")
        targets = self._read(action)
        if targets is not None:
            self._trade(targets)
        return self.end_tick()

    def end_tick(self) -> Outcome:
        """Play the next tick with the orders as they are; for the runner, who owns the clock."""
        if self._over:
            raise VenueError("the episode is over", remedy="Call reset() for a new one")
        floor = self.floor
        floor.advance()
        before, self._equity = self._equity, floor.equity()
        self._over = floor.finished
        info: dict[str, Any] | None = None
        if floor.invalid != self._counted:
            info = {"invalid": floor.invalid - self._counted}
            self._counted = floor.invalid
        reward = (self._equity - before) / self.config.cash
        return Outcome(self._observation(), reward, self._over, False, info)

    @property
    def equity(self) -> float:
        """Return the equity after the last tick."""
        return self._equity

    def _observation(self) -> Observation:
        floor = self.floor
        row = self._sheet.observe(floor, self._equity)
        text = describe(floor, self._equity) if self.config.text else None
        return Observation(self.snapshot.time(floor.tick), row, None, text)

    def _read(self, action: Any) -> list[float] | None:
        """Return the targets, within -1 and 1; None if the action is not an array of numbers."""
        n = self.floor.n_markets
        try:
            wished: FloatArray = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            self.floor.refuse("set_targets", f"not an array of {n} numbers")
            return None
        if wished.shape != (n,) or not np.isfinite(wished).all():
            found = f"shape {wished.shape}" if wished.shape != (n,) else "a number is not finite"
            self.floor.refuse("set_targets", f"expected {n} finite numbers; {found}")
            return None
        targets: list[float] = np.clip(wished, -1.0, 1.0).tolist()
        return targets

    def _trade(self, targets: list[float]) -> None:
        floor, last = self.floor, self._targets
        for m, target in enumerate(targets):
            if target != last[m] and floor.is_open(m):
                floor.set_target(m, target)
        self._targets = targets


@register("world", "benchmark", BenchmarkWorldConfig)
def benchmark_world(config: BenchmarkWorldConfig) -> BenchmarkWorld:
    """Build the world of a benchmark snapshot."""
    return BenchmarkWorld(config)
