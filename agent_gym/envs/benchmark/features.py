"""What a player sees as numbers: the same columns for every market, then those of the account."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.envs.benchmark.floor import Floor
from agent_gym.markets.snapshot.law import NewsLaw
from agent_gym.markets.snapshot.reaction import at_once, funding_rates
from agent_gym.markets.snapshot.types import Snapshot

MARKET_FEATURES = (
    "perpetual",
    "open",
    "price",
    "move",
    "return_1",
    "return_5",
    "news",
    "sentiment",
    "trusted",
    "evidence",
    "gap",
    "volatility",
    "funding",
    "time_left",
    "position",
    "profit",
)
ACCOUNT_FEATURES = ("cash", "equity", "drawdown", "exposure", "time_left")
_AT = {name: i for i, name in enumerate(MARKET_FEATURES)}
_WIDTH = len(MARKET_FEATURES)
_VOLATILITY_DECAY = 0.94


def feature_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the columns of an observation.

    Markets come in the order of ``Snapshot.market_ids``, each with MARKET_FEATURES; the account's
    columns are the last.
    """
    markets = [f"{name}/{one}" for name in snapshot.market_ids for one in MARKET_FEATURES]
    return (*markets, *(f"account/{one}" for one in ACCOUNT_FEATURES))


def trusted(law: NewsLaw, reliability: float, sentiment: float, sentiment_noise: float) -> float:
    """Return what of a sentiment can be believed, nats: less from authors who are often wrong.

    It is the evidence of an author of this reliability, less the share of noise: close to what
    Bayes' rule says, without looking at the words. Authors who are wrong mostly turn its sign.

    Example:
        >>> round(trusted(NewsLaw(), 0.5, 2.0, 0.5), 12), trusted(NewsLaw(), 0.1, 2.0, 0.5) < 0.0
        (0.0, True)
    """
    own = law.noise_deviation**2
    said = math.exp(-sentiment * own / (own + sentiment_noise**2))
    wrong = 1.0 - reliability
    return (1.0 - law.noise_share) * math.log(
        (reliability + wrong * said) / (wrong + reliability * said)
    )


