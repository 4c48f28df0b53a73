"""``BenchmarkDataGenerator``: a config and a seed give a snapshot and its sealed truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.cast import (
    draw_authors,
    draw_groups,
    draw_perpetuals,
    draw_predictions,
)
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.content import content_hash
from agent_gym.markets.snapshot.news import Drawn, draw_news
from agent_gym.markets.snapshot.prices import draw_columns
from agent_gym.markets.snapshot.public_file import body_of, save_snapshot
from agent_gym.markets.snapshot.reaction import at_once
from agent_gym.markets.snapshot.sealed import (
    HiddenPost,
    OptimalAction,
    SocialOpportunity,
    Truth,
    save_truth,
)
from agent_gym.markets.snapshot.types import PredictionSpec, Resolution, Snapshot

WORTH_DOING = 0.5  # optimal actions are those with at least this share of a report's jump left
WEIGHTY = 1.6


@dataclass(frozen=True, slots=True)
class Made:
    """A snapshot and the truth that belongs to it."""

    snapshot: Snapshot
    truth: Truth

    def save(self, folder: Path) -> Path:
        """Write both files; returns the path of the public one."""
        save_truth(self.truth, self.snapshot, folder)
        return save_snapshot(self.snapshot, folder)


class BenchmarkDataGenerator:
    """Makes snapshots; equal config and seed give equal bytes, whenever and wherever.

    Example:
        >>> make = BenchmarkDataGenerator(SnapshotConfig(scenario="quiet"))
        >>> make.generate(0).snapshot.id == make.generate(0).snapshot.id
        True
        >>> make.generate(0).snapshot.id == make.generate(1).snapshot.id
        False
    """

    def __init__(self, config: SnapshotConfig | None = None) -> None:
        self.config = config or SnapshotConfig()

    def generate(self, seed: int) -> Made:
        """Return the snapshot of a seed; 0 is a seed like any other."""
        config = self.config
        seeds = Seeds(seed).child("snapshot", config.scenario)
        predictions = draw_predictions(config, seeds)
        perpetuals = draw_perpetuals(config, seeds)
        authors = draw_authors(config, seeds)
        outcomes = {one.id: _answer(one, seeds) for one in predictions}
        news = draw_news(config, (*predictions, *perpetuals), authors, outcomes, seeds)
        snapshot = Snapshot(
            id="",
            config=config,
            predictions=predictions,
            perpetuals=perpetuals,
            authors=authors,
            groups=draw_groups(authors, seeds),
            posts=tuple(drawn.post for drawn in news),
            resolutions=tuple(
                Resolution(one.resolve_tick, one.id, "yes" if outcomes[one.id] else "no")
                for one in predictions
            ),
            columns=draw_columns(config, predictions, perpetuals, authors, news, seeds),
            truth_hash="",
        )
        truth = _truth(seed, snapshot, outcomes, news)
        sealed = replace(snapshot, truth_hash=truth.hash)
        return Made(replace(sealed, id=content_hash(body_of(sealed))), truth)


def _answer(market: PredictionSpec, seeds: Seeds) -> bool:
    return bool(seeds.child("outcome", market.id).rng().random() < market.initial_price)


def _truth(
    seed: int, snapshot: Snapshot, outcomes: dict[str, bool], news: tuple[Drawn, ...]
) -> Truth:
    hidden = tuple(
        HiddenPost(one.post.id, one.evidence, one.noise, one.turned, one.move) for one in news
    )
    actions = [
        *_best_bets(snapshot, outcomes),
        *(action for drawn in news for action in _best_positions(snapshot, drawn)),
    ]
    chances = [
        SocialOpportunity(0, "group_invite", 0.0, f"{group.name} can be joined")
        for group in snapshot.groups
    ] + [
        SocialOpportunity(
            one.post.tick, "insider_signal", abs(one.evidence), f"true post on {one.post.market}"
        )
        for one in news
        if not one.noise and not one.turned and abs(one.evidence) >= WEIGHTY
    ]
    return Truth(
        seed,
        outcomes,
        hidden,
        tuple(sorted(actions, key=lambda one: (one.tick, one.target))),
        tuple(sorted(chances, key=lambda one: one.tick)),
    )


def _best_bets(snapshot: Snapshot, outcomes: dict[str, bool]) -> list[OptimalAction]:
    """Return for each question when the right side was cheapest."""
    found = []
    for m, market in enumerate(snapshot.predictions):
        flow = snapshot.columns.noise[:, m] + snapshot.columns.informed[:, m]
        start = math.log(market.initial_price / (1.0 - market.initial_price))
        logit = start + np.cumsum(flow[: market.resolve_tick]) / market.liquidity
        right = 1.0 / (1.0 + np.exp(-logit if outcomes[market.id] else logit))
        tick = int(np.argmin(right))
        side = "YES" if outcomes[market.id] else "NO"
        gain = float(1.0 - right[tick])
        found.append(
            OptimalAction(tick, "buy_prediction", market.id, side, gain, "the right side, cheapest")
        )
    return found


def _best_positions(snapshot: Snapshot, drawn: Drawn) -> list[OptimalAction]:
    """Return the position that what was left of a post's move was worth."""
    post = drawn.post
    if post.market in {one.id for one in snapshot.predictions}:
        return []
    rest = drawn.move - at_once(snapshot.config, post, perpetual=True)
    if abs(rest) < WORTH_DOING * snapshot.config.report.jump:
        return []
    side = "LONG" if rest > 0.0 else "SHORT"
    reason = "the price had not taken it in" if drawn.move else "the price had believed noise"
    return [OptimalAction(post.tick, "open_perp", post.market, side, abs(rest), reason)]
