"""The recurrent tier in the registry: fitted with torch, followed without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from agent_gym.agents.umc.keeper import run_fit
from agent_gym.agents.umc.tiers.contract import Forecasts, Series
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.fitting import Look, RecurrentFit
from agent_gym.agents.umc.tiers.recurrent.inference import RecurrentFilter
from agent_gym.agents.umc.tiers.recurrent.weights import names_in
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray


@register("tier", "umc/recurrent", RecurrentConfig)
class RecurrentTier:
    """A model of the market with a learned memory; see the contract of tiers."""

    def __init__(self, config: RecurrentConfig) -> None:
        self.config = config
        self.looks: tuple[Look, ...] = ()
        self._model: dict[str, NDArray[Any]] | None = None
        self._filter: RecurrentFilter | None = None

    @property
    def name(self) -> str:
        """Return the name in the registry."""
        return "umc/recurrent"

    @property
    def heads(self) -> tuple[str, ...]:
        """Return a name for each model that was fitted on a resampled past."""
        return tuple(f"head_{k}" for k in range(self.config.heads))

    def fit(self, past: Series, seeds: Seeds) -> None:
        """Learn from scratch."""
        fit = self.start(past, seeds)
        run_fit(fit, seeds)
        self.take(fit)

    def refit(self, past: Series, seeds: Seeds) -> None:
        """Learn on from the weights it has, for ``warm_steps`` steps."""
        fit = self.start(past, seeds, warm=True)
        run_fit(fit, seeds)
        self.take(fit)

    def start(self, past: Series, seeds: Seeds, *, warm: bool = False) -> RecurrentFit:
        """Return a fit that was not run yet, for whoever wants to stop and resume it."""
        return RecurrentFit(self.config, past, seeds, self.weights() if warm else None)

    def take(self, fit: RecurrentFit, progress: Callable[[Look], None] | None = None) -> None:
        """Run what is left of a fit and take over its model."""
        fit.run(progress)
        self.looks = tuple(fit.looks)
        model = fit.model()
        self.restore(model, names_in(model))

    def begin(self) -> FloatArray:
        """Return the memory before the first bar."""
        return self._following().begin()

    def filter(self, seen: Series, memory: FloatArray) -> Forecasts:
        """Follow the bars and move the memory on in place."""
        return self._following().filter(seen, memory)

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return a copy of the fitted model as arrays."""
        self._following()
        return {name: array.copy() for name, array in (self._model or {}).items()}

    def restore(self, weights: Mapping[str, NDArray[Any]], inputs: tuple[str, ...]) -> None:
        """Take over a fitted model; one of other inputs or another size is refused."""
        model = {name: array.copy() for name, array in weights.items()}
        fitted = RecurrentFilter(model)
        if (fitted.names, fitted.heads) != (inputs, self.config.heads):
            raise DataError(
                "these weights belong to another model",
                where=self.name,
                found=f"{fitted.heads} heads, inputs {', '.join(fitted.names) or 'none'}",
                expected=f"{self.config.heads} heads, inputs {', '.join(inputs) or 'none'}",
            )
        self._filter, self._model = fitted, model

    def _following(self) -> RecurrentFilter:
        if self._filter is None:
            raise AgentError(
                "the model was not fitted yet",
                where=self.name,
                remedy="Call fit() with a past, or restore() with weights",
            )
        return self._filter
