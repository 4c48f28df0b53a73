"""The records of the desk: what comes in, what is decided, what came of it.

They are frozen structs that read and write JSON through msgspec; times are epoch seconds, as the
systems that send signals write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from agent_gym.agents.desk.rejections import RejectCode

SCHEMA_VERSION = 1
Side: TypeAlias = Literal["buy", "sell"]
TimeInForce: TypeAlias = Literal["gtc", "ioc", "fok"]
Stage: TypeAlias = Literal["schema", "dedupe", "freshness", "policy", "market", "model"]
RouteAction: TypeAlias = Literal["execute", "reject", "defer", "reduce"]
AgentName: TypeAlias = Literal["strategy", "risk", "execution"]
AnswerStatus: TypeAlias = Literal["ok", "reject", "timeout", "error"]
Label: TypeAlias = Literal["win", "loss", "flat", "unfilled", "rejected"]


class SignalParams(Struct, frozen=True):
    """What a signal asks for; ``amount`` is in units of ``base``."""

    amount: float
    base: str = "BTC"
    quote: str = "USDT"
    side: Side = "buy"
    price: float | None = None
    tif: TimeInForce = "gtc"
    horizon_s: int | None = None
    confidence: float | None = None


class Signal(Struct, frozen=True):
    """One wish to trade, from one strategy, at one time."""

    signal_id: str
    strategy: str
    params: SignalParams
    timestamp: float
    source: str = "api"
    features: dict[str, float] | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def symbol(self) -> str:
        """Return the market as base and quote.

        Example:
            >>> Signal("s1", "momentum", SignalParams(0.1), 0.0).symbol
            'BTC/USDT'
        """
        return f"{self.params.base}/{self.params.quote}"


class FilterResult(Struct, frozen=True):
    """What the filter said of a signal; ``failed`` names every check that failed in audit mode.

    ``paper`` marks one that the model vetoed and that is followed on paper all the same; then
    ``failed`` names the veto.
    """

    signal_id: str
    accepted: bool
    stage: Stage
    code: RejectCode | None = None
    detail: str = ""
    score: float | None = None
    threshold: float | None = None
    latency_ms: float = 0.0
    model_version: str | None = None
    failed: tuple[RejectCode, ...] = ()
    paper: bool = False


class SignalFeatures(Struct, frozen=True):
    """The features of a signal as a model was, or would have been, shown them when it came in."""

    signal_id: str
    values: dict[str, float]


class Rejection(Struct, frozen=True):
    """Why a signal was not traded, and when that was said; ``stage`` only if the filter said it."""

    signal_id: str
    code: RejectCode
    timestamp: float
    detail: str = ""
    stage: Stage | None = None
    strategy: str = ""


class Decision(Struct, frozen=True):
    """What the rule table makes of an accepted signal: who is asked, and for how much."""

    signal_id: str
    action: RouteAction
    size: float
    route: tuple[AgentName, ...] = ()
    code: RejectCode | None = None
    rule_ids: tuple[str, ...] = ()
    trace_id: str = ""


class AgentRequest(Struct, frozen=True):
    """A question to one agent, with the time it has to answer."""

    trace_id: str
    agent: AgentName
    signal: Signal
    size: float
    context_digest: str
    deadline_ms: float
    attempt: int = 1


class AgentResponse(Struct, frozen=True):
    """An agent's answer, or what became of the question."""

    trace_id: str
    agent: AgentName
    status: AnswerStatus
    code: RejectCode | None = None
    payload: dict[str, Any] = {}
    latency_ms: float = 0.0
    attempt: int = 1


class Outcome(Struct, frozen=True):
    """What came of a signal; ``counterfactual`` marks a paper result of one that was not traded."""

    signal_id: str
    label: Label
    filled: float = 0.0
    avg_price: float | None = None
    fees: float = 0.0
    slippage_bp: float | None = None
    pnl_horizon: dict[str, float] = {}
    closed_at: float | None = None
    counterfactual: bool = False


class PnLSnapshot(Struct, frozen=True):
    """The account at one time; exposure is gross notional over equity."""

    timestamp: float
    equity: float
    cash: float
    exposure: float
    drawdown: float


def plain(record: Struct) -> dict[str, Any]:
    """Return a record as JSON-ready values.

    Example:
        >>> plain(PnLSnapshot(0.0, 1.0, 1.0, 0.0, 0.0))["equity"]
        1.0
    """
    values: Mapping[str, Any] = msgspec.to_builtins(record)
    return dict(values)
