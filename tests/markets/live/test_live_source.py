from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from local_exchange import LocalExchange

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import configure
from agent_gym.core.seeds import Seeds
from agent_gym.markets.live.source import ExchangeMarketConfig, exchange_market


def market(exchange: LocalExchange, **changes: Any) -> Any:
    params = {
        "base_url": exchange.url,
        "rate_limit_ms": 0.1,
        "start": "2024-01-01",
        "end": "2024-01-02",
    }
    return exchange_market(configure(ExchangeMarketConfig, params | changes, where="test"))


def test_a_config_can_name_an_exchange(exchange: LocalExchange) -> None:
    bars = market(exchange).bars(Seeds(1))
    assert len(bars) == 25
    assert bars.fingerprint == market(exchange).bars(Seeds(2)).fingerprint
    assert len(market(exchange, period="1m").bars(Seeds(1))) == 1441


def test_the_cache_of_a_config_is_used(tmp_path: Path, exchange: LocalExchange) -> None:
    market(exchange, cache=tmp_path).bars(Seeds(1))
    asked = len(exchange.requests)
    market(exchange, cache=tmp_path).bars(Seeds(1))
    assert len(exchange.requests) == asked
    assert market(exchange, cache=tmp_path, sandbox=True).bars(Seeds(1)).provenance.sandbox
    assert {path.name for path in tmp_path.iterdir()} == {"binance", "binance.sandbox"}


def test_gaps_and_faults_are_as_asked(exchange: LocalExchange) -> None:
    exchange.missing = {1_704_067_200_000 + 60_000 * 77}
    with pytest.raises(DataError, match="bars are missing"):
        market(exchange, period="1m").bars(Seeds(1))
    assert len(market(exchange, period="1m", gaps="keep").bars(Seeds(1))) == 1440


@pytest.mark.parametrize("wrong", [{"gaps": "fill"}, {"start": None}, {"unknown": 1}])
def test_a_wrong_config_is_an_error(exchange: LocalExchange, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        market(exchange, **wrong)
