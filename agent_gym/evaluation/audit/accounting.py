"""Check: do the books of the world balance, and is the reward what they say?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, FloatArray, Outcome, World
from agent_gym.evaluation.audit.changed_bars import gapped, level
from agent_gym.evaluation.audit.finding import Finding, error, fine, unchecked
from agent_gym.evaluation.audit.stream import Dice
from agent_gym.evaluation.audit.subject import Books, Subject
from agent_gym.markets.bars import Bars

FIELDS = ("cash", "pos", "eq", "fees", "slip", "fund")
TRADED = 1e-9  # a change of position below this share of what could be held is none


class AccountingConfig(Config):
    """How long the books are kept and how exact they must be."""

    bars: int = Field(default=240, ge=20, description="bars of each market that is traded")
    tolerance: float = Field(default=1e-9, gt=0, description="of equity")


@register("check", "accounting", AccountingConfig)
class Accounting:
    """Trades a market of gaps and one that stands still, and does the sums again."""

    looks_for = "rewards that are not the change of equity, costs that get lost, same-bar fills"
    wants_agent = False

    def __init__(self, config: AccountingConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Play dice on bars of our own, of which every price is known."""
        n = self._config.bars
        gaps, still = gapped(subject.bars, n, subject.seed), level(subject.bars, n)
        world = subject.world(gaps)
        if not isinstance(world, Books):
            yield unchecked("The world does not open its books: it has no ledger(role).")
            return
        books = _keep(world, gaps, subject.seed)
        missing = [name for name in FIELDS if name not in books]
        if missing:
            yield unchecked(f"The ledger of the world does not show {', '.join(missing)}.")
            return
        yield self._reward(books)
        yield self._worth(books)
        yield from self._fills(books)
        yield self._costs(_keep(subject.world(still), still, subject.seed))

    def _reward(self, books: dict[str, FloatArray]) -> Finding:
        equity, reward = books["eq"], books["reward"]
        log = np.log(equity[1:] / equity[:-1])
        linear = np.diff(equity) / equity[0]
        off = float(np.abs(reward - log).max())
        if off <= self._config.tolerance:
            return fine("The reward is the change of log equity.", steps=len(reward), off_by=off)
        plain = float(np.abs(reward - linear).max())
        if plain <= self._config.tolerance:
            return fine(
                "The reward is the change of equity over opening cash.",
                steps=len(reward),
                off_by=plain,
            )
        worst = int(np.abs(reward - log).argmax())
        return error(
            "The reward is not the change of equity; whoever learns from it learns something else.",
            "Pay ln(equity after / equity before), with equity = cash + position x price",
            steps=len(reward),
            off_by=off,
            reward=float(reward[worst]),
            log_change=float(log[worst]),
        )

    def _worth(self, books: dict[str, FloatArray]) -> Finding:
        worth = books["cash"] + books["pos"] * books["close"]
        off = float((np.abs(worth - books["eq"]) / books["eq"]).max())
        if off <= self._config.tolerance:
            return fine(
                "Equity is cash plus position at the close.", moments=len(worth), off_by=off
            )
        return error(
            "Equity is not cash plus position at the close.",
            "Mark the position at the close of the bar and count all cash, once",
            moments=len(worth),
            off_by=off,
        )

    def _fills(self, books: dict[str, FloatArray]) -> Iterator[Finding]:
        price, at = _fill_prices(books)
        if not price.size:
            yield unchecked("Nothing was traded, so no fill could be looked at.")
            return
        opened, decided = books["open"][at], books["close"][at - 1]
        early = np.abs(price / decided - 1.0) < np.abs(price / opened - 1.0)
        if early.any():
            yield error(
                "Orders are filled at the close on which they were decided, a price that is gone "
                "when the decision is made.",
                "Fill at the next open",
                same_bar_fills=int(early.sum()),
                of=int(early.size),
            )
            return
        yield fine("No order is filled in the bar that decided it.", fills=int(early.size))
        off = self._identity(books)
        if off > self._config.tolerance:
            yield error(
                "The change of equity is not price moves less fees, slippage and funding: "
                "something is lost or counted twice.",
                "Charge each cost once, to cash and to its own account",
                off_by=off,
            )
        else:
            yield fine(
                "The change of equity is price moves less fees, slippage and funding.", off_by=off
            )

    def _identity(self, books: dict[str, FloatArray]) -> float:
        held, opened, close = books["pos"], books["open"], books["close"]
        moved = held[:-1] * (opened[1:] - close[:-1]) + held[1:] * (close[1:] - opened[1:])
        paid = sum(
            (np.diff(books[name]) for name in ("fees", "slip", "fund")), np.zeros(len(moved))
        )
        off = np.abs(np.diff(books["eq"]) - (moved - paid)) / books["eq"][1:]
        return float(off.max())

    def _costs(self, books: dict[str, FloatArray]) -> Finding:
        paid = sum(float(books[name][-1] - books[name][0]) for name in ("fees", "slip", "fund"))
        lost = float(books["eq"][0] - books["eq"][-1])
        off = abs(lost - paid) / float(books["eq"][0])
        if off <= self._config.tolerance * len(books["eq"]):
            return fine(
                "Where the price stands still, costs are all that is lost.", lost=lost, paid=paid
            )
        return error(
            "Where the price stands still, what is lost is not what was paid in costs.",
            "Book every cost; a price that does not move cannot pay or take anything",
            lost=lost,
            paid=paid,
        )


def _keep(world: World, bars: Bars, seed: int) -> dict[str, FloatArray]:
    """Play dice and return what the books say at every moment, with the bars beside it."""
    role, seeds = world.roles[0], Seeds(seed).child("audit", "accounting")
    place = {int(ts) + bars.period_ns: row for row, ts in enumerate(bars.ts)}
    seen = world.reset(seeds.child("world"))[role]
    dice = Dice(reach=0.5)
    dice.reset(world.start(role, seeds.child("agent")))
    rows, rewards = [_row(world, bars, place[seen.ts])], []
    while True:
        made: Decision = dice.act(seen)
        out: Outcome = world.step({role: made.action})[role]
        seen = out.observation
        rows.append(_row(world, bars, place[seen.ts]))
        rewards.append(out.reward)
        if out.terminated or out.truncated:
            break
    books = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return books | {"reward": np.array(rewards)}


def _row(world: Any, bars: Bars, at: int) -> dict[str, float]:
    record = world.ledger(world.roles[0])
    names = record.dtype.names if hasattr(record, "dtype") else record.keys()
    kept = {name: float(record[name]) for name in FIELDS if name in names}
    return kept | {"open": float(bars.open[at]), "close": float(bars.close[at])}


def _fill_prices(books: dict[str, FloatArray]) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the price of every trade, from what it took out of the cash, and the bar it was in."""
    bought = np.diff(books["pos"])
    spent = -np.diff(books["cash"]) - np.diff(books["fees"]) - np.diff(books["fund"])
    least = TRADED * float(np.abs(books["eq"] / books["close"]).max())
    traded = np.flatnonzero(np.abs(bought) > max(least, math.ulp(0.0)))
    return spent[traded] / bought[traded], traded + 1
