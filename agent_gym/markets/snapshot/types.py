"""A snapshot as its players meet it: markets, authors, posts, flows and prices, tick by tick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.types import FloatArray, Nanos
from agent_gym.markets.snapshot.config import AuthorKind, SnapshotConfig

VERSION = "1.0.0"
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PredictionSpec:
    """A yes-or-no question; it is resolved at a tick that everybody knows."""

    id: str
    question: str
    topic: str
    initial_price: float
    liquidity: float
    resolve_tick: int


@dataclass(frozen=True, slots=True)
class PerpetualSpec:
    """A perpetual contract; its prices are whole numbers of ``price_step``."""

    id: str
    ticker: str
    initial_price: float
    price_step: float


@dataclass(frozen=True, slots=True)
class Author:
    """Another agent; ``reliability`` is how often it says which way the truth lies, as is known."""

    id: str
    name: str
    kind: AuthorKind
    reliability: float
    reputation: int


@dataclass(frozen=True, slots=True)
class Post:
    """What somebody wrote about a market; a positive sentiment speaks for YES, or for a rise."""

    id: str
    tick: int
    author: str
    market: str
    kind: str
    band: int
    sentiment: float
    wording: int


@dataclass(frozen=True, slots=True)
class Group:
    """A chat of some agents; its messages repeat posts that everybody can see."""

    id: str
    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """At its tick, and not before, everybody learns the answer of a question."""

    tick: int
    market: str
    outcome: Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Columns:
    """The numbers of all ticks, one row a tick: whole shares, price steps and units.

    ``noise`` and ``informed`` are the YES shares that the two crowds buy (negative: NO shares) in a
    prediction market. ``close`` is a perpetual's price; ``up`` and ``down`` say how far it went
    beyond open and close within the tick. Row 0 is the state before the first tick.
    """

    noise: Whole
    informed: Whole
    close: Whole
    up: Whole
    down: Whole
    volume: Whole


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A recorded market place without its sealed truth; ``id`` is the hash of all that is here."""

    id: str
    config: SnapshotConfig
    predictions: tuple[PredictionSpec, ...]
    perpetuals: tuple[PerpetualSpec, ...]
    authors: tuple[Author, ...]
    groups: tuple[Group, ...]
    posts: tuple[Post, ...]
    resolutions: tuple[Resolution, ...]
    columns: Columns
    truth_hash: str

    @property
    def ticks(self) -> int:
        """Return the number of ticks after tick 0."""
        return self.config.ticks

    @property
    def tick_ns(self) -> int:
        """Return the simulated time between two ticks."""
        return self.config.tick_interval_s * SECOND_NS

    def time(self, tick: int) -> Nanos:
        """Return the simulated time of a tick."""
        return Nanos(self.config.start_ns + tick * self.tick_ns)

    @cached_property
    def market_ids(self) -> tuple[str, ...]:
        """Return all markets in their fixed order: questions first, then perpetuals."""
        return (*(one.id for one in self.predictions), *(one.id for one in self.perpetuals))

    @cached_property
    def author_of(self) -> dict[str, Author]:
        """Return the authors by id."""
        return {author.id: author for author in self.authors}

    @cached_property
    def posts_at(self) -> tuple[tuple[Post, ...], ...]:
        """Return the posts of each tick."""
        rows: list[list[Post]] = [[] for _ in range(self.ticks + 1)]
        for post in self.posts:
            rows[post.tick].append(post)
        return tuple(tuple(row) for row in rows)

    @cached_property
    def closes(self) -> FloatArray:
        """Return the perpetuals' prices, one row a tick."""
        steps = np.array([one.price_step for one in self.perpetuals])
        prices: FloatArray = np.round(self.columns.close * steps, 10)
        return prices

    def events(self, tick: int) -> Iterator[dict[str, Any]]:
        """Yield what happens in a tick, as events."""
        for m, market in enumerate(self.predictions):
            for crowd in ("noise", "informed"):
                shares = int(getattr(self.columns, crowd)[tick, m])
                if shares:
                    yield {
                        "type": "market:trade",
                        "marketId": market.id,
                        "agentId": f"crowd-{crowd}",
                        "outcome": "YES" if shares > 0 else "NO",
                        "amount": abs(shares),
                    }
        for m, perpetual in enumerate(self.perpetuals):
            if tick > 0:
                yield {
                    "type": "price:updated",
                    "ticker": perpetual.ticker,
                    "oldPrice": float(self.closes[tick - 1, m]),
                    "newPrice": float(self.closes[tick, m]),
                }
        for post in self.posts_at[tick]:
            yield {"type": "post:created", "postId": post.id, "authorId": post.author}
        for resolution in self.resolutions:
            if resolution.tick == tick:
                answer = resolution.outcome.upper()
                yield {
                    "type": "market:resolved",
                    "marketId": resolution.market,
                    "outcome": answer,
                }
