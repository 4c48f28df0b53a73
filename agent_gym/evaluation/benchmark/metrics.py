"""The figures of one episode, and the validator that reckons them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.envs.benchmark.floor import Floor
from agent_gym.envs.benchmark.records import Position
from agent_gym.evaluation.benchmark.correctness import optimality
from agent_gym.markets.snapshot.sealed import Truth

WON, LOST = 10, -5
CLOSE_ENOUGH = 0.01


@dataclass(frozen=True, slots=True)
class EpisodeAccount:
    """What is left of an episode for the scorer: the floor after it, and equity at each tick."""

    floor: Floor
    equity: tuple[float, ...]


def score(account: EpisodeAccount, truth: Truth) -> dict[str, Any]:
    """Return the metrics of an episode; the keys are those that users of such benchmarks know."""
    floor = account.floor
    positions = list_positions(floor)
    questions = {one.id for one in floor.snapshot.predictions}
    bets = [one for one in positions if one["marketId"] in questions]
    rides = [one for one in positions if one["marketId"] not in questions]
    right = sum(_is_right(one, truth) for one in bets)
    wins = sum(one["pnl"] > 0.0 for one in rides)
    return {
        "totalPnl": account.equity[-1] - account.equity[0],
        "totalReturn": account.equity[-1] / account.equity[0] - 1.0,
        "maxDrawdown": max_drawdown(account.equity),
        "fees": sum(one["fees"] for one in positions),
        "funding": floor.desk.account.funding,
        "liquidations": sum(one["liquidated"] for one in rides),
        "invalidCalls": floor.invalid,
        "actions": len(floor.actions),
        "predictionMetrics": {
            "totalPositions": len(bets),
            "correctPredictions": right,
            "incorrectPredictions": len(bets) - right,
            "accuracy": _share(right, len(bets)),
            "avgPnlPerPosition": _mean([one["pnl"] for one in bets]),
        },
        "perpMetrics": {
            "totalTrades": len(rides),
            "profitableTrades": wins,
            "winRate": _share(wins, len(rides)),
            "avgPnlPerTrade": _mean([one["pnl"] for one in rides]),
            "maxDrawdown": max_drawdown(account.equity),
        },
        "socialMetrics": {
            "postsCreated": sum(one.type == "create_post" and one.success for one in floor.actions),
            "groupsJoined": sum(one.type == "join_group" and one.success for one in floor.actions),
            "reputationGained": WON * right + LOST * (len(bets) - right),
        },
        "optimalityScore": optimality(truth, floor.actions),
    }


def list_positions(floor: Floor) -> list[dict[str, Any]]:
    """Return every position of an episode; one still open counts as sold at the last price."""
    rows = [where.as_dict() for where in floor.book.closed]
    rows.extend(
        where.as_dict() | {"pnl": where.flow + _left(floor, where)}
        for where in floor.book.open.values()
    )
    return rows


def _left(floor: Floor, where: Position) -> float:
    m = floor.snapshot.market_ids.index(where.market)
    if m < floor.n_questions:
        return floor.worth(m) - floor.held[m].cash
    return where.size * floor.prices[m] * (1.0 if where.side == "LONG" else -1.0)


def max_drawdown(equity: Sequence[float]) -> float:
    """Return the largest loss from a former peak, over time, as a share of the peak.

    Example:
        >>> max_drawdown([100.0, 120.0, 90.0, 130.0])
        0.25
    """
    path = np.asarray(equity, dtype=np.float64)
    peak = np.maximum.accumulate(path)
    return float(np.max(1.0 - path / peak))


def validate(metrics: dict[str, Any], account: EpisodeAccount, truth: Truth) -> list[str]:
    """Reckon the figures again from positions, actions and equity; say in words what differs."""
    floor, found = account.floor, []
    positions = list_positions(floor)
    questions = {one.id for one in floor.snapshot.predictions}
    bets = [one for one in positions if one["marketId"] in questions]
    rides = [one for one in positions if one["marketId"] not in questions]
    right = sum(_is_right(one, truth) for one in bets)
    low, peak = 0.0, account.equity[0]
    for now in account.equity:
        peak = max(peak, now)
        low = max(low, 1.0 - now / peak)
    wins = sum(one["pnl"] > 0.0 for one in rides)
    expected: dict[tuple[str, str], float | None] = {
        ("predictionMetrics", "accuracy"): _share(right, len(bets)),
        ("perpMetrics", "winRate"): _share(wins, len(rides)),
        ("perpMetrics", "maxDrawdown"): low,
    }
    for (group, name), value in expected.items():
        stated: float | None = metrics[group][name]
        same = stated == value if stated is None or value is None else _near(stated, value)
        if not same:
            found.append(f"{group}.{name} is {stated}, reckoned again {value}")
    purse = floor.desk.account
    paid = sum(one["pnl"] for one in positions) - purse.funding + purse.insurance
    if abs(paid - metrics["totalPnl"]) > CLOSE_ENOUGH * floor.config.cash:
        found.append(f"positions earned {paid:.2f}, equity {metrics['totalPnl']:.2f}")
    return found


def _is_right(position: dict[str, Any], truth: Truth) -> bool:
    return bool((position["side"] == "YES") == truth.outcomes[position["marketId"]])


def _near(stated: float, value: float) -> bool:
    return abs(stated - value) <= CLOSE_ENOUGH


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
