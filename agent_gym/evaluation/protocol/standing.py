"""Where a registered trial stands among all the looks that were taken at its market.

Everything here comes from the registry: the series of the trial, how many trials there were, how
far their Sharpe ratios lie apart. Nothing can be handed in, so no figure can be made for a trial
that was not entered.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.protocol.lockbox import LOCKBOX
from agent_gym.evaluation.protocol.trials import Trial, TrialRegistry
from agent_gym.evaluation.statistics import (
    Moments,
    dsr,
    effective_trials,
    min_track_record,
    moments,
    pbo,
    psr,
)

BLOCKS = 16


@dataclass(frozen=True, slots=True)
class Standing:
    """The figures of one trial that take the number of trials into account.

    Attributes:
        trial: Id of the entry.
        returns: Periods that the figures rest on, mostly days.
        sharpe: Yearly Sharpe ratio of the series; None where it does not vary.
        psr: Probability that the true ratio is above 0.
        dsr: The same above what luck shows as the best of ``trials``. The number of trials and the
            variance of their ratios go together: fewer clusters with the variance of all trials
            would call the best of a hundred kindred tries evidence.
        min_track_record: Periods it takes until such a ratio is above 0 with 95 %.
        trials: Different trials on the same stretch of the market, this one among them.
        effective_trials: Clusters of them whose returns go apart; for information.
        sharpe_variance: Variance of their ratios per period.
        pbo: Probability that the best of the trials on the same bench is among the worse half
            elsewhere in time.
        compared: Trials on that bench.
    """

    trial: str
    returns: int
    sharpe: float | None
    psr: float | None
    dsr: float | None
    min_track_record: float | None
    trials: int
    effective_trials: int
    sharpe_variance: float
    pbo: float | None
    compared: int

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


class Standings:
    """The registry as it is now; make a new one after registering more."""

    def __init__(self, registry: TrialRegistry) -> None:
        self._registry = registry
        self._trials = {trial.id: trial for trial in registry.trials()}
        self._series: dict[str, FloatArray] = {}
        self._pbo: dict[str, float | None] = {}
        self._effective: dict[str, int] = {}

    def of(self, trial_id: str) -> Standing:
        """Return where an entry stands; an id without an entry is a StoreError."""
        trial = self._entry(trial_id)
        family = [
            other
            for other in self._trials.values()
            if other.plan.market.meets(trial.plan.market) and other.per_year == trial.per_year
        ]
        found = [self._moments(other) for other in family]
        ratios = [each.sharpe for each in found if each is not None]
        spread = float(np.var(ratios, ddof=1)) if len(ratios) > 1 else 0.0
        benches = {other.plan.bench for other in family}
        count = max(1, sum(self._effective_on(bench) for bench in sorted(benches)))
        own = self._moments(trial)
        return Standing(
            trial=trial.id,
            returns=trial.n,
            sharpe=None if own is None else own.sharpe * math.sqrt(trial.per_year),
            psr=None if own is None else psr(own),
            dsr=None if own is None else dsr(own, max(1, len(ratios)), spread),
            min_track_record=None if own is None else min_track_record(own),
            trials=len(family),
            effective_trials=count,
            sharpe_variance=spread,
            pbo=self._overfitting(trial.plan.bench),
            compared=len(self._bench(trial.plan.bench)),
        )

    def lockbox_growth(self, trial_id: str) -> float | None:
        """Return the log growth of the same agent in the lockbox after the trial, None if unopened.

        If it was opened for several releases the first one counts: who opens again until it is
        above 0 finds that too.
        """
        opened = self._opened(self._entry(trial_id))
        return None if opened is None else self._growth(opened)

    def unseen_growth(self, trial_id: str) -> float | None:
        """Return that growth if nobody had looked at any of those bars before, else None."""
        opened = self._opened(self._entry(trial_id))
        if opened is None or any(self._looked(other, opened) for other in self._trials.values()):
            return None
        return self._growth(opened)

    def _opened(self, trial: Trial) -> Trial | None:
        own = trial.plan.market
        place = (own.name, own.kind, own.period_ns)
        for other in self._trials.values():
            plan, market = other.plan, other.plan.market
            if (
                plan.protocol.get("name") == LOCKBOX
                and (plan.agent, plan.costs) == (trial.plan.agent, trial.plan.costs)
                and place == (market.name, market.kind, market.period_ns)
                and market.first_ns > own.last_ns
            ):
                return other
        return None

    def _looked(self, other: Trial, opened: Trial) -> bool:
        """Say whether a trial tested bars of a lockbox before it was opened."""
        apart = other.plan.protocol != opened.plan.protocol
        return apart and other.at_ns <= opened.at_ns and other.plan.market.meets(opened.plan.market)

    def _growth(self, trial: Trial) -> float:
        returns = self._returns(trial)
        return float(np.log1p(np.maximum(returns, -1.0 + 1e-12)).sum())

    def _entry(self, trial_id: str) -> Trial:
        """Return an entry; one that was made after this view of the registry is taken in."""
        if trial_id not in self._trials:
            self._trials[trial_id] = self._registry.trial(trial_id)
            self._pbo.clear()
            self._effective.clear()
        return self._trials[trial_id]

    def _returns(self, trial: Trial) -> FloatArray:
        if trial.id not in self._series:
            self._series[trial.id] = self._registry.returns(trial)
        return self._series[trial.id]

    def _moments(self, trial: Trial) -> Moments | None:
        return moments(self._returns(trial))

    def _bench(self, bench: str) -> list[FloatArray]:
        """Return the series of all trials on a bench that ever moved."""
        return [
            self._returns(trial)
            for trial in self._trials.values()
            if trial.plan.bench == bench and self._moments(trial) is not None
        ]

    def _effective_on(self, bench: str) -> int:
        if bench not in self._effective:
            series = self._bench(bench)
            self._effective[bench] = effective_trials(np.column_stack(series)) if series else 0
        return self._effective[bench]

    def _overfitting(self, bench: str) -> float | None:
        if bench not in self._pbo:
            series = self._bench(bench)
            enough = len(series) > 1 and series[0].size >= 2 * BLOCKS
            self._pbo[bench] = pbo(np.column_stack(series), BLOCKS).pbo if enough else None
        return self._pbo[bench]
