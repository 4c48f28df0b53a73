"""A market on one yes-or-no question: accounts, a maker, and a ledger that cannot leak.

Money and shares are whole numbers of billionths inside, plain floats outside. Every transfer is one
whole number that leaves one account and enters another, and the maker's takings are a function of
the shares outstanding alone, so money is conserved exactly and rounding favours nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from agent_gym.core.errors import VenueError
from agent_gym.core.registry import Config
from agent_gym.exchange.prediction.makers import LmsrConfig, MakerConfig, make_maker

Side: TypeAlias = Literal["yes", "no"]
BILLION = 10**9
MAX_AMOUNT = 1e15


class PredictionConfig(Config):
    """One prediction market."""

    maker: MakerConfig = LmsrConfig()
    fee_bps: float = Field(default=0.0, ge=0.0, le=10_000.0, description="on the money traded")
    initial_price: float = Field(default=0.5, ge=1e-6, le=1.0 - 1e-6, description="of YES")


@dataclass(frozen=True, slots=True)
class Holding:
    """What one account has."""

    cash: float
    yes: float
    no: float


@dataclass(frozen=True, slots=True)
class Trade:
    """One trade, seen by the trader: sold shares and money received are negative.

    The prices are those of YES, whichever side was traded.
    """

    account: str
    side: Side
    shares: float
    cost: float
    fee: float
    price_before: float
    price_after: float

    @property
    def average_price(self) -> float:
        """Return what one share cost, before fees."""
        return self.cost / self.shares


@dataclass(slots=True)
class _Account:
    cash: int
    yes: int = 0
    no: int = 0

    def held(self, side: Side) -> int:
        return self.yes if side == "yes" else self.no

    def add(self, side: Side, shares: int) -> None:
        if side == "yes":
            self.yes += shares
        else:
            self.no += shares


class PredictionMarket:
    """Trades YES and NO shares against a maker until the question is resolved.

    The maker is funded with the most that it can lose, so it can always pay.

    Example:
        >>> market = PredictionMarket(PredictionConfig())
        >>> market.open_account("ann", 100.0)
        >>> trade = market.buy("ann", "yes", 20.0)
        >>> round(trade.cost, 4), round(market.price, 4)
        (10.4992, 0.5498)
        >>> market.resolve("yes")["ann"]
        20.0
    """

    def __init__(self, config: PredictionConfig) -> None:
        self._maker = make_maker(config.maker)
        self._fee_rate = config.fee_bps / 10_000.0
        start = _whole(self._maker.gap(config.initial_price))
        # A price other than one half is that of shares which nobody holds.
        self._yes, self._no = max(start, 0), max(-start, 0)
        self._accounts: dict[str, _Account] = {}
        self._subsidy = self._takings(self._yes, self._no) - min(self._yes, self._no)
        self._maker_cash = self._subsidy
        self._fees = 0
        self._deposits = 0
        self.outcome: Side | None = None

    def open_account(self, name: str, cash: float) -> None:
        """Open an account with some money."""
        if name in self._accounts:
            raise VenueError("there is an account of this name", where=name)
        deposit = _whole(_amount(cash, "a deposit", lowest=0.0))
        self._accounts[name] = _Account(deposit)
        self._deposits += deposit

    def buy(self, name: str, side: Side, shares: float) -> Trade:
        """Buy shares; what they cost is the integral of the price, plus the fee."""
        return self._trade(name, side, _size(shares))

    def sell(self, name: str, side: Side, shares: float | None = None) -> Trade:
        """Sell shares that the account holds; None sells all of them."""
        if shares is not None:
            return self._trade(name, side, -_size(shares))
        held = self._account(name).held(side)
        if held == 0:
            raise VenueError("there is nothing to sell", where=f"{name}, {side}")
        return self._trade(name, side, -held)

    def spend(self, name: str, side: Side, cash: float) -> Trade:
        """Buy as many shares as an amount of money pays for, fee included."""
        self._check_open()
        budget = _size(cash)
        held = self._yes if side == "yes" else self._no
        # After buying n shares the maker has taken at least what it owes on them.
        low, high = 0, budget + self._takings(self._yes, self._no) - held
        while low < high:
            middle = (low + high + 1) // 2
            cost, fee = self._charge(side, middle)
            low, high = (middle, high) if cost + fee <= budget else (low, middle - 1)
        if low == 0:
            raise VenueError("this buys less than a billionth of a share", where=name, found=cash)
        return self._trade(name, side, low)

    def quote(self, side: Side, shares: float) -> tuple[float, float]:
        """Return cost and fee of shares (negative: sold ones) without trading."""
        self._check_open()
        cost, fee = self._charge(side, _whole(_amount(shares, "a size", lowest=-MAX_AMOUNT)))
        return cost / BILLION, fee / BILLION

    def shares_to(self, price: float) -> float:
        """Return how many YES shares move the price of YES there; negative means NO shares."""
        if not 0.0 < price < 1.0:
            raise VenueError("a price lies between 0 and 1", found=price)
        return self._maker.gap(price) - self._gap()

    def resolve(self, outcome: Side) -> dict[str, float]:
        """Pay 1 for each share of the outcome and 0 for the other; return who got what."""
        self._check_open()
        _check_side(outcome)
        self.outcome = outcome
        paid: dict[str, float] = {}
        for name, account in self._accounts.items():
            payout = account.held(outcome)
            account.cash += payout
            self._maker_cash -= payout
            account.yes = account.no = 0
            paid[name] = payout / BILLION
        return paid

    @property
    def price(self) -> float:
        """Return the price of a YES share; NO costs the rest to 1. Resolved, it is 1 or 0."""
        if self.outcome is not None:
            return 1.0 if self.outcome == "yes" else 0.0
        return self._maker.price(self._gap())

    def holding(self, name: str) -> Holding:
        """Return what an account has."""
        account = self._account(name)
        return Holding(account.cash / BILLION, account.yes / BILLION, account.no / BILLION)

    def equity(self, name: str) -> float:
        """Return cash and shares of an account at the price of the moment."""
        held, price = self.holding(name), self.price
        return held.cash + held.yes * price + held.no * (1.0 - price)

    @property
    def maker_cash(self) -> float:
        """Return what the maker has, its funding included."""
        return self._maker_cash / BILLION

    @property
    def maker_profit(self) -> float:
        """Return what the maker has gained so far; after the resolution this is final."""
        return (self._maker_cash - self._subsidy) / BILLION

    @property
    def max_loss(self) -> float:
        """Return the most that the maker can lose, whatever is traded."""
        return self._subsidy / BILLION

    @property
    def fees(self) -> float:
        """Return the fees taken so far."""
        return self._fees / BILLION

    def imbalance(self) -> float:
        """Return money in all accounts less money paid in; anything but 0 is a broken law."""
        traders = sum(account.cash for account in self._accounts.values())
        held = traders + self._maker_cash + self._fees
        return (held - self._deposits - self._subsidy) / BILLION

    def _trade(self, name: str, side: Side, shares: int) -> Trade:
        self._check_open()
        account = self._account(name)
        cost, fee = self._charge(side, shares)
        if account.held(side) + shares < 0:
            raise VenueError(
                "an account sells only what it holds",
                where=f"{name}, {side}",
                found=-shares / BILLION,
                expected=f"at most {account.held(side) / BILLION}",
            )
        if cost + fee > account.cash:
            raise VenueError(
                "an account spends only what it has",
                where=f"{name}, {side}",
                found=(cost + fee) / BILLION,
                expected=f"at most {account.cash / BILLION}",
            )
        before = self.price
        account.add(side, shares)
        account.cash -= cost + fee
        self._maker_cash += cost
        self._fees += fee
        self._yes, self._no = self._after(side, shares)
        return Trade(
            name, side, shares / BILLION, cost / BILLION, fee / BILLION, before, self.price
        )

    def _charge(self, side: Side, shares: int) -> tuple[int, int]:
        _check_side(side)
        cost = self._takings(*self._after(side, shares)) - self._takings(self._yes, self._no)
        return cost, round(abs(cost) * self._fee_rate)

    def _after(self, side: Side, shares: int) -> tuple[int, int]:
        if side == "yes":
            return self._yes + shares, self._no
        return self._yes, self._no + shares

    def _takings(self, yes: int, no: int) -> int:
        return max(yes, no) + _whole(self._maker.slack((yes - no) / BILLION))

    def _gap(self) -> float:
        return (self._yes - self._no) / BILLION

    def _account(self, name: str) -> _Account:
        try:
            return self._accounts[name]
        except KeyError:
            raise VenueError("there is no such account", found=name) from None

    def _check_open(self) -> None:
        if self.outcome is not None:
            raise VenueError("the market is resolved", found=self.outcome)


def _whole(value: float) -> int:
    return round(value * BILLION)


def _amount(value: float, what: str, *, lowest: float) -> float:
    if not math.isfinite(value) or not lowest <= value <= MAX_AMOUNT:
        raise VenueError(
            f"{what} is out of range", found=value, expected=f"{lowest:g} to {MAX_AMOUNT:g}"
        )
    return value


def _size(amount: float) -> int:
    size = _whole(_amount(amount, "a size", lowest=0.0))
    if size == 0:
        raise VenueError("a trade has a size of at least a billionth", found=amount)
    return size


def _check_side(side: str) -> None:
    if side not in ("yes", "no"):
        raise VenueError("a side is yes or no", found=side)
