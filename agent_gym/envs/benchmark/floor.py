"""The trading floor of a snapshot: every market, one player, and the crowd that was recorded.

Fills are those of ``exchange``: the prediction markets' maker and the order venue. Each prediction
market has a purse of its own, the perpetuals share one; together they are the player's cash.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from agent_gym.core.errors import VenueError
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.perpetuals import PerpetualDesk
from agent_gym.envs.benchmark.records import ActionRecord, ActionType, PositionBook
from agent_gym.exchange.prediction import (
    LmsrConfig,
    PredictionConfig,
    PredictionMarket,
    Side,
    Trade,
)
from agent_gym.exchange.venue import Trade as Fill
from agent_gym.markets.snapshot.types import Snapshot

PLAYER, CROWD = "trader", "crowd"
CROWD_CASH = 1e14
CENTS = 6  # decimals of a purse, so that the purses add up to the cash
RESERVE = 0.1  # of a market's purse: kept for fees and for moving the price
DUST = 1e-6  # of a budget: less is not worth an order


class Floor:
    """One episode of one player on one snapshot; ``tick`` moves only by ``advance``."""

    def __init__(self, snapshot: Snapshot, config: BenchmarkWorldConfig) -> None:
        self.snapshot, self.config = snapshot, config
        self.n_questions = len(snapshot.predictions)
        self.n_markets = len(snapshot.market_ids)
        self.purse = round(config.cash / self.n_markets, CENTS)
        self.budget = (1.0 - RESERVE) * self.purse
        rest = round(config.cash - self.n_questions * self.purse, CENTS)
        self.desk = PerpetualDesk(snapshot, config, rest)
        flows = snapshot.columns.noise + snapshot.columns.informed
        self._flows: list[list[int]] = flows.tolist()
        self._closes: list[list[float]] = snapshot.closes.tolist()
        self._answers: dict[int, list[tuple[int, Side]]] = {}
        places = {name: m for m, name in enumerate(snapshot.market_ids)}
        for one in snapshot.resolutions:
            self._answers.setdefault(one.tick, []).append((places[one.market], one.outcome))
        self._start()

    def reset(self) -> None:
        """Begin anew at tick 0."""
        self.desk.reset()
        self._start()

    def _start(self) -> None:
        self.tick = 0
        self.questions = [self._open_question(m) for m in range(self.n_questions)]
        self.prices = [market.price for market in self.questions] + self._closes[0]
        self.held = [market.holding(PLAYER) for market in self.questions]
        self.book = PositionBook()
        self.worths = [held.cash for held in self.held]
        self.actions: list[ActionRecord] = []
        self.invalid = 0
        self.read = [0.0] * self.n_markets

    def _open_question(self, m: int) -> PredictionMarket:
        spec = self.snapshot.predictions[m]
        market = PredictionMarket(
            PredictionConfig(
                maker=LmsrConfig(b=spec.liquidity),
                fee_bps=self.config.prediction_fee_bps,
                initial_price=spec.initial_price,
            )
        )
        market.open_account(PLAYER, self.purse)
        market.open_account(CROWD, CROWD_CASH)
        return market

    @property
    def finished(self) -> bool:
        """Say whether the last tick has been played."""
        return self.tick >= self.snapshot.ticks

    def is_open(self, m: int) -> bool:
        """Say whether a market still trades."""
        if self.finished:
            return False
        return m >= self.n_questions or self.questions[m].outcome is None

    def advance(self) -> None:
        """Play the next tick: orders fill, the crowd trades, what is due is resolved."""
        self.tick += 1
        tick, prices = self.tick, self.prices
        for fill in self.desk.advance():
            self._book_fill(fill)
        self.book.forget_unfilled()
        prices[self.n_questions :] = self._closes[tick]
        for m, shares in enumerate(self._flows[tick]):
            if shares and self.questions[m].outcome is None:
                side: Side = "yes" if shares > 0 else "no"
                prices[m] = self.questions[m].buy(CROWD, side, float(abs(shares))).price_after
        for m, outcome in self._answers.get(tick, ()):
            self._resolve(m, outcome)
        for post in self.snapshot.posts_at[tick]:
            self.read[self.snapshot.market_ids.index(post.market)] += post.sentiment

    def buy_shares(self, m: int, side: Side, cash: float) -> Trade:
        """Spend money of a market's purse on its shares, fee included."""
        market = self.questions[m]
        return self._bought(m, side, lambda: market.spend(PLAYER, side, cash))

    def _bought(self, m: int, side: Side, buy: Callable[[], Trade]) -> Trade:
        before = self.prices[m]
        trade = self._tried("buy_prediction", m, buy)
        self._look(m)
        where = self.book.position(self.snapshot.market_ids[m], side.upper(), self.tick)
        self.book.enlarge(where, trade.shares, trade.average_price, trade.fee)
        self._note("buy_prediction", m, side.upper(), trade.cost + trade.fee, before)
        return trade

    def sell_shares(self, m: int, side: Side, shares: float | None = None) -> Trade:
        """Sell shares back to the maker; None sells all of them."""
        market = self.questions[m]
        before = self.prices[m]
        trade = self._tried("sell_prediction", m, lambda: market.sell(PLAYER, side, shares))
        self._look(m)
        where = self.book.position(self.snapshot.market_ids[m], side.upper(), self.tick)
        self.book.reduce(where, -trade.shares, trade.average_price, trade.fee, self.tick)
        self._note("sell_prediction", m, side.upper(), -trade.shares, before)
        return trade

    def set_target(self, m: int, target: float) -> None:
        """Bring a market to a signed share of its budget; what cannot be afforded is left out."""
        if m < self.n_questions:
            self._set_stake(m, target)
        else:
            place, price = m - self.n_questions, self.prices[m]
            self.desk.target(place, target * self.budget * self.config.leverage / price)
            held = self.desk.position(place)
            if target == 0.0:
                self._note("close_perp", m, "LONG" if held > 0.0 else "SHORT", 0.0, price)
            else:
                side = "LONG" if target > 0.0 else "SHORT"
                self._note("open_perp", m, side, abs(target) * self.budget, price)

    def order_perpetual(self, m: int, notional: float, *, closing: bool) -> None:
        """Send a market order worth so much, negative to sell; it fills in the next tick."""
        place, price = m - self.n_questions, self.prices[m]
        held = self.desk.position(place)
        if closing:
            self.desk.trade(place, -held, reduce_only=True)
            self._note("close_perp", m, "LONG" if held > 0.0 else "SHORT", abs(held) * price, price)
        else:
            self.desk.trade(place, notional / price)
            self._note("open_perp", m, "LONG" if notional > 0.0 else "SHORT", abs(notional), price)

    def equity(self) -> float:
        """Return what the player has, shares at what selling them would bring."""
        self.worths = [self.worth(m) for m in range(self.n_questions)]
        return self.desk.account.equity + sum(self.worths)

    def worth(self, m: int) -> float:
        """Return cash and shares in a prediction market's purse."""
        market, held = self.questions[m], self.held[m]
        return (
            held.cash
            + self._proceeds(market, "yes", held.yes)
            + self._proceeds(market, "no", held.no)
        )

    def cash(self) -> float:
        """Return the money that is not in shares or margin, in all purses."""
        free = self.desk.account.equity - self.margin_used()
        return free + sum(held.cash for held in self.held)

    def margin_used(self) -> float:
        """Return the equity that the perpetual positions bind."""
        if not any(self.desk.account.positions.values()):
            return 0.0
        worth = sum(
            abs(self.desk.position(m)) * self._closes[self.tick][m]
            for m in range(len(self.desk.symbols))
        )
        return worth / self.config.max_leverage

    def held_share(self, m: int) -> float:
        """Return what is held in a market as a signed share of its budget, as targets are given."""
        if m >= self.n_questions:
            units = self.desk.position(m - self.n_questions)
            return units * self.prices[m] / (self.budget * self.config.leverage)
        held = self.held[m]
        return (held.yes - held.no) / self.budget

    def refuse(self, kind: ActionType, error: str, m: int | None = None) -> None:
        """Write down an attempt that was not valid; it changes nothing else."""
        self.invalid += 1
        record = ActionRecord(len(self.actions) + 1, self.tick, kind, success=False, error=error)
        self.actions.append(
            record if m is None else replace(record, market=self.snapshot.market_ids[m])
        )

    def note(self, kind: ActionType) -> None:
        """Write down an action that concerns no market."""
        self.actions.append(ActionRecord(len(self.actions) + 1, self.tick, kind))

    def _set_stake(self, m: int, target: float) -> None:
        """Hold as many shares as pay that part of the budget, should they win."""
        held = self.held[m]
        wanted = {"yes": max(target, 0.0) * self.budget, "no": max(-target, 0.0) * self.budget}
        if held.yes > wanted["yes"]:
            self.sell_shares(m, "yes", held.yes - wanted["yes"] if wanted["yes"] else None)
        if held.no > wanted["no"]:
            self.sell_shares(m, "no", held.no - wanted["no"] if wanted["no"] else None)
        if wanted["yes"] > held.yes:
            self._add_stake(m, "yes", wanted["yes"] - held.yes)
        if wanted["no"] > held.no:
            self._add_stake(m, "no", wanted["no"] - held.no)

    def _add_stake(self, m: int, side: Side, shares: float) -> None:
        market = self.questions[m]
        cash = self.held[m].cash
        if sum(market.quote(side, shares)) <= cash:
            self._bought(m, side, lambda: market.buy(PLAYER, side, shares))
        elif cash > DUST * self.budget:
            self.buy_shares(m, side, cash)

    def _resolve(self, m: int, outcome: Side) -> None:
        market, name = self.questions[m], self.snapshot.market_ids[m]
        market.resolve(outcome)
        self._look(m)
        for side in ("YES", "NO"):
            where = self.book.open.get((name, side))
            if where is not None:
                pays = 1.0 if side == outcome.upper() else 0.0
                self.book.reduce(where, where.size, pays, 0.0, self.tick)

    def _book_fill(self, fill: Fill) -> None:
        place = self.desk.symbols.index(fill.symbol)
        name = self.snapshot.market_ids[self.n_questions + place]
        side, other = ("LONG", "SHORT") if fill.qty > 0.0 else ("SHORT", "LONG")
        size = abs(fill.qty)
        against = self.book.open.get((name, other))
        if against is not None:
            part = min(size, against.size)
            share = part / size
            against.liquidated |= fill.forced
            self.book.reduce(against, part, fill.price, fill.fee * share, self.tick)
            size, fee = size - part, fill.fee * (1.0 - share)
        else:
            fee = fill.fee
        if size > 1e-9 * abs(fill.qty):
            where = self.book.position(name, side, self.tick)
            self.book.enlarge(where, size, fill.price, fee)

    def _look(self, m: int) -> None:
        """Take in what a trade or an answer has changed."""
        self.prices[m] = self.questions[m].price
        self.held[m] = self.questions[m].holding(PLAYER)

    def _proceeds(self, market: PredictionMarket, side: Side, shares: float) -> float:
        if shares <= 0.0:
            return 0.0
        cost, fee = market.quote(side, -shares)
        return -cost - fee

    def _tried(self, kind: ActionType, m: int, trade: Callable[[], Trade]) -> Trade:
        try:
            return trade()
        except VenueError as error:
            self.refuse(kind, str(error), m)
            raise

    def _note(self, kind: ActionType, m: int, side: str, amount: float, price: float) -> None:
        self.actions.append(
            ActionRecord(
                len(self.actions) + 1,
                self.tick,
                kind,
                self.snapshot.market_ids[m],
                side,
                amount,
                price,
                math.tanh(0.5 * self.read[m]),
            )
        )
