"""The generative model of the market: several tiers behind one interface, the best by evidence.

Every tier is fitted on the head of the past and scored one bar ahead on its tail; the one chosen
is then fitted on all of it. What was scored and why one was chosen is in the report.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.umc.efe import gaussian_kl
from agent_gym.agents.umc.tiers.coherence import (
    begin_coherence,
    coherence,
    follow_coherence,
    plain_scores,
)
from agent_gym.agents.umc.tiers.contract import WARM_BARS, Forecasts, Series, Tier
from agent_gym.agents.umc.tiers.information import head_information
from agent_gym.agents.umc.tiers.selection import Report, choose_model
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.registry import Config, Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

__all__ = [
    "MarketGI",
    "MarketGIConfig",
    "Report",
    "begin_coherence",
    "coherence",
    "follow_coherence",
    "plain_scores",
]

WHERE = "MarketGI"
TIER, INPUTS, REPORT, WEIGHTS = "tier", "inputs", "report", "weights/"
log = logging.getLogger(__name__)


class MarketGIConfig(Config):
    """The tiers to choose from, from light to heavy, and how much of the past decides."""

    tiers: tuple[Ref, ...] = Field(
        default=(Ref(use="umc/exact"), Ref(use="umc/kalman")),
        min_length=1,
        description="from light to heavy; umc/recurrent by choice: it takes torch and minutes",
    )
    held_out_share: float = Field(
        default=0.2, gt=0.0, lt=0.9, description="share of the past, its tail, that decides"
    )


@runtime_checkable
class Warm(Protocol):
    """A tier that can learn on from the weights it has."""

    def refit(self, past: Series, seeds: Seeds) -> None: ...


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What a model was fitted on, and the tiers as the held-out bars judge them."""

    past: Series
    seeds: Seeds
    rivals: tuple[Tier, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    """The tier that is followed, the inputs it reads, and why it was chosen."""

    tier: Tier
    inputs: tuple[str, ...]
    report: Report


class MarketGI:
    """The generative model that UMC follows; see the contract of tiers for memory and filter."""

    def __init__(self, config: MarketGIConfig) -> None:
        self.config = config
        self._choice: _Choice | None = None
        self._lesson: _Lesson | None = None
        self._starts: dict[str, Mapping[str, NDArray[Any]]] = {}

    @property
    def tier(self) -> Tier:
        """Return the chosen tier."""
        return self._chosen().tier

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the names of the chosen tier's heads."""
        return self.tier.heads

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return what the inputs are called that it was fitted on."""
        return self._chosen().inputs

    @property
    def report(self) -> Report:
        """Return which tier was chosen and why, with the scores of all."""
        return self._chosen().report

    def follow(self, earlier: MarketGI) -> None:
        """Let tiers that can begin the next fit() from the weights they had in an earlier fold.

        Where tiers are compared, those are the weights before the last refit: the refitted ones
        may have seen bars that are held out now, and would be chosen for it.
        """
        rivals = earlier._learned_from().rivals
        self._starts = {
            name: tier.weights() for name, tier in zip(earlier._names, rivals, strict=True)
        }

    def fit(self, past: Series, seeds: Seeds) -> None:
        """Fit every tier, choose one on the held-out tail, and fit it on the whole past."""
        names = self._names
        alone = len(names) == 1
        cut = len(past) if alone else int(len(past) * (1.0 - self.config.held_out_share))
        head = past.rows(0, cut)
        rivals = tuple(
            self._fitted(name, head, seeds.child(name), self._starts.get(name)) for name in names
        )
        self._lesson, self._choice = _Lesson(past, seeds, rivals), None
        if alone:
            self._choice = _Choice(rivals[0], past.names, Report(names[0], "it is the only tier"))
        else:
            self.choose(head, past.rows(cut, len(past)))

    def choose(self, warm: Series, seen: Series) -> Report:
        """Choose by bars that no tier was fitted on; return the report.

        All tiers stand as fitted on the head of the past, so none is ahead for having seen more;
        the chosen one is then fitted on the whole past, and on nothing later.

        Args:
            warm: Bars before, of which the last bring memories up to date.
            seen: The bars to score, each by what was said before it.
        """
        lesson, names = self._learned_from(), self._names
        if len(names) == 1:
            return self.report
        scores = []
        for rival in lesson.rivals:
            memory = rival.begin()
            rival.filter(warm.rows(max(0, len(warm) - WARM_BARS), len(warm)), memory)
            scores.append(rival.filter(seen, memory).score)
        report = choose_model(names, scores)
        log.info("%s is chosen: %s", report.chosen, report.why)
        if self._choice is not None and self._choice.report.chosen == report.chosen:
            tier = self._choice.tier
        else:
            start = lesson.rivals[names.index(report.chosen)].weights()
            seeds = lesson.seeds.child(report.chosen, "whole")
            tier = self._fitted(report.chosen, lesson.past, seeds, start)
        self._choice = _Choice(tier, lesson.past.names, report)
        return report

    def begin(self) -> FloatArray:
        """Return a memory that has seen nothing."""
        return self.tier.begin()

    def filter(self, seen: Series, memory: FloatArray) -> Forecasts:
        """Follow the bars and move the memory on in place."""
        return self.tier.filter(seen, memory)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return the chosen tier as arrays; names and the report are the bytes of JSON."""
        choice = self._chosen()
        texts = {TIER: choice.report.chosen, INPUTS: choice.inputs, REPORT: choice.report.as_dict()}
        named = {
            key: np.frombuffer(json.dumps(text).encode(), np.uint8).copy()
            for key, text in texts.items()
        }
        return named | {f"{WEIGHTS}{key}": a.copy() for key, a in choice.tier.weights().items()}

    def restore(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take up what weights() of a model with the same config returned."""
        missing = {TIER, INPUTS, REPORT} - set(weights)
        if missing:
            raise DataError("these are not weights of a MarketGI", where=WHERE, found=set(weights))
        name, inputs, report = (
            json.loads(bytes(weights[key].astype(np.uint8))) for key in (TIER, INPUTS, REPORT)
        )
        if name not in self._names:
            raise DataError(
                "the weights are of a tier that is not among those to choose from",
                where=WHERE,
                found=name,
                expected=", ".join(self._names),
            )
        tier, inputs = self._made(name), tuple(inputs)
        own = {k.removeprefix(WEIGHTS): a for k, a in weights.items() if k.startswith(WEIGHTS)}
        tier.restore(own, inputs)
        self._lesson = None
        self._choice = _Choice(tier, inputs, Report.from_dict(report))

    def encode(self, seen: Series, memory: FloatArray) -> FloatArray:
        """Return the belief about the hidden state after each bar; the memory moves on."""
        return self.filter(seen, memory).belief

    def transition(self, told: Forecasts) -> FloatArray:
        """Return where each head takes the market next: the expected return, one column a head."""
        return told.mean

    def emission(self, told: Forecasts) -> FloatArray:
        """Return how the next return scatters about that by each head, as a variance."""
        return told.variance

    def free_energy(self, told: Forecasts) -> float:
        """Return the surprise of the bars: minus the mean log score, in nats a bar.

        Where the filter is exact this is the free energy; else free energy is no lower.
        """
        scored = told.score[~np.isnan(told.score)]
        if not scored.size:
            raise DataError("no bar was foretold, so none surprises", where=WHERE)
        return -float(scored.mean())

    def info_gain(self, told: Forecasts) -> FloatArray:
        """Return what the next bar is expected to say about which head is right, in nats."""
        return head_information(told)

    def kl_contraction(self, seen: Series, one: FloatArray, other: FloatArray) -> float:
        """Return the share of what divides two beliefs that is left after a bar, on average.

        Two memories of this model are shown the same bars, and the Kullback-Leibler divergence of
        what they foretell (as Gaussians of the same mean and variance) is compared after the first
        bar and after the last. Below 1 a filter forgets how it began. That holds for expectations;
        on given bars two beliefs may also part. The memories themselves stay as they are.
        """
        apart = gaussian_kl(*self._foretold(seen, one), *self._foretold(seen, other))
        if not (len(seen) > 1 and apart[0] > 0.0):
            raise DataError(
                "only forecasts that differ can come closer, over two bars or more",
                where=WHERE,
                found=f"{len(seen)} bars, divergence {apart[:1]}",
            )
        return float((apart[-1] / apart[0]) ** (1.0 / (len(seen) - 1)))

    def _foretold(self, seen: Series, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        told = self.filter(seen, memory.copy())
        return told.edge, (told.chance * told.variance).sum(axis=1) + told.error**2

    @property
    def _names(self) -> tuple[str, ...]:
        """Return a name for each tier, its place behind it where one is there twice."""
        used = [ref.use for ref in self.config.tiers]
        return tuple(
            use if used.count(use) == 1 else f"{use}#{i}" for i, use in enumerate(used, start=1)
        )

    def _chosen(self) -> _Choice:
        if self._choice is None:
            raise AgentError(
                "no tier was chosen yet", where=WHERE, remedy="Call fit() with a past, or restore()"
            )
        return self._choice

    def _learned_from(self) -> _Lesson:
        if self._lesson is None:
            raise AgentError(
                "only a model that was fitted here knows its rivals and its past",
                where=WHERE,
                remedy="Call fit() first; restored weights hold the chosen tier alone",
            )
        return self._lesson

    def _made(self, name: str) -> Tier:
        ref = self.config.tiers[self._names.index(name)]
        tier = make("tier", ref)
        if not isinstance(tier, Tier):
            raise ConfigError("this is not a tier", where=ref.use, found=type(tier).__name__)
        return tier

    def _fitted(
        self, name: str, past: Series, seeds: Seeds, start: Mapping[str, NDArray[Any]] | None
    ) -> Tier:
        """Return the tier fitted on the past, from its earlier weights if it can go on from any."""
        tier = self._made(name)
        if start is not None and isinstance(tier, Warm):
            tier.restore(start, past.names)
            tier.refit(past, seeds)
        else:
            tier.fit(past, seeds)
        return tier
