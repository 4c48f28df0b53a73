from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from local_exchange import LocalExchange

from agent_gym.core.clock import ManualClock
from agent_gym.markets.live import LiveConfig, MarketDataLoader

MS_NS = 1_000_000


@pytest.fixture(scope="session")
def _server() -> Iterator[LocalExchange]:
    server = LocalExchange()
    yield server
    server.close()


@pytest.fixture
def exchange(_server: LocalExchange) -> LocalExchange:
    _server.reset()
    return _server


@pytest.fixture
def make_config(exchange: LocalExchange) -> Any:
    def make(**changes: Any) -> LiveConfig:
        quick = {
            "base_url": exchange.url,
            "rate_limit_ms": 0.1,
            "timeout_s": 5.0,
            "backoff_base_s": 0.01,
            "backoff_cap_s": 0.02,
            "stale_after_s": 5.0,
        }
        return LiveConfig.model_validate(quick | changes)

    return make


@pytest.fixture
def clock(exchange: LocalExchange) -> ManualClock:
    return ManualClock(exchange.now_ms * MS_NS)


@pytest.fixture
def make_loader(make_config: Any, clock: ManualClock) -> Iterator[Any]:
    opened = []

    def make(cache: Any = None, **changes: Any) -> MarketDataLoader:
        loader = MarketDataLoader(make_config(**changes), cache=cache, clock=clock)
        opened.append(loader)
        return loader

    yield make
    for loader in opened:
        loader.close()
