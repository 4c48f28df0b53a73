"""The stated reaction of prices to posts, and of funding to prices: public, as the law is."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.types import FloatArray
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.law import read_post
from agent_gym.markets.snapshot.types import Author, Post

LOUDEST = 3.0  # beyond this sentiment the unread reaction does not grow
FUNDING_HOURS = 8
FUNDING_CAP = 20e-4
FUNDING_PULL = 0.02


def at_once(config: SnapshotConfig, post: Post, *, perpetual: bool) -> float:
    """Return what a price does in the tick of a post, by its headline alone: logit, or log move."""
    if perpetual:
        return config.at_once * config.law(post.kind).jump * math.tanh(0.5 * post.sentiment)
    return config.at_once * min(max(post.sentiment, -LOUDEST), LOUDEST)


def evidence_of(config: SnapshotConfig, author: Author, post: Post) -> float:
    """Return the log-likelihood ratio of a post for its question, by the stated law."""
    law = config.law(post.kind)
    reading = read_post(law, author.reliability, post.band, post.sentiment, config.sentiment_noise)
    return reading.evidence


def funding_rates(config: SnapshotConfig, closes: FloatArray) -> FloatArray:
    """Return the rate that the next payment would have, at each tick: known from prices so far."""
    every = funding_ticks(config)
    rows = np.arange(len(closes))
    past = np.maximum(rows - every, 0)
    trend = np.log(closes / closes[past])
    rates: FloatArray = np.clip(
        1e-4 * config.funding_base_bps + FUNDING_PULL * trend, -FUNDING_CAP, FUNDING_CAP
    )
    return rates


def funding_ticks(config: SnapshotConfig) -> int:
    """Return the ticks from one funding payment to the next."""
    return max(1, FUNDING_HOURS * HOUR_NS // (config.tick_interval_s * SECOND_NS))
