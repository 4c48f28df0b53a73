"""Who and what is in a snapshot: questions, contracts, other agents and their chats."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import AuthorKind, SnapshotConfig
from agent_gym.markets.snapshot.types import Author, Group, PerpetualSpec, PredictionSpec

TOPICS = (
    "the merger of Norda and Velt", "the harbour strike", "the new data law", "the rate cut",
    "the launch of the Argo rocket", "the mayor's resignation", "the chip export ban",
    "the stadium vote", "the recall of the K7 battery", "the peace talks in Lind",
    "the split of Omnia", "the tax on sugar", "the bank's rescue", "the reef treaty",
    "the comeback of Duo Mar", "the ban on night flights", "the oil deal", "the rail takeover",
    "the vaccine approval", "the appeal of Judge Rell", "the bridge opening", "the gold audit",
    "the sale of Channel 9", "the drought emergency", "the quantum prize", "the fishing quota",
)  # fmt: skip
TICKERS = (
    "NVRA", "OMNX", "ZETA", "KORU", "LUMN", "PYRO", "TIDL", "AXON", "BRIX", "CIRR", "DELT", "ECHO",
)  # fmt: skip
WIRES = ("Harbour Wire", "The Ledger", "North Desk", "City Telegraph")
TRADERS = ("Ada", "Boris", "Chen", "Dina", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jun")
PROMOTERS = ("MoonMax", "AlphaKing", "ToTheTop", "FastCash")
RELIABILITY: dict[AuthorKind, tuple[float, float]] = {
    "wire": (0.9, 0.97),
    "trader": (0.62, 0.82),
    "promoter": (0.08, 0.25),
}


def draw_predictions(config: SnapshotConfig, seeds: Seeds) -> tuple[PredictionSpec, ...]:
    """Return the questions; each starts at its own chance and is resolved late in the snapshot."""
    rng = seeds.child("predictions").rng()
    topics = rng.permutation(len(TOPICS))[: config.prediction_markets]
    made = []
    for number, topic in enumerate(topics, start=1):
        text = TOPICS[int(topic)]
        first = math.ceil(0.75 * config.ticks)
        made.append(
            PredictionSpec(
                id=f"pm-{number}",
                question=f"Will {text} happen?",
                topic=text,
                initial_price=round(float(rng.uniform(0.35, 0.65)), 2),
                liquidity=config.liquidity,
                resolve_tick=int(rng.integers(first, config.ticks + 1)),
            )
        )
    return tuple(made)


def draw_perpetuals(config: SnapshotConfig, seeds: Seeds) -> tuple[PerpetualSpec, ...]:
    """Return the contracts with their first prices."""
    rng = seeds.child("perpetuals").rng()
    tickers = rng.permutation(len(TICKERS))[: config.perpetual_markets]
    made = []
    for number, ticker in enumerate(tickers, start=1):
        size = int(rng.integers(1, 5))
        step = 10.0 ** (size - 5)
        price = round(float(rng.uniform(1.0, 10.0)) * 10.0**size / step) * step
        made.append(PerpetualSpec(f"perp-{number}", TICKERS[int(ticker)], round(price, 6), step))
    return tuple(made)


def draw_authors(config: SnapshotConfig, seeds: Seeds) -> tuple[Author, ...]:
    """Return the other agents: wires that are mostly right, traders, promoters mostly wrong."""
    rng = seeds.child("authors").rng()
    kinds = _kinds(config.agents)
    names = {"wire": WIRES, "trader": TRADERS, "promoter": PROMOTERS}
    counts: dict[str, int] = {}
    made = []
    for number, kind in enumerate(kinds, start=1):
        place = counts[kind] = counts.get(kind, -1) + 1
        book = names[kind]
        again = place // len(book)
        name = book[place % len(book)] + (f" {again + 1}" if again else "")
        low, high = RELIABILITY[kind]
        made.append(
            Author(
                id=f"agent-{number}",
                name=name,
                kind=kind,
                reliability=round(float(rng.uniform(low, high)), 2),
                reputation=int(rng.integers(100, 1_000)),
            )
        )
    return tuple(made)


def draw_groups(authors: tuple[Author, ...], seeds: Seeds) -> tuple[Group, ...]:
    """Return two chats, each of some of the agents."""
    rng = seeds.child("groups").rng()
    names = ("Trading floor", "Night shift")
    return tuple(
        Group(f"group-{number}", name, tuple(sorted(_some(authors, rng))))
        for number, name in enumerate(names, start=1)
    )


def _some(authors: tuple[Author, ...], rng: np.random.Generator) -> list[str]:
    return [authors[int(i)].id for i in rng.permutation(len(authors))[: len(authors) // 2]]


def _kinds(agents: int) -> list[AuthorKind]:
    few = max(1, agents // 4)
    counts: dict[AuthorKind, int] = {"wire": few, "trader": agents - 2 * few, "promoter": few}
    return [kind for kind, count in counts.items() for _ in range(count)]
