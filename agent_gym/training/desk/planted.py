"""Signals whose law is known, to see whether learning finds what is there and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.schemas import Outcome, Signal, SignalParams
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.desk.config import TrainingConfig
from agent_gym.training.desk.dataset import Dataset, Row, tabled
from agent_gym.training.desk.preparation import judged_enough

PRICE = 100.0
STRATEGIES = ("carry", "momentum", "reversal")


@dataclass(frozen=True, slots=True)
class PlantedLaw:
    """P(win | x) is logistic in standard normal features; ``decoys`` more tell nothing.

    ``win`` and ``loss`` are the mean sizes of a payoff. With all weights at 0 it is the null law.
    """

    weights: tuple[float, ...] = (0.9, -0.7, 0.5)
    offset: float = -0.2
    decoys: int = 3
    win: float = 0.010
    loss: float = 0.010

    def __post_init__(self) -> None:
        if self.win <= 0.0 or self.loss <= 0.0:
            raise ConfigError("a payoff has a size", found=(self.win, self.loss))

    @classmethod
    def null(cls, win_share: float = 0.5, features: int = 6) -> PlantedLaw:
        """Return a law under which no feature tells anything."""
        return cls((0.0,) * features, float(logit(win_share)), decoys=0)

    def turned(self) -> PlantedLaw:
        """Return the law with every weight the other way round."""
        return replace(self, weights=tuple(-weight for weight in self.weights))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the features."""
        return tuple(f"x{i}" for i in range(len(self.weights) + self.decoys))

    def probability(self, table: FloatArray) -> FloatArray:
        """Return the true probability of a win for each row."""
        told = table[:, : len(self.weights)] @ np.array(self.weights)
        return np.asarray(expit(self.offset + told))

    def bayes_accepts(self, p: FloatArray) -> NDArray[np.bool_]:
        """Return what someone who knows the law lets through."""
        return np.asarray(p * self.win > (1.0 - p) * self.loss)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Drawn signals: features, true probabilities, labels and payoffs."""

    law: PlantedLaw
    X: FloatArray
    p: FloatArray
    y: NDArray[np.int8]
    payoff: FloatArray
    strategies: NDArray[np.str_]

    def __len__(self) -> int:
        return int(self.y.size)

    def with_shuffled_labels(self, seeds: Seeds) -> Draw:
        """Return the same signals, the outcomes dealt out anew."""
        order = seeds.child("shuffle").rng().permutation(len(self))
        return replace(self, y=self.y[order], payoff=self.payoff[order])


def draw(law: PlantedLaw, n: int, seeds: Seeds) -> Draw:
    """Draw signals under a law; sizes of payoffs vary by a quarter and tell nothing."""
    rng = seeds.child("signals").rng()
    table = rng.standard_normal((n, len(law.names)))
    p = law.probability(table)
    y = (rng.random(n) < p).astype(np.int8)
    size = rng.uniform(0.75, 1.25, n)
    payoff = size * np.where(y == 1, law.win, -law.loss)
    return Draw(law, table, p, y, payoff, rng.choice(STRATEGIES, n))


def joined(first: Draw, second: Draw) -> Draw:
    """Return one draw after the other: the law drifts at the seam."""
    return replace(
        first,
        X=np.concatenate([first.X, second.X]),
        p=np.concatenate([first.p, second.p]),
        y=np.concatenate([first.y, second.y]),
        payoff=np.concatenate([first.payoff, second.payoff]),
        strategies=np.concatenate([first.strategies, second.strategies]),
    )


def planted_dataset(
    drawn: Draw, config: TrainingConfig | None = None, *, spacing_s: float = 900.0
) -> Dataset:
    """Return drawn signals as a table, one every so many seconds, labels known an hour later."""
    rows = [
        Row(
            signal_id=f"p{i:06d}",
            features=dict(zip(drawn.law.names, drawn.X[i].tolist(), strict=True)),
            t=i * spacing_s,
            t_end=i * spacing_s + min(3600.0, spacing_s / 2.0),
            payoff=float(drawn.payoff[i]),
            strategy=str(drawn.strategies[i]),
            symbol="BTC/USDT",
            counterfactual=False,
        )
        for i in range(len(drawn))
    ]
    made = tabled(
        rows, as_of=len(rows) * spacing_s + 3600.0, horizon="1h", paper_weight=0.5, excluded={}
    )
    return judged_enough(made, config or TrainingConfig())


def store_planted(
    ctx: RecentContext,
    drawn: Draw,
    *,
    start: float = 0.0,
    spacing_s: float = 3000.0,
    horizon: tuple[str, float] = ("1h", 3600.0),
) -> float:
    """Store drawn signals and their outcomes as a desk would; return the time of the last."""
    name, horizon_s = horizon
    at = start
    for i in range(len(drawn)):
        at = start + i * spacing_s
        signal = Signal(
            signal_id=f"p{start:.0f}-{i:06d}",
            strategy=str(drawn.strategies[i]),
            params=SignalParams(amount=1.0, price=PRICE),
            timestamp=at,
            source="planted",
            features=dict(zip(drawn.law.names, drawn.X[i].tolist(), strict=True)),
        )
        ctx.store_signal(signal, known_at=at)
        ctx.store_outcome(
            Outcome(
                signal_id=signal.signal_id,
                label="win" if drawn.y[i] else "loss",
                filled=1.0,
                avg_price=PRICE,
                pnl_horizon={name: float(drawn.payoff[i]) * PRICE},
                closed_at=at + horizon_s,
            ),
            known_at=at + horizon_s,
        )
    return at
