"""The macrostate detector: fitted on a past, it follows a series and says what the regime is.

Filter, don't smooth: the belief at a bar uses this bar and those before it. The fit sees only the
rows that it is given, so to trade a period it has to be fitted on the period before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.macro.config import MOST_STATES, MacroConfig
from agent_gym.agents.umc.macro.cycles import CycleReport, Redraw, report_cycles
from agent_gym.agents.umc.macro.fitting import choose_states
from agent_gym.agents.umc.macro.labels import Label, label_states, traits_of
from agent_gym.agents.umc.macro.matching import Emissions, Match, match
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.agents.umc.macro.scaling import Scaling
from agent_gym.agents.umc.macro.stability import Stability, refit_stability
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

WHERE = "agents.umc.macro"


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a fit did.

    Attributes:
        states: How many states were chosen.
        validation_scores: Held-out log density in nats a bar, by number of states.
        steps: Steps of the last fit, on all rows.
        objective: Log density of all rows and of the prior before the last of these, in nats.
        match: How the states got the numbers of those before; None at the first fit.
    """

    states: int
    validation_scores: Mapping[int, float]
    steps: int
    objective: float
    match: Match | None


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """All that a fitted detector knows."""

    model: Hmm
    scaling: Scaling
    ids: tuple[int, ...]

    def emissions(self) -> Emissions:
        scale = self.scaling.scale
        return Emissions(
            self.model.means * scale + self.scaling.centre, self.model.variances * scale**2
        )


