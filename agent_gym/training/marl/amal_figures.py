"""What AMAL tells of every iteration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AmalFigures:
    """One iteration; None where there is nothing to tell.

    Attributes:
        iteration: Which one.
        env_steps: Of all environments up to its end, auxiliary ones included.
        leaks: Rows that the model learned from and that were not the primary team's.
        model_r2: On held-out episodes, against the forecast that nothing changes.
        model_nll: On held-out episodes, nats.
        information: Mean of a primary step, nats (before the model learned from it).
        information_ratio: The same as a share of the reference.
        saturated: Share of steps that say as much as can be said.
        calibration: Rank correlation of a step's information and of what learning took off the
            surprise there (negative log-likelihood), over steps after which the battle went on.
        lambda_info: What the bonus counted.
        auxiliary_share: Of all steps so far.
        cem_generation: Number of the present generation.
        cem_kl: Median divergence of auxiliary teams from the primary one, nats.
        cem_jsd: Mean divergence of pairs of them, nats.
        cem_pulled_back: How many were too far away.
        cem_return: Mean return of the generation that ended last.
        cem_elite_gain: Elites' mean return less that mean, in the episodes they were chosen by.
        ess: Effective share of auxiliary samples.
        used: Share of the living's auxiliary rows that were learned from.
    """

    iteration: int
    env_steps: int
    leaks: int
    model_r2: float | None
    model_nll: float | None
    information: float
    information_ratio: float | None
    saturated: float
    calibration: float | None
    lambda_info: float
    auxiliary_share: float
    cem_generation: int | None
    cem_kl: float | None
    cem_jsd: float | None
    cem_pulled_back: int | None
    cem_return: float | None
    cem_elite_gain: float | None
    ess: float | None
    used: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
