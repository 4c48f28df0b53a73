"""The parts of a rule table: what a rule sees, what it changes, and the effects most rules have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentName, FilterResult, RouteAction, Signal
from agent_gym.agents.desk.view import DeskView, Quote, is_closing

FULL_ROUTE: tuple[AgentName, ...] = ("strategy", "risk", "execution")


class Situation(NamedTuple):
    """What a rule may look at."""

    signal: Signal
    view: DeskView
    context: ContextReader
    result: FilterResult | None

    @property
    def quote(self) -> Quote | None:
        """Return the quote of the signal's symbol."""
        return self.view.quotes.get(self.signal.symbol)

    @property
    def closes(self) -> bool:
        """Return whether the trade only closes what is held."""
        held = self.view.holdings.positions.get(self.signal.symbol, 0.0)
        params = self.signal.params
        traded = params.amount if params.side == "buy" else -params.amount
        return is_closing(held, traded)


class Plan(Struct, frozen=True):
    """A decision in the making; size is in units of base."""

    size: float
    action: RouteAction = "execute"
    route: tuple[AgentName, ...] = FULL_ROUTE
    code: RejectCode | None = None


class Rule(NamedTuple):
    """One row of the table; lower priorities come first."""

    id: str
    priority: int
    predicate: Callable[[Situation, Plan], bool]
    effect: Callable[[Situation, Plan], Plan]
    meaning: str


def scaled(factor: float) -> Callable[[Situation, Plan], Plan]:
    """Return an effect that makes the order smaller."""

    def effect(_: Situation, plan: Plan) -> Plan:
        return replace(plan, size=plan.size * factor, action="reduce")

    return effect


def refused(code: RejectCode, action: RouteAction = "reject") -> Callable[[Situation, Plan], Plan]:
    """Return an effect that ends the matter."""

    def effect(_: Situation, plan: Plan) -> Plan:
        return replace(plan, size=0.0, action=action, route=(), code=code)

    return effect
