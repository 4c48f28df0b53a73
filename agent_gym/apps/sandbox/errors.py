"""The exchange's own error codes, with the words that clients look for."""

from __future__ import annotations

from typing import Any

from agent_gym.exchange.spot_records import Refusal


class ExchangeError(Exception):
    """What a client is answered instead of a result.

    Args:
        code: The exchange's code, below 0.
        msg: Its words.
        status: Of the HTTP answer.
        data: What else it tells, where a part of a request was done.
    """

    def __init__(
        self, code: int, msg: str, status: int = 400, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {msg}")
        self.code, self.msg, self.status, self.data = code, msg, status, data

    def as_dict(self) -> dict[str, Any]:
        """Return it as the exchange writes it."""
        return {"code": self.code, "msg": self.msg} | ({"data": self.data} if self.data else {})


def missing(name: str) -> ExchangeError:
    """A mandatory parameter is not there."""
    return ExchangeError(
        -1102,
        f"Mandatory parameter '{name}' was not sent, was empty/null, or malformed.",
    )


def neither(first: str, second: str) -> ExchangeError:
    """One of two parameters must be there."""
    return ExchangeError(
        -1102, f"Param '{first}' or '{second}' must be sent, but both were empty/null!"
    )


def illegal(name: str, pattern: str) -> ExchangeError:
    """A parameter has characters that it must not have."""
    return ExchangeError(
        -1100, f"Illegal characters found in parameter '{name}'; legal range is '{pattern}'."
    )


def unneeded(name: str) -> ExchangeError:
    """A parameter does not go with this request."""
    return ExchangeError(-1106, f"Parameter '{name}' sent when not required.")


def filter_failure(name: str) -> ExchangeError:
    """An order does not fit one of the filters of its symbol."""
    return ExchangeError(-1013, f"Filter failure: {name}")


UNAUTHORIZED = ExchangeError(-2015, "Invalid API-key, IP, or permissions for action.", 401)
BAD_KEY_FORMAT = ExchangeError(-2014, "API-key format invalid.", 401)
BAD_SIGNATURE = ExchangeError(-1022, "Signature for this request is not valid.")
LATE = ExchangeError(-1021, "Timestamp for this request is outside of the recvWindow.")
EARLY = ExchangeError(-1021, "Timestamp for this request was 1000ms ahead of the server's time.")
LONG_WINDOW = ExchangeError(-1131, "recvWindow must be less than 60000.")
UNKNOWN_SYMBOL = ExchangeError(-1121, "Invalid symbol.")
UNKNOWN_INTERVAL = ExchangeError(-1120, "Invalid interval.")
UNKNOWN_ORDER = ExchangeError(-2013, "Order does not exist.")
CANCEL_REJECTED = ExchangeError(-2011, "Unknown order sent.")
DUPLICATE_ORDER = ExchangeError(-2010, "Duplicate order sent.")
UNKNOWN_LIST = ExchangeError(-2018, "Order list does not exist.")
BAD_PRICES = ExchangeError(-2010, "The relationship of the prices for the orders is not correct.")
NO_ICEBERG = ExchangeError(-2010, "Iceberg orders are not supported for this symbol.")
LONG_LOOK = ExchangeError(-1127, "More than 24 hours between startTime and endTime.")
UNKNOWN_LISTEN_KEY = ExchangeError(-1125, "This listenKey does not exist.")
NOT_FOUND = ExchangeError(-1000, "There is no such endpoint in the sandbox.", 404)
TOO_LONG = ExchangeError(-1101, "Too many parameters sent for this endpoint.", 413)
UNKNOWN = ExchangeError(-1000, "An unknown error occurred while processing the request.", 500)

REFUSALS = {
    Refusal.BALANCE: ExchangeError(-2010, "Account has insufficient balance for requested action."),
    Refusal.WOULD_TAKE: ExchangeError(-2010, "Order would immediately match and take."),
    Refusal.TRIGGERS: ExchangeError(-2010, "Stop price would trigger immediately."),
    Refusal.TOO_SMALL: filter_failure("NOTIONAL"),
    Refusal.NO_LIQUIDITY: ExchangeError(-1013, "Filter failure: MARKET_LOT_SIZE"),
    Refusal.CLOSED: ExchangeError(-1013, "Market is closed."),
    Refusal.UNKNOWN: CANCEL_REJECTED,
    Refusal.UNSUPPORTED: ExchangeError(-1014, "Unsupported order combination."),
}
