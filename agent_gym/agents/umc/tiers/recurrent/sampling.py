"""The past that a fit learns from: its bars as the network sees them, resampled once for each head.

The past is cut into blocks, and each head has its own count of each block, drawn once from a
Poisson distribution with mean 1: a bootstrap that never holds the whole past, so that heads differ
where there was little to learn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agent_gym.agents.umc.tiers.contract import Series
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.losses import Batch
from agent_gym.agents.umc.tiers.recurrent.observation import (
    observe,
    returns_ahead,
    usable_past,
)
from agent_gym.agents.umc.tiers.recurrent.weights import names_in, normaliser_in
from agent_gym.agents.umc.tiers.scaling import Normaliser
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

STARTS_EVERY = 8
"""Sequences start at every eighth bar; the memory there is kept from the last look."""


class Past:
    """Bars to learn from, and a tail that is held out.

    No sequence and no return ahead of one reaches into the tail; the normaliser does not either.
    """

    def __init__(
        self,
        config: RecurrentConfig,
        series: Series,
        seeds: Seeds,
        start_from: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        series = usable_past(series)
        self.learned_bars = _learned_bars(config, len(series))
        self.series, self.names = series, series.names
        self._sequence_bars, self._latent = config.sequence_bars, config.latent
        self._sequences = config.batch_sequences
        last_start = self.learned_bars - config.sequence_bars - config.horizon_bars
        self._starts = last_start // STARTS_EVERY + 1
        self.normaliser = self._normaliser(start_from)
        observed = observe(series, self.normaliser)
        self._values = observed.values.astype(np.float32)
        self._known = observed.known.astype(np.float32)
        self._ahead = returns_ahead(series, config.horizon_bars).astype(np.float32)
        blocks = -(-len(series) // config.sequence_bars)
        counts = seeds.rng().poisson(1.0, (blocks, config.heads)).astype(np.float32)
        self._counts = np.repeat(counts, config.sequence_bars, axis=0)[: len(series)]

    @property
    def columns(self) -> int:
        """Return how many numbers are seen of a bar."""
        return int(self._values.shape[1])

    def batch(self, memories: NDArray[np.float32], rng: np.random.Generator) -> Batch:
        """Return sequences that start at random, with the memories met there at the last look."""
        chosen = rng.integers(self._starts, size=self._sequences)
        shape = (self._sequences, self._sequence_bars, self._latent)
        noise = rng.standard_normal(shape, dtype=np.float32)
        return self.sequences(chosen * STARTS_EVERY, memories[chosen], noise)

    def sequences(
        self, starts: NDArray[np.int64], memories: NDArray[np.float32], noise: NDArray[np.float32]
    ) -> Batch:
        """Return the sequences that start at these bars."""
        rows = starts[:, None] + np.arange(self._sequence_bars)
        parts = (self._values[rows], self._known[rows], self._ahead[rows], self._counts[rows])
        return Batch(*(torch.from_numpy(part) for part in (*parts, memories, noise)))

    def split(self, scores: FloatArray) -> tuple[float, float]:
        """Return the mean score in deviations of the bars to learn from and of the tail."""
        scaled = scores + np.log(self.series.expected_sigma)
        cut = self.learned_bars  # the first bar of all has no forecast, so no score
        return float(scaled[1:cut].mean()), float(scaled[cut:].mean())

    def _normaliser(self, start_from: Mapping[str, NDArray[Any]] | None) -> Normaliser:
        """Return the scales of the past, or those that earlier weights were made for."""
        if start_from is None:
            return Normaliser.fitted(self.series.inputs[: self.learned_bars])
        if names_in(start_from) != self.names:
            raise DataError(
                "the weights to start from were fitted on other inputs",
                where="umc/recurrent",
                found=", ".join(names_in(start_from)) or "none",
                expected=", ".join(self.names) or "none",
                remedy="Fit from scratch",
            )
        return normaliser_in(start_from)


def _learned_bars(config: RecurrentConfig, bars: int) -> int:
    learned = int(bars * (1.0 - config.held_out_share))
    least = config.sequence_bars + config.horizon_bars
    if learned < least or learned >= bars:
        raise DataError(
            "the past is too short to learn from",
            where="umc/recurrent",
            found=f"{bars} bars",
            expected=f"at least {least} bars besides the {config.held_out_share:.0%} held out",
            remedy="Give a longer past, or lower sequence_bars",
        )
    return learned