class Sheet:
    """The numbers of a snapshot, laid out once; an observation adds what depends on the player."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._n_q = len(snapshot.predictions)
        self._ticks = snapshot.ticks
        table = np.zeros((snapshot.ticks + 1, len(snapshot.market_ids), _WIDTH))
        self._write_posts(snapshot, table)
        self._write_perpetuals(snapshot, table)
        self._write_times(snapshot, table)
        table[:, :, _AT["open"]] = 1.0
        table[-1, :, _AT["open"]] = 0.0
        flat = table.reshape(len(table), -1)
        self._rows = np.hstack([flat, np.zeros((len(flat), len(ACCOUNT_FEATURES)))])
        starts = [one.initial_price for one in snapshot.predictions]
        self._starts = [_logit(price) for price in starts]
        self._time_left: list[float] = (1.0 - np.arange(len(table)) / snapshot.ticks).tolist()
        self.reset()

    def reset(self) -> None:
        """Forget the prices of the last episode."""
        self._logits: list[list[float]] = [[start] for start in self._starts]
        self._variance = [0.0] * self._n_q
        self._peak = 0.0

    def observe(self, floor: Floor, equity: float) -> FloatArray:
        """Return the row of this moment; called once a tick, after equity was reckoned."""
        tick = floor.tick
        row: FloatArray = self._rows[tick].copy()
        for m in range(self._n_q):
            self._question(row, m, floor)
        base = self._n_q * _WIDTH
        for m in range(self._n_q, floor.n_markets):
            units = floor.desk.position(m - self._n_q)
            if units != 0.0:
                average = floor.desk.average_price(m - self._n_q)
                row[base + _AT["position"]] = floor.held_share(m)
                row[base + _AT["profit"]] = units * (floor.prices[m] - average) / floor.budget
            base += _WIDTH
        cash = floor.config.cash
        self._peak = max(self._peak, equity)
        row[base] = floor.cash() / cash
        row[base + 1] = equity / cash - 1.0
        row[base + 2] = 1.0 - equity / self._peak
        row[base + 3] = (equity - row[base] * cash) / cash
        row[base + 4] = self._time_left[tick]
        return row

    def _question(self, row: FloatArray, m: int, floor: Floor) -> None:
        base, tick, price = m * _WIDTH, floor.tick, floor.prices[m]
        path = self._logits[m]
        if floor.questions[m].outcome is not None:
            row[base + 1] = 0.0
            row[base + 2] = price - 0.5
            path.append(path[-1])
            return
        now = _logit(price)
        if len(path) <= tick:
            step = now - path[-1]
            path.append(now)
            self._variance[m] += (1.0 - _VOLATILITY_DECAY) * (step * step - self._variance[m])
        move = now - self._starts[m]
        row[base + _AT["price"]] = price - 0.5
        row[base + _AT["move"]] = move
        row[base + _AT["return_1"]] = now - path[max(0, tick - 1)]
        row[base + _AT["return_5"]] = now - path[max(0, tick - 5)]
        row[base + _AT["volatility"]] = math.sqrt(self._variance[m])
        held = floor.held_share(m)
        if held != 0.0:
            row[base + _AT["position"]] = held
            row[base + _AT["profit"]] = self._profit(m, floor)

    def _profit(self, m: int, floor: Floor) -> float:
        name = floor.snapshot.market_ids[m]
        flows = sum(
            where.flow for side in ("YES", "NO") if (where := floor.book.open.get((name, side)))
        )
        purse = floor.held[m].cash
        return (flows + floor.worths[m] - purse) / floor.budget

    def _write_posts(self, snapshot: Snapshot, table: FloatArray) -> None:
        config = snapshot.config
        unread, unit = np.zeros(table.shape[:2]), config.report.jump
        for post in snapshot.posts:
            m = snapshot.market_ids.index(post.market)
            law, author = config.law(post.kind), snapshot.author_of[post.author]
            told = trusted(law, author.reliability, post.sentiment, config.sentiment_noise)
            first = at_once(config, post, perpetual=m >= self._n_q)
            if m >= self._n_q:
                told, first = math.tanh(0.5 * told) * law.jump / unit, first / unit
            unread[post.tick, m] += told - first
            table[post.tick, m, _AT["news"]] += 1.0
            table[post.tick, m, _AT["sentiment"]] += post.sentiment
            table[post.tick, m, _AT["trusted"]] += told
        believed = table[:, :, _AT["trusted"]]
        keeps = np.where(np.arange(table.shape[1]) < self._n_q, 1.0, 1.0 - config.rate)
        evidence, gap = np.zeros(table.shape[1]), np.zeros(table.shape[1])
        for tick in range(len(table)):
            evidence = keeps * evidence + believed[tick]
            gap = (1.0 - config.rate) * gap + unread[tick]
            table[tick, :, _AT["evidence"]] = evidence
            table[tick, :, _AT["gap"]] = gap

    def _write_perpetuals(self, snapshot: Snapshot, table: FloatArray) -> None:
        n_q, unit = self._n_q, snapshot.config.report.jump
        logs = np.log(snapshot.closes)
        table[:, n_q:, _AT["perpetual"]] = 1.0
        table[:, n_q:, _AT["price"]] = logs - logs[0]
        table[:, n_q:, _AT["move"]] = (logs - logs[0]) / unit
        rows = np.arange(len(logs))
        for name, back in (("return_1", 1), ("return_5", 5)):
            table[:, n_q:, _AT[name]] = (logs - logs[np.maximum(rows - back, 0)]) / unit
        steps = table[:, n_q:, _AT["return_1"]] ** 2
        variance = np.zeros(steps.shape[1])
        for tick in rows:
            variance = variance + (1.0 - _VOLATILITY_DECAY) * (steps[tick] - variance)
            table[tick, n_q:, _AT["volatility"]] = np.sqrt(variance)
        rates = funding_rates(snapshot.config, snapshot.closes)
        table[:, n_q:, _AT["funding"]] = rates * 1e3

    def _write_times(self, snapshot: Snapshot, table: FloatArray) -> None:
        rows = np.arange(len(table))
        for m in range(table.shape[1]):
            end = snapshot.predictions[m].resolve_tick if m < self._n_q else snapshot.ticks
            table[:, m, _AT["time_left"]] = np.maximum(0.0, 1.0 - rows / end)


def _logit(price: float) -> float:
    inside = min(max(price, 1e-9), 1.0 - 1e-9)
    return math.log(inside / (1.0 - inside))
