"""What can be known: Bayes' rule on the public posts, under the law that the snapshot states.

For a question this is exact: prices move by public posts and by noise, so they add nothing. For a
perpetual the move that is still to come follows a Kalman filter: posts add to it what the law
expects of them, and each tick shows a part of it under noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.markets.snapshot.law import Reading, read_post
from agent_gym.markets.snapshot.reaction import at_once
from agent_gym.markets.snapshot.types import Post, Snapshot


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the posts and prices up to each tick tell; one row a tick.

    ``beliefs`` are the chances of YES, ``to_come`` the expected log moves of the perpetuals after
    the tick, ``doubts`` the variances of these.
    """

    beliefs: FloatArray
    to_come: FloatArray
    doubts: FloatArray


def know(snapshot: Snapshot) -> Knowledge:
    """Return what a reader of everything public knows at each tick; row t uses ticks 0 to t."""
    rows = snapshot.ticks + 1
    beliefs = np.zeros((rows, len(snapshot.predictions)))
    for m, market in enumerate(snapshot.predictions):
        told = np.zeros(rows)
        for post in snapshot.posts:
            if post.market == market.id:
                told[post.tick] += reading_of(snapshot, post).evidence
        start = math.log(market.initial_price / (1.0 - market.initial_price))
        beliefs[:, m] = 1.0 / (1.0 + np.exp(-(start + np.cumsum(told))))
    to_come = np.zeros((rows, len(snapshot.perpetuals)))
    doubts = np.zeros_like(to_come)
    for m in range(len(snapshot.perpetuals)):
        to_come[:, m], doubts[:, m] = _moves_to_come(snapshot, m)
    return Knowledge(beliefs, to_come, doubts)


def reading_of(snapshot: Snapshot, post: Post) -> Reading:
    """Return the likelihoods of a post by the stated law."""
    config, author = snapshot.config, snapshot.author_of[post.author]
    return read_post(
        config.law(post.kind),
        author.reliability,
        post.band,
        post.sentiment,
        config.sentiment_noise,
    )


def _moves_to_come(snapshot: Snapshot, m: int) -> tuple[FloatArray, FloatArray]:
    config, rows = snapshot.config, snapshot.ticks + 1
    headline, mean, variance = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for post in snapshot.posts:
        if post.market == snapshot.perpetuals[m].id:
            law, reading = config.law(post.kind), reading_of(snapshot, post)
            way = reading.direction(law.up_share)
            moves = reading.moves(law.up_share)
            first = at_once(config, post, perpetual=True)
            headline[post.tick] += first
            mean[post.tick] += law.jump * way - first
            variance[post.tick] += law.jump**2 * (moves - way * way)
    returns = np.diff(np.log(snapshot.closes[:, m]), prepend=np.log(snapshot.closes[0, m]))
    rate, noise = config.rate, config.volatility**2
    expected, doubt = 0.0, 0.0
    to_come, doubts = np.zeros(rows), np.zeros(rows)
    for tick in range(1, rows):
        seen = returns[tick] - headline[tick] - rate * expected
        gain = rate * doubt / (rate * rate * doubt + noise)
        expected = (expected + gain * seen) * (1.0 - rate) + mean[tick]
        doubt = doubt * (1.0 - gain * rate) * (1.0 - rate) ** 2 + variance[tick]
        to_come[tick], doubts[tick] = expected, doubt
    return to_come, doubts
