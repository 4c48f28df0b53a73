"""What an exchange refuses, in its own code and words, and what can be done about it."""

from __future__ import annotations

from agent_gym.core.errors import VenueError

SEE_RULES = "exchange_info tells the filters of each symbol"
BY_WORDS = {
    "MARKET_LOT_SIZE": "This bar has no volume left for it: trade less, or step the clock first",
    "LOT_SIZE": "Send a quantity of at least minQty, in whole steps of stepSize",
    "PRICE_FILTER": "Send a price in whole steps of tickSize",
    "PERCENT_PRICE_BY_SIDE": "Send a price nearer to the market; ask for price",
    "NOTIONAL": "Trade more: quantity times price must reach minNotional",
    "TRAILING_DELTA": "Send a trailingDelta between its bounds, in basis points",
    "MAX_NUM_ORDERS": "Cancel some of open_orders first",
    "MAX_NUM_ALGO_ORDERS": "Cancel some of the orders that wait for a price first",
    "Market is closed": "The session is over; score tells what it came to",
    "clock runs by itself": "Ask for clock and wait until bar_closes has passed",
    "insufficient balance": "Ask for account, and trade less than is free; fees come on top",
    "immediately match": "Send a LIMIT_MAKER on the other side of the price, or a LIMIT",
    "relationship of the prices": "The price now must lie between the two; ask for price",
    "trigger immediately": "Send a stopPrice that the market has not reached; ask for price",
}
BY_CODE = {
    -1003: "Too many questions in a minute of simulated time: step the clock, or ask for less",
    -1014: "This combination is not traded here; a MARKET or a LIMIT order is",
    -1015: "Too many orders in ten seconds of simulated time: step the clock",
    -1021: "The clock of this machine and that of the sandbox are apart; set it right",
    -1022: "SANDBOX_SECRET is not the secret of SANDBOX_KEY; start the server with both",
    -1100: "Numbers are plain decimals above 0, and symbols are written like BTCUSDT",
    -1102: "Send the parameter that is named; which ones are needed depends on the type",
    -1106: "Leave out the parameter that is named; this type has no use for it",
    -1111: "Send at most 8 decimals",
    -1120: "Ask for the interval of the session (see clock) or a longer one that it divides",
    -1121: "exchange_info lists the symbols, written like BTCUSDT",
    -2011: "It may be filled or cancelled already; open_orders lists what can be cancelled",
    -2013: "open_orders and fills tell the numbers of orders",
    -2014: "SANDBOX_KEY is no key; start the server with one that the sandbox has given",
    -2015: "SANDBOX_KEY is none of this session's keys; start the server with one of them",
}
ELSE = "docs/sandbox.md says what the sandbox does and does not do"


class ExchangeRefusal(VenueError):
    """The exchange has answered with an error.

    Args:
        code: Its code, below 0.
        msg: Its words.
    """

    def __init__(self, code: int, msg: str) -> None:
        super().__init__(
            "the exchange refused the call", found=f"{code}: {msg}", remedy=remedy(code, msg)
        )
        self.code, self.msg = code, msg


class NoSandbox(VenueError):
    """There is no exchange at the address, or it is no sandbox."""


def remedy(code: int, msg: str) -> str:
    """Return what can be done about an error of the exchange.

    Example:
        >>> remedy(-1013, "Filter failure: PRICE_FILTER")
        'Send a price in whole steps of tickSize; exchange_info tells the filters of each symbol'
    """
    for words, hint in BY_WORDS.items():
        if words in msg:
            return f"{hint}; {SEE_RULES}" if "Filter failure" in msg else hint
    return BY_CODE.get(code, ELSE)
