"""What the queries of the A2A interface show: the state of this tick, as plain values."""

from __future__ import annotations

from typing import Any

from agent_gym.envs.benchmark.floor import Floor
from agent_gym.envs.benchmark.world import BenchmarkWorld
from agent_gym.markets.snapshot.reaction import funding_rates, funding_ticks
from agent_gym.markets.snapshot.types import Post
from agent_gym.markets.snapshot.wording import write

FEED = 20
REPUTATION, WON, LOST = 1_000, 10, -5


class Views:
    """Reads the floor of a world; holds what the player wrote and joined."""

    def __init__(self, world: BenchmarkWorld) -> None:
        self._world = world
        snapshot = world.snapshot
        self._rates = funding_rates(snapshot.config, snapshot.closes).tolist()
        self._every = funding_ticks(snapshot.config)
        self._written: list[dict[str, Any]] = []
        self.joined: set[str] = set()

    @property
    def _floor(self) -> Floor:
        return self._world.floor

    def predictions(self) -> dict[str, Any]:
        """Return the questions with their prices; an answer only once everybody knows it."""
        floor, rows = self._floor, []
        for m, spec in enumerate(floor.snapshot.predictions):
            price, answer = floor.prices[m], floor.questions[m].outcome
            rows.append(
                {
                    "id": spec.id,
                    "question": spec.question,
                    "yesPrice": price,
                    "noPrice": 1.0 - price,
                    "liquidity": spec.liquidity,
                    "resolved": answer is not None,
                    "outcome": None if answer is None else answer.upper(),
                    "resolveTick": spec.resolve_tick,
                    "feeBps": self._world.config.prediction_fee_bps,
                }
            )
        return {"tick": floor.tick, "predictions": rows}

    def perpetuals(self) -> dict[str, Any]:
        """Return the perpetuals with price, change since the start, and funding."""
        floor, rows = self._floor, []
        for place, spec in enumerate(floor.snapshot.perpetuals):
            price = floor.prices[floor.n_questions + place]
            rows.append(
                {
                    "ticker": spec.ticker,
                    "marketId": spec.id,
                    "price": price,
                    "change": price / spec.initial_price - 1.0,
                    "volume": int(floor.snapshot.columns.volume[floor.tick, place]),
                    "fundingRate": self._rates[floor.tick][place],
                    "nextFundingTick": (floor.tick // self._every + 1) * self._every,
                    "maxLeverage": self._world.config.max_leverage,
                    "takerBps": self._world.config.costs.taker_bps,
                }
            )
        return {"tick": floor.tick, "perpetuals": rows}

    def feed(self) -> dict[str, Any]:
        """Return the newest posts, the latest last; the player's own are among them."""
        tick, snapshot = self._floor.tick, self._floor.snapshot
        rows = [self._post(post) for post in snapshot.posts if post.tick <= tick] + self._written
        rows.sort(key=lambda row: row["tick"])
        return {"tick": tick, "posts": rows[-FEED:]}

    def chats(self) -> dict[str, Any]:
        """Return the chats; messages are shown to members, and repeat what is in the feed."""
        tick, snapshot, rows = self._floor.tick, self._floor.snapshot, []
        for group in snapshot.groups:
            told = [p for p in snapshot.posts if p.tick <= tick and p.author in group.members]
            is_member = group.id in self.joined
            rows.append(
                {
                    "id": group.id,
                    "name": group.name,
                    "memberIds": list(group.members) + (["trader"] if is_member else []),
                    "messageCount": len(told),
                    "messages": [self._post(post) for post in told[-FEED:]] if is_member else [],
                }
            )
        return {"tick": tick, "chats": rows}

    def balance(self) -> dict[str, Any]:
        """Return the money that is free, and in which purse it lies."""
        floor = self._floor
        purses = {spec.id: floor.held[m].cash for m, spec in enumerate(floor.snapshot.predictions)}
        perpetual = floor.desk.account.equity - floor.margin_used()
        return {"balance": floor.cash(), "purses": purses | {"perpetuals": perpetual}}

    def positions(self) -> dict[str, Any]:
        """Return what is held."""
        floor = self._floor
        rows = [where.as_dict() for where in floor.book.open.values()]
        questions = {spec.id for spec in floor.snapshot.predictions}
        return {
            "predictionPositions": [row for row in rows if row["marketId"] in questions],
            "perpPositions": [row for row in rows if row["marketId"] not in questions],
        }

    def portfolio(self) -> dict[str, Any]:
        """Return free money, positions and the profit so far."""
        floor = self._floor
        equity = floor.equity()
        positions = self.positions()
        return {
            "balance": floor.cash(),
            "equity": equity,
            "pnl": equity - self._world.config.cash,
            "positions": positions["predictionPositions"] + positions["perpPositions"],
        }

    def dashboard(self) -> dict[str, Any]:
        """Return the player at a glance; a reputation grows with positions closed at a profit."""
        floor = self._floor
        reputation = REPUTATION + sum(
            WON if where.flow > 0.0 else LOST for where in floor.book.closed
        )
        return {
            "tick": floor.tick,
            "lastTick": floor.snapshot.ticks,
            "balance": floor.cash(),
            "reputation": reputation,
            "totalPnl": floor.equity() - self._world.config.cash,
            "activePositions": len(floor.book.open),
        }

    def write(self, content: str, market: str | None) -> str:
        """Add a post of the player's and return its id."""
        name = f"own-{len(self._written) + 1}"
        self._written.append(
            {
                "id": name,
                "tick": self._floor.tick,
                "authorId": "trader",
                "authorName": "you",
                "content": content,
                "marketId": market,
            }
        )
        return name

    def _post(self, post: Post) -> dict[str, Any]:
        snapshot = self._floor.snapshot
        author = snapshot.author_of[post.author]
        return {
            "id": post.id,
            "tick": post.tick,
            "createdAt": snapshot.time(post.tick),
            "authorId": author.id,
            "authorName": author.name,
            "authorReliability": author.reliability,
            "kind": post.kind,
            "content": write(snapshot, post),
            "sentiment": post.sentiment,
            "marketId": post.market,
        }
