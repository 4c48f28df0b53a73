"""How a ccxt client is built (which network, how patient) and how its markets are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

import ccxt
import ccxt.pro

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown
from agent_gym.markets.instrument import Instrument, InstrumentKind
from agent_gym.markets.live.config import LiveConfig

MAX_TRADES_HELD = 20_000
_KINDS: dict[str, InstrumentKind] = {"spot": "spot", "swap": "perpetual"}


def build_client(config: LiveConfig) -> Any:
    """Return ccxt's client for the config: sandboxed and redirected as asked, nothing sent yet."""
    maker = getattr(ccxt.pro, config.exchange, None) or getattr(
        ccxt.async_support, config.exchange, None
    )
    if config.exchange not in ccxt.exchanges or maker is None:
        raise unknown("exchange in ccxt", config.exchange, tuple(ccxt.exchanges))
    settings: dict[str, Any] = {
        "enableRateLimit": True,
        "timeout": math.ceil(config.timeout_s * 1000.0),
        "options": {"tradesLimit": MAX_TRADES_HELD},
        # Proxies of the environment are for the exchange, never for a server named by hand.
        "aiohttp_trust_env": config.base_url is None,
    }
    if config.rate_limit_ms is not None:
        settings["rateLimit"] = config.rate_limit_ms
    if config.exchange.startswith("binance"):
        # One list of markets instead of three: the others would only cost time and weight.
        wanted = "linear" if ":" in config.symbol else "spot"
        settings["options"]["fetchMarkets"] = {"types": [wanted]}
    client = maker(settings)
    if config.sandbox:
        _enter_sandbox(client, config)
    if config.base_url is not None:
        client.urls = redirected(client.urls, config.base_url)
        if config.base_url.startswith("http://"):
            client.timeout_on_exit = 0  # ccxt waits here for TLS to say goodbye
    return client


def _enter_sandbox(client: Any, config: LiveConfig) -> None:
    if not client.urls.get("test"):
        raise ConfigError(
            f"{config.exchange} has no test network", remedy="Leave out the sandbox option"
        )
    client.set_sandbox_mode(True)


def redirected(urls: Any, base_url: str) -> Any:
    """Return the addresses of a ccxt client with every one of them on another server.

    The whole tree is rewritten, since an address left out would still lead to the exchange.
    A websocket address keeps its host as the first folder, because ccxt tells the spot stream
    from the others by it.

    Example:
        >>> redirected({"api": {"a": "https://x.com/v3"}, "n": 1}, "http://127.0.0.1:8000")
        {'api': {'a': 'http://127.0.0.1:8000/v3'}, 'n': 1}
        >>> redirected("wss://stream.x.com:9443/ws", "http://127.0.0.1:8000")
        'ws://127.0.0.1:8000/stream.x.com/ws'
    """
    if isinstance(urls, Mapping):
        return {key: redirected(value, base_url) for key, value in urls.items()}
    if isinstance(urls, list | tuple):
        return [redirected(value, base_url) for value in urls]
    if not isinstance(urls, str) or "://" not in urls:
        return urls
    parts = urlsplit(urls)
    if parts.scheme in ("ws", "wss"):
        host = parts.netloc.rpartition(":")[0] if ":" in parts.netloc else parts.netloc
        return f"ws{base_url.removeprefix('http')}/{host}{parts.path}"
    return f"{base_url}{parts.path}"


def addresses(exchange: str, base_url: str) -> dict[str, Any]:
    """Return every address of an exchange that ccxt knows, for REST and websockets, elsewhere."""
    maker = getattr(ccxt.pro, exchange, None)
    if maker is None:
        raise unknown("exchange in ccxt", exchange, tuple(ccxt.pro.exchanges))
    moved: dict[str, Any] = redirected(maker().urls, base_url)
    return {name: value for name, value in moved.items() if name in ("api", "test", "demo")}


def instrument_of(config: LiveConfig, market: Any, mode: int) -> Instrument:
    """Return our word for ccxt's market; ``mode`` says how it writes a precision."""
    kind = _KINDS.get(market["type"])
    if kind is None:
        raise ConfigError(
            "this kind of market is not supported",
            where=config.symbol,
            found=market["type"],
            expected=" or ".join(_KINDS),
        )
    precision = market.get("precision") or {}
    cost = (market.get("limits") or {}).get("cost") or {}
    return Instrument(
        symbol=config.symbol,
        exchange=config.exchange,
        kind=kind,
        tick=_step(precision.get("price"), mode),
        lot=_step(precision.get("amount"), mode),
        min_notional=float(cost.get("min") or 0.0),
    )


def _step(precision: Any, mode: int) -> float:
    if precision is None or mode == ccxt.SIGNIFICANT_DIGITS:
        return 0.0
    return float(precision) if mode == ccxt.TICK_SIZE else 10.0 ** -float(precision)


def no_symbol(config: LiveConfig, known: tuple[str, ...]) -> ConfigError:
    """Return the error for a symbol that the exchange does not have."""
    close = get_close_matches(config.symbol.upper(), known, n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Write it like BTC/USDT"
    return ConfigError(
        f"{config.exchange} has no market {config.symbol!r}",
        found=f"{len(known)} other markets" if known else None,
        remedy=hint,
    )