class MacrostateDetector:
    """Up to seven regimes of a market, by a sticky hidden Markov model with Gaussian states.

    ``inputs`` is a table with one row a bar and one column an input, in the order of the config,
    NaN where an input is not known; pick() takes them from a wider table by name. ``memory`` is a
    flat array that begin() makes and filter() moves on in place, so a series may be shown in any
    pieces: the beliefs are the same, bit for bit. A memory belongs to the fit it was begun with.
    """

    def __init__(self, config: MacroConfig | None = None) -> None:
        self.config = config if config is not None else MacroConfig()
        self._known: _Known | None = None

    @property
    def states(self) -> int:
        """How many states there are, which is the width of a belief."""
        return self._fitted().model.states

    @property
    def ids(self) -> tuple[int, ...]:
        """The number of the state behind each column of a belief; a refit keeps the numbers."""
        return self._fitted().ids

    @property
    def labels(self) -> tuple[Label, ...]:
        """The name of each state, in the order of the columns."""
        known = self._fitted()
        offsets = known.scaling.centre / known.scaling.scale
        traits = traits_of(known.model, offsets, self.config)
        return label_states(traits, known.ids, self.config.label_limit)

    def pick(self, table: FloatArray, names: tuple[str, ...]) -> FloatArray:
        """Return the columns of a table that are the inputs, by name."""
        missing = [name for name in self.config.inputs if name not in names]
        if missing:
            raise ConfigError(
                "inputs of the macrostates are missing",
                where=WHERE,
                found=", ".join(names),
                expected=", ".join(self.config.inputs),
                remedy="Name other inputs in MacroConfig.inputs",
            )
        return np.ascontiguousarray(table[:, [names.index(name) for name in self.config.inputs]])

    def fit(self, inputs: FloatArray, seeds: Seeds) -> FitReport:
        """Fit anew; states are numbered by their drift, the lowest first."""
        known, scores, objective = self._found(inputs, seeds)
        self._known = known
        return FitReport(known.model.states, scores, len(objective), objective[-1], None)

    def refit(self, inputs: FloatArray, seeds: Seeds) -> FitReport:
        """Fit on a later past and give the states the numbers of those they are most like."""
        before = self._fitted()
        known, scores, objective = self._found(inputs, seeds)
        matched = match(before.emissions(), before.ids, known.emissions(), self.config.max_states)
        order = np.argsort(np.array(matched.ids)).astype(np.int64)
        ids = tuple(matched.ids[k] for k in order)
        self._known = _Known(known.model.ordered(order), known.scaling, ids)
        ordered = Match(ids, tuple(matched.costs[k] for k in order), matched.total_cost)
        return FitReport(known.model.states, scores, len(objective), objective[-1], ordered)

    def begin(self) -> FloatArray:
        """Return the memory before the first bar: the long-run share of each state."""
        return self._fitted().model.shares()

    def filter(self, inputs: FloatArray, memory: FloatArray) -> FloatArray:
        """Return the belief at each bar, one column a state, and move the memory on."""
        return self._follow(inputs, memory)[0]

    def score(self, inputs: FloatArray, memory: FloatArray) -> FloatArray:
        """Return the log density that each row was given before it was seen, and move the memory.

        In nats, in the unit of the inputs; NaN where nothing of a row is known.
        """
        rows_known = np.isfinite(inputs)
        scores = self._follow(inputs, memory)[1]
        units = (rows_known * np.log(self._fitted().scaling.scale)).sum(axis=1)
        return np.where(rows_known.any(axis=1), scores - units, np.nan)

    def slots(self, beliefs: FloatArray) -> FloatArray:
        """Return beliefs by state number, as wide as max_states: the same column for ever."""
        table = np.zeros((len(beliefs), self.config.max_states))
        table[:, list(self.ids)] = beliefs
        return table

    def cycles(self, inputs: FloatArray, seeds: Seeds, redraw: Redraw | None = None) -> CycleReport:
        """Return the cycles of the states in a series that is over.

        Args:
            inputs: The series; best one that the fit did not see.
            seeds: Of the surrogates.
            redraw: Draws inputs as they would be without any order, such as those of resampled
                bars. Without it rows change places in blocks, which is not enough for inputs that
                share bars with their neighbours, such as momentum.
        """
        known, rows = self._fitted(), self._rows(inputs)
        again = None if redraw is None else lambda rng: self._rows(redraw(rng))
        return report_cycles(known.model, known.ids, rows, self.config.cycles, seeds, again)

    def stability(self, inputs: FloatArray, seeds: Seeds) -> Stability:
        """Return how far refits on two resampled pasts agree, with as many states."""
        return refit_stability(self._rows(inputs), self.states, self.config, seeds)

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return all that the fit found."""
        known = self._fitted()
        return {
            "transition": known.model.transition,
            "means": known.model.means,
            "variances": known.model.variances,
            "centre": known.scaling.centre,
            "scale": known.scaling.scale,
            "ids": np.array(known.ids, dtype=np.int64),
        }

    def restore(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take over what weights() gave."""
        names = ("transition", "means", "variances", "centre", "scale")
        missing = [name for name in (*names, "ids") if name not in weights]
        if missing:
            raise DataError("weights of macrostates are missing", where=WHERE, found=missing)
        states, width = len(weights["ids"]), len(self.config.inputs)
        shapes = ((states, states), (states, width), (states, width), (width,), (width,))
        parts = [np.array(weights[name], dtype=np.float64, order="C") for name in names]
        ids = tuple(int(number) for number in weights["ids"])
        if tuple(part.shape for part in parts) != shapes or not _are_ids(ids, self.config):
            raise DataError(
                "weights do not fit the macrostates",
                where=WHERE,
                found=f"ids {ids}, shapes {[part.shape for part in parts]}",
                expected=f"{width} inputs and at most {self.config.max_states} states",
                remedy="Restore with the config that they were saved under",
            )
        if not _are_chances(parts[0]):
            raise DataError(
                "moves between macrostates have chances above 0 that sum to 1",
                where=WHERE,
                found=parts[0].tolist(),
            )
        finite = all(np.isfinite(part).all() for part in parts)
        if not finite or parts[2].min() <= 0.0 or parts[4].min() <= 0.0:
            raise DataError("weights of macrostates are not finite or not positive", where=WHERE)
        self._known = _Known(Hmm(*parts[:3]), Scaling(*parts[3:]), ids)

    def _found(
        self, inputs: FloatArray, seeds: Seeds
    ) -> tuple[_Known, Mapping[int, float], tuple[float, ...]]:
        table = self._table(inputs)
        scaling = Scaling.of(table)
        rows = scaling.applied(table, self.config.largest_score)
        fitted, scores = choose_states(rows, self.config, seeds.child("macrostates"))
        drift = self.config.inputs.index(self.config.drift_input)
        order = np.argsort(fitted.model.means[:, drift], kind="stable").astype(np.int64)
        model = fitted.model.ordered(order)
        return _Known(model, scaling, tuple(range(model.states))), scores, fitted.objective

    def _follow(self, inputs: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        model = self._fitted().model
        if memory.dtype != np.float64 or memory.shape != (model.states,):
            raise AgentError(
                "the memory is not one of these macrostates",
                where=WHERE,
                found=f"{memory.dtype} {memory.shape}",
                expected=f"float64 ({model.states},)",
                remedy="Take a new one from begin() after each fit",
            )
        return model.filtered(self._rows(inputs), memory)

    def _rows(self, inputs: FloatArray) -> FloatArray:
        return self._fitted().scaling.applied(self._table(inputs), self.config.largest_score)

    def _table(self, inputs: FloatArray) -> FloatArray:
        if inputs.ndim != 2 or inputs.shape[1] != len(self.config.inputs):
            raise DataError(
                "the inputs of the macrostates have another shape",
                where=WHERE,
                found=inputs.shape,
                expected=f"rows of {', '.join(self.config.inputs)}",
                remedy="Take them with pick()",
            )
        return inputs

    def _fitted(self) -> _Known:
        if self._known is None:
            raise AgentError(
                "macrostates are asked for before any fit",
                where=WHERE,
                remedy="Call fit() on a past, or restore()",
            )
        return self._known


def _are_chances(transition: FloatArray) -> bool:
    sums = transition.sum(axis=1)
    return bool((transition > 0.0).all() and np.allclose(sums, 1.0, rtol=0.0, atol=1e-9))


def _are_ids(ids: tuple[int, ...], config: MacroConfig) -> bool:
    most = min(config.max_states, MOST_STATES)
    return len(set(ids)) == len(ids) >= 1 and all(0 <= number < most for number in ids)
