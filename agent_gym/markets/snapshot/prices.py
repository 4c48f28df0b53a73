"""How prices come about: two crowds in each question, news and noise in each perpetual.

Whatever moves a price is either public (a post, as the stated law reads it) or independent of the
truth. So a price tells nothing about an outcome that the posts before it do not.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.news import Drawn
from agent_gym.markets.snapshot.reaction import at_once, evidence_of
from agent_gym.markets.snapshot.types import (
    Author,
    Columns,
    PerpetualSpec,
    Post,
    PredictionSpec,
    Whole,
)

SUREST = 5.0  # logit beyond which nobody bets


def crowd_flows(
    config: SnapshotConfig,
    market: PredictionSpec,
    authors: dict[str, Author],
    posts: list[Post],
    seeds: Seeds,
) -> tuple[Whole, Whole]:
    """Return the YES shares that both crowds buy in each tick: the unread, and the readers.

    Readers close a share of the gap between price and belief; they know the posts of earlier
    ticks. The others trade for no reason, or by a headline.
    """
    rng = seeds.child("crowd", market.id).rng()
    shocks = config.flow_noise * rng.standard_normal(config.ticks + 1)
    heard, told = np.zeros(config.ticks + 1), np.zeros(config.ticks + 1)
    for post in posts:
        heard[post.tick] += at_once(config, post, perpetual=False)
        told[post.tick] += evidence_of(config, authors[post.author], post)
    start = math.log(market.initial_price / (1.0 - market.initial_price))
    noise, informed = (np.zeros(config.ticks + 1, dtype=np.int64) for _ in range(2))
    belief, shares, b = start, 0, market.liquidity
    for tick in range(1, market.resolve_tick):
        price = start + shares / b
        wanted = min(max(belief, -SUREST), SUREST) - price
        informed[tick] = round(b * config.rate * wanted)
        noise[tick] = round(b * (shocks[tick] + heard[tick]))
        shares += int(informed[tick] + noise[tick])
        belief += told[tick]
    return noise, informed


def perpetual_path(
    config: SnapshotConfig, market: PerpetualSpec, news: list[Drawn], seeds: Seeds
) -> tuple[Whole, Whole, Whole, Whole]:
    """Return close, reach above, reach below and volume of each tick, as whole numbers.

    A post moves the price at once by its headline; what is missing to the true move, or too much,
    follows over the next ticks.
    """
    rng = seeds.child("path", market.id).rng()
    n = config.ticks + 1
    shocks, above, below, trading = rng.standard_normal((4, n))
    first = np.zeros(n)
    later = np.zeros(n)
    for drawn in news:
        headline = at_once(config, drawn.post, perpetual=True)
        first[drawn.post.tick] += headline
        later[drawn.post.tick] += drawn.move - headline
    moves = np.zeros(n)
    rest = 0.0
    for tick in range(1, n):
        moves[tick] = config.volatility * shocks[tick] + first[tick] + config.rate * rest
        rest += later[tick] - config.rate * rest
    start = market.initial_price / market.price_step
    close = np.maximum(1, np.rint(start * np.exp(np.cumsum(moves)))).astype(np.int64)
    wick = 0.5 * config.volatility * close
    up = np.rint(wick * np.abs(above)).astype(np.int64)
    down = np.minimum(np.rint(wick * np.abs(below)).astype(np.int64), close // 2)
    volume = np.rint(1e5 * np.exp(0.3 * trading + 20.0 * np.abs(moves))).astype(np.int64)
    return close, up, down, volume


def draw_columns(
    config: SnapshotConfig,
    predictions: tuple[PredictionSpec, ...],
    perpetuals: tuple[PerpetualSpec, ...],
    authors: tuple[Author, ...],
    news: tuple[Drawn, ...],
    seeds: Seeds,
) -> Columns:
    """Return the numbers of all ticks."""
    by_id = {author.id: author for author in authors}
    flows = [
        crowd_flows(
            config, market, by_id, [d.post for d in news if d.post.market == market.id], seeds
        )
        for market in predictions
    ]
    paths = [
        perpetual_path(config, market, [d for d in news if d.post.market == market.id], seeds)
        for market in perpetuals
    ]
    noise, informed = (np.column_stack(part) for part in zip(*flows, strict=True))
    close, up, down, volume = (np.column_stack(part) for part in zip(*paths, strict=True))
    return Columns(noise, informed, close, up, down, volume)
