"""What UMC says about a decision: every term of its free energy as a signal, and a sentence."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.curiosity import View
from agent_gym.agents.umc.efe import (
    Actions,
    FreeEnergy,
    Market,
    Mixture,
    Preference,
    g_lambda,
    gaussian_entropy,
    outcome,
    outcome_floor,
    pragmatic_cost,
    row_mixture,
    trading_cost,
)
from agent_gym.agents.umc.mind import Trace
from agent_gym.core.types import FloatArray

IN_BP = 1e4


def signals_of(
    config: UMCConfig,
    trace: Trace,
    levels: FloatArray,
    step: tuple[int, int],
    view: View,
) -> dict[str, float]:
    """Return the signals of one decision; nats and returns are those of the next bar.

    Risk and free energy are counted from those of holding nothing, surprise and ambiguity in
    deviations of a bar, so that a calm market and a wild one can be compared.

    Args:
        config: Of the agent.
        trace: What is believed, one row.
        levels: Positions to choose from.
        step: Places of the level held before and of the one chosen.
        view: What curiosity says.
    """
    held, chosen = step
    told = trace.told
    cost = pragmatic_cost(*_expected(config, trace, levels, held))
    out = int(np.flatnonzero(levels == 0.0)[0])
    risk = float(cost[chosen] - cost[out])
    signals = {
        "expected_return": float(told.edge[0]),
        "expected_return_se": float(told.error[0]),
        "sigma": float(trace.series.sigma[0]),
        "information_gain": view.information,
        "lambda": view.lam,
        "risk": risk,
        "ambiguity": _ambiguity(trace, view.information),
        "free_energy": risk - view.lam_used * view.own_information,
        "surprise": _surprise(trace),
    }
    if view.place is not None:
        signals["lambda_used"] = view.lam_used
        signals["own_information"] = view.own_information
        signals["slippage_bp"] = view.slippage_bp
    if trace.regimes.shape[1]:
        signals["regime"] = float(np.argmax(trace.regimes[0]))
        signals["regime_belief"] = float(trace.regimes[0].max())
    return signals


def bar_energy(
    config: UMCConfig, trace: Trace, levels: FloatArray, held: int, lam: float
) -> FreeEnergy:
    """Return the expected free energy of each level for the next bar alone, in deviations of it."""
    actions, market, preference = _terms(config, trace, levels, held)
    return g_lambda(actions, market, preference, lam)


def _terms(
    config: UMCConfig, trace: Trace, levels: FloatArray, held: int
) -> tuple[Actions, Market, Preference]:
    sigma, told = float(trace.series.sigma[0]), trace.told
    cost = trading_cost(levels, float(levels[held]), config.cost_bp) / sigma
    weight = told.chance[0] / told.chance[0].sum()
    seen = row_mixture(weight, told.mean[0] / sigma, told.variance[0] / sigma**2)
    heads = np.arange(weight.size)
    preferred = Preference.of_kelly(config.kelly_fraction, sigma)
    preference = Preference(preferred.mean / sigma, preferred.deviation / sigma)
    actions = Actions(levels, cost, outcome_floor(1.0))
    return actions, Market(seen, np.zeros_like(heads), heads), preference


def _expected(
    config: UMCConfig, trace: Trace, levels: FloatArray, held: int
) -> tuple[Mixture, Preference]:
    actions, market, preference = _terms(config, trace, levels, held)
    return outcome(actions, market), preference


def _surprise(trace: Trace) -> float:
    """Return how unlikely the bar was, in deviations; 0 for the first, as nothing was foretold."""
    score = float(trace.told.score[0] + np.log(trace.series.expected_sigma[0]))
    return -score if np.isfinite(score) else 0.0


def _ambiguity(trace: Trace, information: float) -> float:
    """Return the entropy of the bar, of its heads and of which of them is right, and of the floor.

    It is the same for every level: what a bar shows does not hang on what is held.
    """
    told, sigma = trace.told, float(trace.series.sigma[0])
    heads = gaussian_entropy(told.variance[0] / sigma**2)
    shown = float((told.chance[0] * heads).sum()) + information
    return shown + float(gaussian_entropy(outcome_floor(1.0) ** 2))


def rationale_of(signals: dict[str, float], before: float, after: float) -> str:
    """Return a sentence about a decision."""
    edge, error = (IN_BP * signals[name] for name in ("expected_return", "expected_return_se"))
    what = f"keep {after:+g}" if after == before else f"from {before:+g} to {after:+g}"
    return f"{what}: the next bar is expected to bring {edge:+.2f} bp, give or take {error:.2f}"
