"""Memories of a desk and tables that tests of the learning layer share."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.desk import (
    AgentResponse,
    Outcome,
    PnLSnapshot,
    RecentContext,
    RejectCode,
    Rejection,
    Signal,
    SignalParams,
)
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk.config import TrainingConfig
from tests.samples import START_NS

START = START_NS / SECOND_NS
QUICK = TrainingConfig(
    window_days=36_500.0, half_life_days=36_500.0, stability_folds=0, bootstrap_reps=500
)
CODES = (RejectCode.RISK_EXPOSURE_LIMIT, RejectCode.MARKET_SPREAD_TOO_WIDE)


def signal_at(at: float, name: str, **params: object) -> Signal:
    given = {"amount": 0.1, "price": 100.0} | params
    strategy = str(given.pop("strategy", "momentum"))
    return Signal(name, strategy, SignalParams(**given), at)  # type: ignore[arg-type]


def busy_records(n: int, seed: int = 0, every_s: float = 5400.0) -> list[tuple[str, float, object]]:
    """Return what a desk of some days would store: kind, time known, record."""
    rng = Seeds(seed).child("busy").rng()
    told: list[tuple[str, float, object]] = []
    equity = 10_000.0
    for i in range(n):
        at = START + 60 * 3600.0 + i * every_s
        strategy = ("carry", "momentum")[int(rng.integers(2))]
        side = ("buy", "sell")[int(rng.integers(2))]
        signal = signal_at(
            at, f"s{i}", strategy=strategy, side=side, amount=float(rng.uniform(0.01, 1.0))
        )
        told.append(("signal", at, signal))
        fate = int(rng.integers(4))
        if fate == 0:
            code = CODES[int(rng.integers(2))]
            told.append(("rejection", at, Rejection(f"s{i}", code, at, strategy=strategy)))
        elif fate == 1:
            late = at + float(rng.uniform(1.0, 40.0)) * 3600.0
            pnl = {"24h": float(rng.normal(0.0, 1.0))}
            outcome = Outcome(
                f"s{i}",
                "win" if pnl["24h"] > 0 else "loss",
                signal.params.amount,
                100.0,
                pnl_horizon=pnl,
                closed_at=at + 3600.0,
            )
            told.append(("outcome", late, outcome))
        if i % 5 == 0:
            equity *= 1.0 + float(rng.normal(0.0, 0.01))
            told.append(("pnl", at, PnLSnapshot(at, equity, equity / 2, 0.5, 0.01)))
            answer = AgentResponse(f"t{i}", "risk", "ok", latency_ms=float(rng.uniform(5, 50)))
            told.append(("response", at, answer))
    return sorted(told, key=lambda item: item[1])


def remembered(told: list[tuple[str, float, object]]) -> RecentContext:
    """Return a context to which all of it was told."""
    ctx = RecentContext(maxlen=100_000)
    for kind, at, record in told:
        getattr(ctx, f"store_{kind}")(record, known_at=at)
    return ctx


def rising(n: int, step: float = 0.001, noise: float = 0.0005) -> np.ndarray:
    rng = Seeds(3).child("rising").rng()
    return 100.0 * np.exp(np.cumsum(step + noise * rng.standard_normal(n)))
