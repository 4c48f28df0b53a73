"""The calls that a visiting agent can make, by MCP or A2A: names, arguments, words."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agent_gym.apps.tool_desk import Call, Nothing, ToolDesk
from agent_gym.core.registry import Config, Ref, names
from agent_gym.evaluation.visit import MOST_BARS, VisitBook, VisitConfig


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


class VisitDesk(ToolDesk):
    """Carries out calls over a book of visits."""

    def __init__(self, book: VisitBook) -> None:
        calls = {
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
        super().__init__(calls)
