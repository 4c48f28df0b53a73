"""Nothing may leave loopback: ccxt merges addresses, and one left out leads to the exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from local_exchange import LocalExchange

from agent_gym.core.errors import ConfigError
from agent_gym.markets.live import LiveConfig
from agent_gym.markets.live.adapter import ExchangeClient
from agent_gym.markets.live.ccxt_client import build_client, redirected

BASE = "http://127.0.0.1:9"


def addresses(value: Any, seen: set[int], depth: int = 0) -> Iterator[str]:
    """Walk everything a client holds and yield all that looks like an address."""
    if id(value) in seen or depth > 12:
        return
    seen.add(id(value))
    if isinstance(value, str):
        if "://" in value:
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from addresses(key, seen, depth + 1)
            yield from addresses(item, seen, depth + 1)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from addresses(item, seen, depth + 1)


def all_addresses(client: Any) -> list[str]:
    # Attributes, not vars(): ccxt keeps much of its state on the class.
    names = [name for name in dir(client) if not name.startswith("__")]
    return list(addresses({name: getattr(client, name) for name in names}, set()))


EXCHANGES = ["binance", "binanceusdm", "bybit", "okx", "gate"]
CASES = [("kraken", False), *((name, sandbox) for name in EXCHANGES for sandbox in (False, True))]


@pytest.mark.parametrize(("exchange", "sandbox"), CASES)
def test_every_address_of_a_redirected_client_is_loopback(exchange: str, sandbox: bool) -> None:
    client = build_client(LiveConfig(exchange=exchange, base_url=BASE, sandbox=sandbox))
    found = all_addresses(client)
    assert len(found) > 5
    assert {urlsplit(url).hostname for url in found} == {"127.0.0.1"}, found
    assert {urlsplit(url).scheme for url in found} <= {"http", "ws"}


def test_the_walk_would_notice_a_leak() -> None:
    client = build_client(LiveConfig(base_url=BASE))
    client.urls["api"]["ws"]["ws-api"]["spot"] = "wss://ws-api.binance.com/ws-api/v3"
    assert any("binance.com/ws-api/v3" in url and "127" not in url for url in all_addresses(client))
    assert any("binance.com" in url for url in all_addresses(build_client(LiveConfig())))


def test_redirection_by_merging_would_leak() -> None:
    # The trap itself: handing ccxt a partial tree leaves the other keys on the real exchange.
    client = type(build_client(LiveConfig()))({"urls": {"api": {"public": BASE}}})
    assert client.urls["api"]["public"] == BASE
    assert "binance.com" in client.urls["api"]["fapiPublic"]


def test_spot_streams_stay_recognisable() -> None:
    client = build_client(LiveConfig(base_url=BASE))
    spot = client.urls["api"]["ws"]["spot"]
    linear = client.urls["api"]["ws"]["linear"]

    class Socket:
        def __init__(self, url: str) -> None:
            self.url = url

    assert client.is_spot_url(Socket(spot))
    assert not client.is_spot_url(Socket(linear))


def test_redirected_leaves_the_original_alone() -> None:
    urls = {"api": {"a": ["https://{hostname}/x", {"b": "wss://s.x.com/ws"}]}, "fees": 0.1}
    moved = redirected(urls, "https://mirror.example/deep")
    assert moved == {
        "api": {
            "a": [
                "https://mirror.example/deep/x",
                {"b": "wss://mirror.example/deep/s.x.com/ws"},
            ]
        },
        "fees": 0.1,
    }
    assert urls["api"]["a"][0] == "https://{hostname}/x"


def test_sandbox_mode_really_changes_the_addresses() -> None:
    market = build_client(LiveConfig())
    sandbox = build_client(LiveConfig(sandbox=True))
    assert "testnet" in sandbox.urls["api"]["public"]
    assert "testnet" not in market.urls["api"]["public"]


def test_an_exchange_without_a_test_network_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no test network"):
        build_client(LiveConfig(exchange="kraken", sandbox=True))


def test_an_unknown_exchange_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="binance") as caught:
        build_client(LiveConfig(exchange="binanse"))
    assert "Did you mean 'binance'" in str(caught.value)


@pytest.mark.parametrize(
    "address", ["ftp://x", "127.0.0.1:80", "http://", "http://a:b@x.com", "http://x.com/?q=1", ""]
)
def test_a_base_url_that_is_no_plain_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        LiveConfig(base_url=address)


def test_settings_reach_ccxt() -> None:
    client = build_client(LiveConfig(timeout_s=1.5, rate_limit_ms=7.0, base_url=BASE))
    assert client.timeout == 1500
    assert client.rateLimit == 7.0
    assert client.enableRateLimit
    assert not client.aiohttp_trust_env  # a proxy must never see what is meant for loopback
    assert build_client(LiveConfig()).aiohttp_trust_env


def test_only_the_wanted_list_of_markets_is_loaded(
    exchange: LocalExchange, make_config: Any
) -> None:
    async def load(symbol: str) -> str:
        client = ExchangeClient(make_config(symbol=symbol))
        try:
            return (await client.instrument()).kind
        finally:
            await client.close()

    assert asyncio.run(load("BTC/USDT")) == "spot"
    assert asyncio.run(load("BTC/USDT:USDT")) == "perpetual"
    paths = [path for path, _ in exchange.requests]
    assert paths == ["/api/v3/exchangeInfo", "/fapi/v1/exchangeInfo"]
