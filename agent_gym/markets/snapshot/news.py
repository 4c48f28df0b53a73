"""Drawing the posts: what each one knows, who wrote it, and what is left of that in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import AuthorKind, Burst, SnapshotConfig
from agent_gym.markets.snapshot.law import band_of
from agent_gym.markets.snapshot.public_file import SENTIMENT_DIGITS
from agent_gym.markets.snapshot.types import Author, PerpetualSpec, Post, PredictionSpec
from agent_gym.markets.snapshot.wording import WORDINGS

LATEST = 0.97  # a story that breaks after this share of the ticks could not be traded any more


@dataclass(frozen=True, slots=True)
class Drawn:
    """A post and what is behind it."""

    post: Post
    evidence: float
    noise: bool
    turned: bool
    move: float


@dataclass(frozen=True, slots=True)
class _Slot:
    """When a post comes, of which kind it is, and who writes it."""

    tick: int
    kind: str
    author: Author


def draw_news(
    config: SnapshotConfig,
    markets: tuple[PredictionSpec | PerpetualSpec, ...],
    authors: tuple[Author, ...],
    outcomes: dict[str, bool],
    seeds: Seeds,
) -> tuple[Drawn, ...]:
    """Return all posts in order of time; each market draws from its own seed."""
    drawn: list[tuple[int, int, int, Drawn]] = []
    for place, market in enumerate(markets):
        rng = seeds.child("news", market.id).rng()
        slots = _slots(config, market, authors, rng)
        for number, slot in enumerate(slots):
            made = _draw(config, market.id, slot, outcomes.get(market.id), rng)
            drawn.append((slot.tick, place, number, made))
    drawn.sort(key=lambda row: row[:3])
    return tuple(_numbered(made, number) for number, (*_, made) in enumerate(drawn, start=1))


def _numbered(made: Drawn, number: int) -> Drawn:
    old = made.post
    post = Post(
        f"post-{number}",
        old.tick,
        old.author,
        old.market,
        old.kind,
        old.band,
        old.sentiment,
        old.wording,
    )
    return Drawn(post, made.evidence, made.noise, made.turned, made.move)


def _slots(
    config: SnapshotConfig,
    market: PredictionSpec | PerpetualSpec,
    authors: tuple[Author, ...],
    rng: np.random.Generator,
) -> list[_Slot]:
    last = _last_tick(config, market)
    by_kind: dict[AuthorKind, list[Author]] = {"wire": [], "trader": [], "promoter": []}
    for author in authors:
        by_kind[author.kind].append(author)
    slots = []
    for _ in range(int(rng.poisson(config.posts_per_market))):
        tick, kind = int(rng.integers(1, last + 1)), _kind(config, rng)
        writers = by_kind[_writer(config, kind, rng)]
        slots.append(_Slot(tick, kind, writers[int(rng.integers(len(writers)))]))
    for burst in config.bursts:
        if _meant(burst, market):
            writers = by_kind[burst.by]
            for number in range(burst.posts):
                tick = round(burst.at * config.ticks) + number * burst.spacing_ticks
                author = writers[int(rng.integers(len(writers)))]
                if tick <= last:
                    slots.append(_Slot(max(1, tick), "breaking", author))
    return slots


def _last_tick(config: SnapshotConfig, market: PredictionSpec | PerpetualSpec) -> int:
    if isinstance(market, PredictionSpec):
        return market.resolve_tick - 1
    return max(1, int(LATEST * config.ticks))


def _meant(burst: Burst, market: PredictionSpec | PerpetualSpec) -> bool:
    kind = "prediction" if isinstance(market, PredictionSpec) else "perpetual"
    return burst.on == kind and (burst.every_market or market.id.endswith("-1"))


def _kind(config: SnapshotConfig, rng: np.random.Generator) -> str:
    u = float(rng.random())
    if u < config.breaking_share:
        return "breaking"
    return "rumour" if u < config.breaking_share + config.rumour_share else "report"


def _writer(config: SnapshotConfig, kind: str, rng: np.random.Generator) -> AuthorKind:
    u, v = rng.random(2)
    if u < config.misleading_share:
        return "promoter"
    if kind == "rumour":
        return "trader"
    return "wire" if kind == "breaking" or v < 0.6 else "trader"


def _draw(
    config: SnapshotConfig,
    market: str,
    slot: _Slot,
    outcome: bool | None,
    rng: np.random.Generator,
) -> Drawn:
    """Draw one post; all draws are made whatever they are used for, so that none shifts another."""
    law = config.law(slot.kind)
    side, is_noise, keeps = rng.random(3)
    width, blur = rng.standard_normal(2)
    wording = int(rng.integers(WORDINGS))
    fact = (side < law.up_share) if outcome is None else outcome
    noise, turned = bool(is_noise < law.noise_share), bool(keeps >= slot.author.reliability)
    if noise:
        evidence, turned = law.noise_deviation * float(width), False
    else:
        said = fact != turned
        evidence = (law.mean if said else -law.mean) + law.delta * float(width)
    sentiment = round(evidence + config.sentiment_noise * float(blur), SENTIMENT_DIGITS)
    move = 0.0 if noise or outcome is not None else (law.jump if fact else -law.jump)
    post = Post(
        "", slot.tick, slot.author.id, market, slot.kind, band_of(evidence), sentiment, wording
    )
    return Drawn(post, evidence, noise, turned, move)
