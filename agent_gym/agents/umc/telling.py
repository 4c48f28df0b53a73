"""What UMC says about a decision: every term of its free energy as a signal, and a sentence."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.curiosity import View
from agent_gym.agents.umc.efe import (
    Actions,
    FreeEnergy,
    Market,
    Preference,
    g_lambda,
    outcome_floor,
    row_mixture,
    trading_cost,
)
from agent_gym.agents.umc.mind import Trace
from agent_gym.core.types import FloatArray

IN_BP = 1e4


def signals_of(
    config: UMCConfig, trace: Trace, levels: FloatArray, step: tuple[int, int], view: View
) -> dict[str, float]:
    """Return the signals of one decision; nats and returns are those of the next bar.

    Args:
        config: Of the agent.
        trace: What is believed, one row.
        levels: Positions to choose from.
        step: Places of the level held before and of the one chosen.
        view: What curiosity says.
    """
    held, chosen = step
    told = trace.told
    energy = bar_energy(config, trace, levels, held, view.lam)
    signals = {
        "expected_return": float(told.edge[0]),
        "expected_return_se": float(told.error[0]),
        "sigma": float(trace.series.sigma[0]),
        "coherence": float(trace.coherence[0]),
        "information_gain": view.information,
        "own_information": view.own_information,
        "lambda": view.lam,
        "lambda_used": view.lam_used,
        "slippage_bp": view.slippage_bp,
        "risk": float(energy.risk[chosen]),
        "ambiguity": float(energy.ambiguity[chosen]),
        "free_energy": float(energy.total[chosen]),
        "surprise": -float(told.score[0]) if np.isfinite(told.score[0]) else 0.0,
    }
    if trace.regimes.shape[1]:
        signals["regime"] = float(np.argmax(trace.regimes[0]))
        signals["regime_belief"] = float(trace.regimes[0].max())
    return signals


def bar_energy(
    config: UMCConfig, trace: Trace, levels: FloatArray, held: int, lam: float
) -> FreeEnergy:
    """Return the expected free energy of each level for the next bar alone."""
    sigma = float(trace.series.sigma[0])
    actions = Actions(
        levels, trading_cost(levels, float(levels[held]), config.cost_bp), outcome_floor(sigma)
    )
    told = trace.told
    weight = told.chance[0] / told.chance[0].sum()
    seen = row_mixture(weight, told.mean[0], told.variance[0])
    heads = np.arange(weight.size)
    market = Market(seen, np.zeros_like(heads), heads)
    return g_lambda(actions, market, Preference.of_kelly(config.kelly_fraction, sigma), lam)


def rationale_of(signals: dict[str, float], before: float, after: float) -> str:
    """Return a sentence about a decision."""
    edge, error = (IN_BP * signals[name] for name in ("expected_return", "expected_return_se"))
    what = f"keep {after:+g}" if after == before else f"from {before:+g} to {after:+g}"
    return f"{what}: the next bar is expected to bring {edge:+.2f} bp, give or take {error:.2f}"
