"""Does what agents see give away more than the law states? Gradient boosting looks for it.

The probe is given all that is visible at a tick, and what Bayes' rule makes of the posts so far. On
some snapshots it learns what that rule misses, and corrects it on others. If its log loss is below
that of Bayes' rule alone, beyond chance, something leaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.features import ACCOUNT_FEATURES, MARKET_FEATURES
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark.filter import know
from agent_gym.evaluation.realism.threads import one_thread
from agent_gym.evaluation.statistics import Interval, seeds_interval
from agent_gym.markets.snapshot.generator import Made
from agent_gym.markets.snapshot.types import Snapshot

SHARES = (0.1, 0.3, 0.5, 0.7)
LEVEL = 0.99
LAGS = (1, 3, 10)
STEEPNESS = 4.0  # logit for a chance: near one half a correction counts in full, at the ends less
FEWEST = 40  # snapshots; with fewer the probe could not find anything


@dataclass(frozen=True, slots=True)
class LeakRow:
    """Log losses at one tick; ``gain`` is by how much the probe is better, in nats."""

    tick: int
    samples: int
    bayes: float
    probe: float
    gain: Interval

    @property
    def leaks(self) -> bool:
        """Say whether the probe knows more than the law states."""
        return self.gain.low > 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "tick": self.tick,
            "samples": self.samples,
            "bayes_log_loss": self.bayes,
            "probe_log_loss": self.probe,
            "gain": self.gain.as_dict(),
            "leaks": self.leaks,
        }


@dataclass(frozen=True, slots=True)
class _Sample:
    seen: FloatArray
    belief: float
    outcome: bool


def probe_leaks(made: Sequence[Made], shares: Sequence[float] = SHARES) -> tuple[LeakRow, ...]:
    """Train on every other snapshot, predict the rest; one row for each share of the ticks.

    All snapshots must come from one config.
    """
    if len(made) < FEWEST:
        raise ConfigError(
            "too few snapshots to find a leak", found=len(made), expected=f"at least {FEWEST}"
        )
    ticks = [max(1, round(share * made[0].snapshot.ticks)) for share in shares]
    samples: dict[int, list[list[_Sample]]] = {tick: [] for tick in ticks}
    for one in made:
        rows = visible_rows(one.snapshot, max(ticks))
        for tick in ticks:
            samples[tick].append(_samples(one, rows, tick))
    return tuple(_row(tick, samples[tick]) for tick in ticks)


def visible_rows(snapshot: Snapshot, last: int) -> FloatArray:
    """Return what an agent that does nothing sees at each tick, up to the last one asked for."""
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path()), snapshot)
    seen = [world.reset(Seeds(0))[TRADER].features]
    nothing = np.zeros(len(snapshot.market_ids))
    while len(seen) <= last:
        seen.append(world.advance(nothing).observation.features)
    return np.stack(seen)


def _samples(one: Made, rows: FloatArray, tick: int) -> list[_Sample]:
    snapshot, width = one.snapshot, len(MARKET_FEATURES)
    beliefs = know(snapshot).beliefs[tick]
    found = []
    for m, market in enumerate(snapshot.predictions):
        if tick >= market.resolve_tick:
            continue
        own = slice(m * width, (m + 1) * width)
        others = np.delete(rows[tick], np.s_[own])[: -len(ACCOUNT_FEATURES)]
        belief = float(beliefs[m])
        said = np.array([np.log(belief / (1.0 - belief)), market.initial_price, market.liquidity])
        past = [rows[max(0, tick - lag), own] for lag in LAGS]
        seen = np.concatenate([said, rows[tick, own], *past, others])
        found.append(_Sample(seen, belief, one.truth.outcomes[market.id]))
    return found


def _row(tick: int, groups: list[list[_Sample]]) -> LeakRow:
    learn = [one for group in groups[0::2] for one in group]
    test = [one for group in groups[1::2] for one in group]
    model = HistGradientBoostingRegressor(
        max_iter=40, learning_rate=0.08, max_leaf_nodes=6, min_samples_leaf=20, random_state=0
    )
    outcomes = np.array([one.outcome for one in test])
    beliefs = np.array([one.belief for one in test])
    with one_thread():
        missed = np.array([one.outcome - one.belief for one in learn])
        model.fit(np.stack([one.seen for one in learn]), missed)
        found = model.predict(np.stack([one.seen for one in test]))
    guessed = 1.0 / (1.0 + (1.0 / beliefs - 1.0) * np.exp(-STEEPNESS * found))
    bayes, probe = _losses(beliefs, outcomes), _losses(guessed, outcomes)
    gain = seeds_interval(bayes - probe, Seeds(0).child("leak", tick), reps=2_000, level=LEVEL)
    return LeakRow(tick, len(test), float(bayes.mean()), float(probe.mean()), gain)


def _losses(chances: FloatArray, outcomes: FloatArray) -> FloatArray:
    inside = np.clip(chances, 1e-3, 1.0 - 1e-3)
    losses: FloatArray = -np.log(np.where(outcomes, inside, 1.0 - inside))
    return losses
