"""What a live source may be told: which exchange, how patient, how polite."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds


class LiveConfig(Config):
    """One symbol on one exchange, and how hard to try."""

    exchange: str = Field(default="binance", pattern=r"^[a-z0-9_]{2,40}$", description="ccxt id")
    symbol: str = Field(default="BTC/USDT", min_length=1, max_length=64)
    sandbox: bool = Field(default=False, description="use the exchange's test network")
    base_url: str | None = Field(
        default=None, description="send every request to this server instead of the exchange"
    )
    rate_limit_ms: float | None = Field(
        default=None, gt=0.0, description="pause per unit of request weight; None: the exchange's"
    )
    timeout_s: float = Field(default=10.0, gt=0.0, description="for one whole request")
    max_retries: int = Field(default=5, ge=0, le=20, description="per request, after the first try")
    backoff_base_s: float = Field(default=0.5, gt=0.0)
    backoff_cap_s: float = Field(default=30.0, gt=0.0)
    retry_after_cap_s: float = Field(
        default=120.0, gt=0.0, description="longest wait an exchange may ask for"
    )
    page_limit: int = Field(default=1000, ge=2, le=10_000, description="bars per request")
    stale_after_s: float = Field(
        default=60.0, gt=0.0, description="a stream that is silent for so long is opened again"
    )
    max_reconnects: int = Field(default=10, ge=0, le=1000, description="failures in a row")
    seed: int = Field(default=0, ge=0, description="of the jitter in the waiting times")

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write http://host:port or https://host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("no user, query or fragment belongs in it")
        return value.rstrip("/")

    @property
    def server(self) -> str:
        """Return who serves the data, as it is written into provenance."""
        return self.base_url or ("test network" if self.sandbox else "exchange")

    def backoff_s(self, request: int, attempt: int) -> float:
        """Return the wait before the next try: doubled each time, capped, with seeded jitter.

        Example:
            >>> config = LiveConfig(backoff_base_s=1.0, backoff_cap_s=4.0)
            >>> all(1.0 <= config.backoff_s(n, 1) <= 2.0 for n in range(9))
            True
            >>> config.backoff_s(3, 50) <= 4.0
            True
        """
        longest = min(self.backoff_cap_s, self.backoff_base_s * 2.0 ** min(attempt, 30))
        rng = Seeds(self.seed).child("live", "backoff", request, attempt).rng()
        return float(longest * (0.5 + 0.5 * rng.random()))
