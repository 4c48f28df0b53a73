"""What a ccxt bot is given so that it talks to the sandbox and to nobody else."""

from __future__ import annotations

from typing import Any

from agent_gym.markets.live.ccxt_client import addresses

PATIENCE_MS = 60_000  # the machine may be busy: the bot and its exchange share it


def ccxt_options(url: str, api_key: str | None = None, secret: str | None = None) -> dict[str, Any]:
    """Return what ``ccxt.binance({...})`` takes to trade in a sandbox.

    Every address is redirected: ccxt adds what it is given to what it knows, and an address left
    out would still lead to the real exchange. It is the same for ``ccxt``, ``ccxt.async_support``
    and ``ccxt.pro``. The client does not slow itself down: the sandbox counts in simulated time.

    Args:
        url: Where the sandbox listens, such as ``http://127.0.0.1:8800``.
        api_key: The key of an account, as the sandbox printed it.
        secret: Its secret.

    Example:
        >>> options = ccxt_options("http://127.0.0.1:8800")
        >>> options["urls"]["api"]["private"]
        'http://127.0.0.1:8800/api/v3'
    """
    given = {"apiKey": api_key, "secret": secret}
    return {
        "urls": addresses("binance", url.rstrip("/")),
        "enableRateLimit": False,
        "timeout": PATIENCE_MS,
        "options": {"fetchMarkets": {"types": ["spot"]}, "fetchMargins": False},
        **{name: value for name, value in given.items() if value is not None},
    }
