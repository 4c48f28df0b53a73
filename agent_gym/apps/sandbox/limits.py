"""How much a client may ask: weights a minute and orders in ten seconds of simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_gym.apps.sandbox.errors import ExchangeError
from agent_gym.core.clock import DAY_NS, MINUTE_NS, SECOND_NS

WEIGHT_A_MINUTE = 6_000
ORDER_WINDOWS = {  # by the end of their header: how long, how many orders, how it is called
    "10S": (10 * SECOND_NS, 100, "SECOND", 10),
    "1D": (DAY_NS, 200_000, "DAY", 1),
}


class Limits:
    """Counts by whom; each window begins anew on the grid of simulated time."""

    def __init__(self, now_ns: Callable[[], int], weight: int = WEIGHT_A_MINUTE) -> None:
        self._now_ns, self._most = now_ns, weight
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}

    def weigh(self, client: str, weight: int) -> dict[str, str]:
        """Count a request and return the headers that tell the client; too many raise."""
        used = self._add(client, "weight", MINUTE_NS, weight)
        if used > self._most:
            raise ExchangeError(
                -1003,
                f"Too much request weight used; current limit is {self._most} request weight per "
                "1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API.",
                429,
            )
        return {"X-MBX-USED-WEIGHT": str(used), "X-MBX-USED-WEIGHT-1M": str(used)}

    def order_counts(self, account: str) -> list[dict[str, Any]]:
        """Return how many orders an account has sent in each window, and may send."""
        return [
            {
                "rateLimitType": "ORDERS",
                "interval": interval,
                "intervalNum": number,
                "limit": most,
                "count": self._add(account, name, window_ns, 0),
            }
            for name, (window_ns, most, interval, number) in ORDER_WINDOWS.items()
        ]

    def count_orders(self, account: str, orders: int) -> dict[str, str]:
        """Count orders and return the headers; too many raise."""
        headers = {}
        for name, (window_ns, most, interval, number) in ORDER_WINDOWS.items():
            count = self._add(account, name, window_ns, orders)
            if count > most:
                raise ExchangeError(
                    -1015,
                    f"Too many new orders; current limit is {most} orders per {number} {interval}.",
                    429,
                )
            headers[f"X-MBX-ORDER-COUNT-{name}"] = str(count)
        return headers

    def _add(self, who: str, what: str, window_ns: int, amount: int) -> int:
        window = self._now_ns() // window_ns
        at, count = self._counts.get((who, what), (window, 0))
        count = amount + (count if at == window else 0)
        self._counts[who, what] = (window, count)
        return count
