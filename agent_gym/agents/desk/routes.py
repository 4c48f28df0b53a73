"""The lines over which orders go: what a route takes, what it answers and how it can fail.

Execution and protection trade over these protocols alone, so the same code runs against a simulated
venue and a real one. Quantities are signed units of the base; times are UTC nanoseconds.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct
from typing_extensions import override

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.errors import AgentGymError

OrderKind: TypeAlias = Literal["limit", "market", "stop"]
RouteStatus: TypeAlias = Literal["open", "filled", "partial", "cancelled", "rejected", "unknown"]


class RouteOrder(Struct, frozen=True):
    """One order as a route takes it; ``client_id`` names it for ever.

    Attributes:
        client_id: The name the desk gave it; sending it again makes no second order.
        symbol: The market.
        quantity: Units, negative to sell.
        kind: A stop becomes a market order once ``price`` is touched.
        price: Limit or stop price; a market order has none.
        reduce_only: It may only make the position smaller.
        good_until_ns: When the venue drops it of its own accord.
    """

    client_id: str
    symbol: str
    quantity: float
    kind: OrderKind
    price: float | None = None
    reduce_only: bool = False
    good_until_ns: int | None = None


class RouteState(Struct, frozen=True):
    """What a route knows of one order.

    ``partial`` still rests with a part traded; ``cancelled`` and ``rejected`` are final, and
    ``filled`` (signed like the order) is what had traded by then.
    """

    client_id: str
    status: RouteStatus
    filled: float = 0.0
    average_price: float | None = None
    fees: float = 0.0

    @property
    def is_live(self) -> bool:
        """Return whether it may still trade.

        Example:
            >>> RouteState("a", "partial", 0.5).is_live, RouteState("a", "cancelled").is_live
            (True, False)
        """
        return self.status in {"open", "partial"}


class Route(Protocol):
    """One line to one venue.

    An order that the venue has never seen has the state ``unknown``. Every call may raise a
    RouteError; ``submit`` with a known client id answers with that order's state.
    """

    @property
    def name(self) -> str: ...
    def submit(self, order: RouteOrder, now_ns: int) -> RouteState: ...
    def cancel(self, client_id: str, now_ns: int) -> RouteState: ...
    def state(self, client_id: str, now_ns: int) -> RouteState: ...
    def position(self, symbol: str, now_ns: int) -> float: ...


class RouteError(AgentGymError):
    """A request over a route failed."""


class RouteTimeout(RouteError):
    """No answer came; the request may or may not have reached the venue."""


class RouteDown(RouteError):
    """There is no line; the request never left."""


class RouteRefused(RouteError):
    """The venue got the request and refused it; ``code`` says why."""

    def __init__(
        self, what: str, *, code: RejectCode = RejectCode.EXEC_EXCHANGE_REJECT, **details: Any
    ) -> None:
        super().__init__(what, **details)
        self.code = code

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the code when the error crosses a process border."""
        return (_refused, (self.what, self.code.value, self.as_dict()))


class RouteBusy(RouteError):
    """The venue wants fewer requests and did not look at this one."""

    def __init__(self, what: str, *, retry_after_ns: int, **details: Any) -> None:
        super().__init__(what, **details)
        self.retry_after_ns = retry_after_ns

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the waiting time when the error crosses a process border."""
        return (_busy, (self.what, self.retry_after_ns, self.as_dict()))


def _details(fields: dict[str, str | None]) -> dict[str, Any]:
    return {name: fields[name] for name in ("where", "found", "expected", "remedy")}


def _refused(what: str, code: str, fields: dict[str, str | None]) -> RouteRefused:
    return RouteRefused(what, code=RejectCode(code), **_details(fields))


def _busy(what: str, retry_after_ns: int, fields: dict[str, str | None]) -> RouteBusy:
    return RouteBusy(what, retry_after_ns=retry_after_ns, **_details(fields))
