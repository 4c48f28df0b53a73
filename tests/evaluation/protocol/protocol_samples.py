"""Agents with a past, a leak or a memory, registered under test names for tests of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from agent_gym.core import registry
from agent_gym.core.registry import Config, Entry, Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.markets.known import draw

NULL = Ref(use="known/n1", params={"n_bars": 1_600})


class Nothing(Config):
    """Nothing to set."""


class MarketConfig(Config):
    """Which market the leaking agent draws for itself."""

    market: Ref = NULL


class Clairvoyant:
    """Draws the market anew from its own seed and so knows the next bar."""

    name = "test/clairvoyant"
    needs = ("close",)

    def __init__(self, config: MarketConfig) -> None:
        self._market = config.market

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        close = draw(self._market, Seeds(start.seeds.root)).bars.close
        ahead = np.sign(np.diff(close, append=close[-1]))
        # A quarter of the time, so that costs are earned back and the ledger stays sane.
        ahead[np.arange(ahead.size) % 4 != 0] = 0.0
        wanted: FloatArray = ahead[: columns["close"].size]
        return wanted

    def reset(self, start: EpisodeStart) -> None: ...
    def act(self, obs: Observation) -> Decision:
        raise AssertionError

    def observe(self, step: Step) -> None: ...


class Stepper:
    """Decides bar by bar: long after a rise. It keeps what it was shown."""

    name = "test/stepper"
    made: ClassVar[list[Stepper]] = []

    def __init__(self, config: Nothing) -> None:
        self.seen: list[float] = []
        self.steps: list[Step] = []
        Stepper.made.append(self)

    def reset(self, start: EpisodeStart) -> None:
        self._close, self._last = start.column("close"), np.nan
        self.seen.clear()

    def act(self, obs: Observation) -> Decision:
        close = float(obs.features[self._close])
        rising, self._last = close > self._last, close
        self.seen.append(close)
        return Decision(1.0 if rising else 0.0)

    def observe(self, step: Step) -> None:
        self.steps.append(step)


class Pupil:
    """Learns one number, the sign of the mean return of its past, and holds that."""

    name = "test/pupil"
    needs = ("close",)
    made: ClassVar[list[Pupil]] = []

    def __init__(self, config: Nothing) -> None:
        self.fitted: list[FloatArray] = []
        self.seeds: list[Seeds] = []
        Pupil.made.append(self)

    def fit(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None:
        self.fitted.append(columns["close"].copy())
        self.seeds.append(start.seeds)

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        (past,) = self.fitted
        return np.full(columns["close"].size, float(past[-1] > past[0]))

    def reset(self, start: EpisodeStart) -> None: ...
    def act(self, obs: Observation) -> Decision:
        raise AssertionError

    def observe(self, step: Step) -> None: ...


class Tuner(Pupil):
    """A pupil that is also shown the rows after those, and holds by them."""

    name = "test/tuner"

    def tune(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None:
        self.fitted = [columns["close"].copy()]
        self.seeds.append(start.seeds)


AGENTS: dict[str, tuple[type[Config], Any]] = {
    "test/clairvoyant": (MarketConfig, Clairvoyant),
    "test/stepper": (Nothing, Stepper),
    "test/pupil": (Nothing, Pupil),
    "test/tuner": (Nothing, Tuner),
}


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the agents known for one test."""
    Stepper.made.clear()
    Pupil.made.clear()
    for name, (config, factory) in AGENTS.items():
        monkeypatch.setitem(registry._entries, ("agent", name), Entry(config, factory))
