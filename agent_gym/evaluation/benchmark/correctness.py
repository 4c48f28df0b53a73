"""Whether each action was right, said after the episode from the sealed truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_gym.envs.benchmark.records import ActionRecord
from agent_gym.markets.snapshot.sealed import Truth
from agent_gym.markets.snapshot.types import Snapshot

AHEAD_TICKS = 10
MATCH_TICKS = 2


def correctness(
    snapshot: Snapshot, truth: Truth, actions: Sequence[ActionRecord]
) -> list[dict[str, Any]]:
    """Return for each action that took a side how it turned out, in the order of the actions."""
    return [
        {"number": one.number, "tick": one.tick, "type": one.type, "market": one.market}
        | _judged(snapshot, truth, one)
        for one in actions
        if one.success and one.type in ("buy_prediction", "open_perp")
    ]


def _judged(snapshot: Snapshot, truth: Truth, action: ActionRecord) -> dict[str, Any]:
    market = action.market or ""
    if action.type == "buy_prediction":
        actual = truth.outcomes[market]
        predicted = action.side == "YES"
        real = 1.0 if actual else -1.0
        said: dict[str, Any] = {
            "predictionCorrect": predicted == actual,
            "actualOutcome": actual,
            "predictedOutcome": predicted,
        }
    else:
        change = price_change(snapshot, market, action.tick)
        wanted = 1.0 if action.side == "LONG" else -1.0
        real = max(-1.0, min(1.0, change / snapshot.config.report.jump))
        said = {
            "perpCorrect": change * wanted > 0.0,
            "priceChange": change,
            "expectedDirection": "up" if wanted > 0.0 else "down",
        }
    return said | {
        "sentimentAtTrade": action.sentiment,
        "sentimentAtTime": action.sentiment,
        "actualSentiment": real,
        "sentimentAccuracy": 1.0 - 0.5 * abs(action.sentiment - real),
    }


def price_change(snapshot: Snapshot, market: str, tick: int) -> float:
    """Return how a perpetual's price went in the next ten ticks, as a share of it."""
    place = [one.id for one in snapshot.perpetuals].index(market)
    prices = snapshot.closes[:, place]
    later = min(tick + AHEAD_TICKS, snapshot.ticks)
    return float(prices[later] / prices[tick] - 1.0)


def optimality(truth: Truth, actions: Sequence[ActionRecord]) -> float:
    """Return the share of optimal actions that were taken, 0 to 100.

    An action matches within two ticks, on the same market **and the same side**.
    """
    if not truth.optimal_actions:
        return 0.0
    done = [one for one in actions if one.success]
    matched = sum(
        any(
            one.type == best.type
            and one.market == best.target
            and one.side == best.side
            and abs(one.tick - best.tick) <= MATCH_TICKS
            for one in done
        )
        for best in truth.optimal_actions
    )
    return 100.0 * matched / len(truth.optimal_actions)
