"""What can be earned in a known market after costs, and the decisions that earn it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.oracle.plan import Plan, plan_of, solved
from agent_gym.evaluation.oracle.solution import Solution, resized, solve
from agent_gym.markets.known import Drawn, full_name, known_config
from agent_gym.markets.known.config import BP, PERIOD_NS, BreakConfig
from agent_gym.markets.periods import bars_per_year


@dataclass(frozen=True, slots=True)
class Attainable:
    """The best that can be done in the long run, in one unit or none, by who sees what agents see.

    Attributes:
        market: Name of the market.
        attainable_bp_per_bar: Net gain a bar, in basis points of what is held.
        sharpe: Net gain over its deviation, a year; None where nothing is ever held.
        turnover_per_bar: Traded a bar, in units of what is held when long; like the Sharpe None
            where trades are too rare to say.
        oracle_sharpe: The same for one who is told the hidden state; None if nothing is hidden.
        bands: Where the policy turns long from out (enter) and until where it stays long (hold),
            in the direction that speaks for it; empty where it never does.
        seconds: How long the answer took.
    """

    market: str
    attainable_bp_per_bar: float
    sharpe: float | None
    turnover_per_bar: float | None
    oracle_sharpe: float | None
    bands: dict[str, float]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def attainable(ref: Ref, cost_bp: float, *, allow_short: bool = True) -> Attainable:
    """Return what can be earned in a known market when every trade costs ``cost_bp``.

    Example:
        >>> found = attainable(Ref(use="known/m1"), cost_bp=5)
        >>> round(found.attainable_bp_per_bar, 2), round(found.bands["enter_belief"], 2)
        (2.66, 0.59)
    """
    clock = SystemClock()
    began = clock.monotonic_s()
    found = solved(ref, cost_bp, allow_short=allow_short)
    plan, best = found.plan, found.best
    told = None
    if plan.told is not None:
        truth = solve(plan.told.chain, cost_bp * BP, allow_short=allow_short)
        told = _sharpe(truth, plan.share)
    return Attainable(
        market=full_name(ref.use),
        attainable_bp_per_bar=plan.share * best.gain / BP,
        sharpe=_sharpe(best, plan.share),
        turnover_per_bar=plan.share * best.turnover if best.figures_known else None,
        oracle_sharpe=told,
        bands=_bands(plan, best),
        seconds=clock.monotonic_s() - began,
    )


def optimal_targets(
    ref: Ref, drawn: Drawn, cost_bp: float, *, allow_short: bool = True
) -> FloatArray:
    """Return the best decisions on a drawn path: one target a close, made from what was shown.

    Open shorts are brought back to size once a day, so that the venue earns what the optimum says.
    In B1 they end with the drift: when it breaks is taken as known, and nothing is left after it.
    """
    found = solved(ref, cost_bp, allow_short=allow_short)
    shown = drawn.bars.columns()[found.plan.filter.column]
    xs, ys = found.plan.filter.states(shown.copy(), found.plan.filter.begin())
    return _finished(ref, drawn, found.best.targets(xs, ys, np.zeros(1)))


def regime_targets(
    ref: Ref, drawn: Drawn, cost_bp: float, *, allow_short: bool = True
) -> FloatArray:
    """Return the best decisions of one who is told the hidden state of the bar to come."""
    told = plan_of(ref).told
    if told is None:
        raise ConfigError(
            "nothing is hidden in this market, so there is nothing to be told",
            where=f"market {full_name(ref.use)}",
            remedy="Take optimal_targets",
        )
    xs, ys = told.states(drawn)
    best = solve(told.chain, cost_bp * BP, allow_short=allow_short)
    return _finished(ref, drawn, best.targets(xs, ys, np.zeros(1)))


def _finished(ref: Ref, drawn: Drawn, targets: FloatArray) -> FloatArray:
    if isinstance(known_config(ref), BreakConfig):
        ahead = np.append(drawn.truth["broken"][1:], 1.0)
        targets = np.where(ahead > 0.0, 0.0, targets)
    return resized(targets)


def _sharpe(best: Solution, share: float) -> float | None:
    mean, square = share * best.gain, share * best.square
    if not (best.figures_known and square > mean**2):
        return None
    return float(mean / (square - mean**2) ** 0.5 * bars_per_year(PERIOD_NS) ** 0.5)


def _bands(plan: Plan, best: Solution) -> dict[str, float]:
    if plan.band is None:
        return {}
    enter, hold = (best.band(held, second=plan.second) for held in (0.0, 1.0))
    if enter is None or hold is None:
        return {}
    return {f"enter_{plan.band}": enter / plan.unit, f"hold_{plan.band}": hold / plan.unit}
