"""How a battle goes on, told by several heads that learned from primary rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from agent_gym.agents.named_arrays import under
from agent_gym.agents.torch_parts import arrays_of, optimizer_arrays, put_arrays, put_optimizer
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.buffers import PrimaryView
from agent_gym.training.marl.amal.ensemble import Ensemble
from agent_gym.training.marl.amal.scale import Scale
from agent_gym.training.marl.amal.transitions import Transitions
from agent_gym.training.marl.amal_config import WorldModelConfig
from agent_gym.training.marl.batch import Arrays, Bools

Rows: TypeAlias = NDArray[np.int64]
"""Numbers of rows."""


class Forecast(NamedTuple):
    """What every head expects of the change of the state, in units of that change's own spread.

    Attributes:
        mean: ``[rows, heads, features]``.
        variance: Likewise.
        truth: What happened, ``[rows, features]``.
        counted: Rows after which the same battle went on, ``[rows]``.
    """

    mean: FloatArray
    variance: FloatArray
    truth: FloatArray
    counted: Bools

    def errors(self) -> FloatArray:
        """Return the squared error of the mean of all heads, summed; 0 where a battle ended."""
        found = np.square(self.truth - self.mean.mean(axis=1)).sum(axis=-1)
        return np.where(self.counted, found, 0.0)

    def surprise(self, floor: float) -> FloatArray:
        """Return how unexpected each row was to all heads together, in nats.

        It is the negative log-likelihood under one Gaussian with the mean and variance of all heads
        and a floor below its spread: the same one that mutual information is measured by.
        """
        variance = self.variance.mean(axis=1) + self.mean.var(axis=1) + floor**2
        gaps = np.square(self.truth - self.mean.mean(axis=1)) / variance
        total: FloatArray = 0.5 * (gaps + np.log(variance)).sum(axis=-1)
        return total


@dataclass(frozen=True, slots=True)
class Quality:
    """How good forecasts of held-out episodes are; None without such rows.

    ``r2`` is 1 less the squared error as a share of that of the forecast that nothing changes.
    """

    r2: float | None
    nll: float | None
    rows: int


class WorldModel:
    """An ensemble, its optimiser and its own scale of everything.

    Args:
        inputs: How many numbers it sees.
        features: How many numbers the state has that it foretells.
        config: Its shape and how it learns.
        seeds: Its own randomness; nobody else draws from it.
    """

    def __init__(self, inputs: int, features: int, config: WorldModelConfig, seeds: Seeds) -> None:
        self.config, self._seeds = config, seeds
        widths = (inputs, *[config.hidden] * config.layers, features + 1)
        self._network = Ensemble(config.heads, widths, seeds.child("weights"))
        self._adam = torch.optim.Adam(
            self._network.parameters(), lr=config.learning_rate, fused=True
        )
        self._seen, self._change = Scale(inputs), Scale(features)
        self._reward = Scale(1)
        self.fits = 0

    def learn(self, view: PrimaryView) -> None:
        """Take in the newest window, then take some steps on all that is held.

        Every head draws rows of its own, so that heads agree only where data make them.
        """
        if not isinstance(view, PrimaryView):
            raise TypeError(f"a model of the world learns from a PrimaryView, not {type(view)}")
        self._take_in(view.newest())
        rows = view.rows()
        free = np.flatnonzero(~view.held_out)
        young = free[free >= len(view) - len(view.newest())]
        rng = self._seeds.child("fit", self.fits).rng()
        self.fits += 1
        if not len(free):
            return
        seen, targets = self._tensors(rows)
        goes_on = torch.from_numpy(~rows.ended)
        for _ in range(self.config.updates):
            picked = torch.from_numpy(self._drawn(rng, free, young))
            loss = self._loss(seen[picked], targets[picked], goes_on[picked])
            self._adam.zero_grad(set_to_none=True)
            torch.autograd.backward([loss])
            self._adam.step()

    def _drawn(self, rng: np.random.Generator, free: Rows, young: Rows) -> Rows:
        """Return the rows of a step, ``[heads, batch]``: some of the newest window, some of all.

        Among all that is held, the newest window would be a few rows in a hundred, and what its
        steps say would hardly be learned before it is old.
        """
        config = self.config
        drawn: Rows = free[rng.integers(len(free), size=(config.heads, config.batch))]
        new = round(config.newest_share * config.batch) if len(young) else 0
        if new:
            drawn[:, :new] = young[rng.integers(len(young), size=(config.heads, new))]
        return drawn

    def _take_in(self, newest: PrimaryView) -> None:
        rows, free = newest.rows(), ~newest.held_out
        self._seen.update(rows.seen[free])
        self._change.update(rows.change[free & ~rows.ended])
        self._reward.update(rows.reward[free, None])

    def _tensors(self, rows: Transitions) -> tuple[Tensor, Tensor]:
        """Return scaled inputs, and scaled changes with the reward as their last column."""
        change = self._change.scaled(rows.change)
        reward = self._reward.scaled(rows.reward[:, None])
        seen = torch.from_numpy(self._seen.scaled(rows.seen))
        return seen, torch.from_numpy(np.concatenate([change, reward], axis=1))

    def _loss(self, seen: Tensor, targets: Tensor, goes_on: Tensor) -> Tensor:
        """Return the loss summed over heads; a change counts only where the battle went on."""
        config = self.config
        told = self._network.told(seen)
        nll = 0.5 * (
            (targets - told.mean).square() * (-told.log_variance).exp() + told.log_variance
        )
        nll = nll * (config.beta * told.log_variance.detach()).exp()
        change = (nll[..., :-1].sum(-1) * goes_on).mean(-1)
        reward = nll[..., -1].mean(-1)
        ends = (~goes_on).to(told.end.dtype)
        end = functional.binary_cross_entropy_with_logits(told.end, ends, reduction="none").mean(-1)
        return (change + config.reward_weight * reward + config.end_weight * end).sum()

    def forecast(self, rows: Transitions) -> Forecast:
        """Return what every head expects of rows; whoever played them, nothing is learned."""
        seen, targets = self._tensors(rows)
        with torch.no_grad():
            told = self._network.told(seen.expand(self.config.heads, *seen.shape))
            mean = told.mean[..., :-1].transpose(0, 1).numpy().astype(np.float64)
            variance = told.log_variance[..., :-1].transpose(0, 1).exp().numpy().astype(np.float64)
        return Forecast(mean, variance, targets[:, :-1].numpy().astype(np.float64), ~rows.ended)

    def quality(self, view: PrimaryView) -> Quality:
        """Return how good forecasts of held-out episodes are."""
        rows = view.rows()
        kept = np.flatnonzero(view.held_out & ~rows.ended)
        if not len(kept):
            return Quality(None, None, 0)
        told = self.forecast(rows.some(kept))
        still = -self._change.mean / self._change.spread
        errors, steady = told.errors().sum(), np.square(told.truth - still).sum()
        gaps = np.square(told.truth[:, None] - told.mean) / told.variance
        nll = 0.5 * (gaps + np.log(told.variance)).sum(-1).mean()
        return Quality(float(1.0 - errors / max(steady, 1e-12)), float(nll), len(kept))

    @property
    def scale_of_seen(self) -> Scale:
        """Return the scale of what it is shown."""
        return self._seen

    def weights(self) -> Arrays:
        """Return the numbers of all heads by name."""
        return arrays_of(self._network)

    def state(self) -> Arrays:
        """Return all that decides how it goes on learning."""
        arrays = arrays_of(self._network) | optimizer_arrays(self._network, self._adam)
        for name, scale in self._scales():
            arrays |= {f"{name}/{key}": array for key, array in scale.arrays().items()}
        return arrays | {"fits": np.array([self.fits])}

    def restore(self, arrays: Arrays) -> None:
        """Go on where another one stood."""
        put_arrays(self._network, arrays, "world model")
        put_optimizer(self._network, self._adam, arrays)
        for name, scale in self._scales():
            scale.restore(under(f"{name}/", arrays))
        self.fits = int(arrays["fits"][0])

    def _scales(self) -> tuple[tuple[str, Scale], ...]:
        return ("seen", self._seen), ("change", self._change), ("reward", self._reward)
