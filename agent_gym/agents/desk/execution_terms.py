"""The terms of execution: how patient it is, what it is to trade, how it reports."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from pydantic import Field

from agent_gym.agents.desk.breaker import BreakerPolicy
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.routes import OrderKind
from agent_gym.core.registry import Config

Ending: TypeAlias = Literal["working", "filled", "partial", "unfilled", "rejected"]


class ExecutionPolicy(Config):
    """How patient execution is, and what it may pay."""

    limit_wait_s: float = Field(default=30.0, gt=0.0, description="a limit order rests so long")
    market_wait_s: float = Field(default=120.0, gt=0.0, description="a market order may take this")
    deadline_s: float = Field(default=600.0, gt=0.0, description="then nothing new is sent")
    max_retries: int = Field(default=2, ge=0, le=10, description="sends of one order again")
    max_attempts: int = Field(default=8, ge=1, description="orders sent for one signal")
    backoff_s: float = Field(default=1.0, ge=0.0, description="before the first retry; doubles")
    jitter: float = Field(default=0.5, ge=0.0, le=1.0, description="share the wait varies by")
    use_market: bool = Field(default=True, description="whether a market order is the last resort")
    max_slippage_bp: float | None = Field(
        default=200.0, gt=0.0, description="no market order this far from the reference price"
    )
    breaker: BreakerPolicy = BreakerPolicy()


class ExecutionOrder(Struct, frozen=True):
    """What is to be traded; without a limit price it goes to the market at once.

    ``immediate``: what does not trade by the next look is taken back, and nothing else is tried.
    """

    signal_id: str
    symbol: str
    quantity: float
    limit_price: float | None = None
    reference_price: float | None = None
    reduce_only: bool = False
    immediate: bool = False


class AttemptFill(Struct, frozen=True):
    """What one order of a signal traded, and where."""

    client_id: str
    route: str
    kind: OrderKind
    filled: float


class ExecutionReport(Struct, frozen=True):
    """How an order ended, or stands.

    ``attempts`` counts orders (client ids), ``retries`` sends of the same one again, ``fallbacks``
    changes to the next rung; ``routes`` and ``kinds`` are the rungs that were tried, ``fills`` has
    every order that may have reached a venue; ``first_failure_ns`` is when something first went
    wrong. ``slippage_bp`` is against the reference price, positive when it cost.
    """

    signal_id: str
    status: Ending
    quantity: float
    filled: float
    average_price: float | None
    fees: float
    slippage_bp: float | None
    code: RejectCode | None
    attempts: int
    retries: int
    fallbacks: int
    routes: tuple[str, ...]
    kinds: tuple[OrderKind, ...]
    fills: tuple[AttemptFill, ...]
    started_ns: int
    first_failure_ns: int | None
    done_ns: int | None
