"""The calls that a visiting agent can make, by MCP or A2A: names, arguments, words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from agent_gym.core.errors import AgentGymError
from agent_gym.core.registry import Config, Ref, configure, names
from agent_gym.evaluation.visit import MOST_BARS, VisitBook, VisitConfig


class Nothing(Config):
    """No arguments."""


class Begin(Config):
    """Which market, how long, and which seed draws it."""

    market: str = "synthetic/btc-1h"
    bars: int = Field(default=500, ge=2, le=MOST_BARS)
    seed: int = Field(default=0, ge=0)

    def visit(self) -> VisitConfig:
        """Return what is played."""
        return VisitConfig(market=self.market, bars=self.bars, seed=self.seed)


class Decide(Config):
    """Hold this share of equity (negative: short) for one bar, or for several."""

    session: str = Field(max_length=64)
    target: float
    times: int = Field(default=1, ge=1, le=MOST_BARS)


class End(Config):
    """The session to end."""

    session: str = Field(max_length=64)


class Run(Begin):
    """An agent by name, its parameters, and the market it trades."""

    agent: str
    params: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what it does, and its arguments."""

    about: str
    arguments: type[Config]
    work: Callable[[Any], dict[str, Any]]


class VisitDesk:
    """Carries out calls over a book of visits; what is wrong with a call is in its answer."""

    def __init__(self, book: VisitBook) -> None:
        self.calls: dict[str, Call] = {
            "list_markets": Call(
                "The markets that can be traded.", Nothing, lambda _: {"markets": book.markets()}
            ),
            "list_agents": Call(
                "The agents that a backtest can name.",
                Nothing,
                lambda _: {"agents": book.agents()},
            ),
            "list_scenarios": Call(
                "The scenarios that the nightly suite can play.",
                Nothing,
                lambda _: {"scenarios": list(names("scenario"))},
            ),
            "run_backtest": Call(
                "Run an agent over a market; returns its figures after costs.",
                Run,
                lambda asked: book.backtest(
                    Ref(use=asked.agent, params=asked.params), asked.visit()
                ),
            ),
            "begin_session": Call(
                "Begin to trade a market yourself; returns the session and the first bar.",
                Begin,
                lambda asked: book.begin(asked.visit()),
            ),
            "decide": Call(
                "Decide for the bar you see; returns reward and next bar.",
                Decide,
                lambda asked: book.step(asked.session, asked.target, asked.times),
            ),
            "end_session": Call(
                "End a session; returns the figures if all bars were played.",
                End,
                lambda asked: book.end(asked.session),
            ),
        }

    def call(self, name: str, arguments: Any) -> tuple[bool, dict[str, Any]]:
        """Carry out a call; return whether it went well, and the answer or the error."""
        wanted = self.calls.get(name)
        if wanted is None:
            known = ", ".join(self.calls)
            return False, {"what": "there is no such call", "found": name[:64], "expected": known}
        given = arguments if isinstance(arguments, dict) else {}
        try:
            return True, wanted.work(configure(wanted.arguments, given, where=name))
        except AgentGymError as error:
            return False, error.as_dict()
