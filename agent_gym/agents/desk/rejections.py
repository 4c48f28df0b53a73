"""Why a signal is not traded: a closed list of codes, each with a text for people."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["info", "warning", "critical"]


class Meaning(NamedTuple):
    """What a code says to people, how grave it is, and whether another try may help."""

    text: str
    severity: Severity = "info"
    retryable: bool = False


class RejectCode(StrEnum):
    """Every reason there is, written ``family.code``."""

    SCHEMA_MISSING_FIELD = "schema.missing_field"
    SCHEMA_BAD_TYPE = "schema.bad_type"
    SCHEMA_OUT_OF_RANGE = "schema.out_of_range"
    SCHEMA_UNKNOWN_SYMBOL = "schema.unknown_symbol"
    SCHEMA_UNKNOWN_STRATEGY = "schema.unknown_strategy"
    SCHEMA_VERSION_UNSUPPORTED = "schema.version_unsupported"
    TIME_STALE = "time.stale"
    TIME_FUTURE_TIMESTAMP = "time.future_timestamp"
    TIME_OUT_OF_SESSION = "time.out_of_session"
    DUP_DUPLICATE_ID = "dup.duplicate_id"
    DUP_NEAR_DUPLICATE = "dup.near_duplicate"
    DUP_RATE_LIMITED = "dup.rate_limited"
    RISK_EXPOSURE_LIMIT = "risk.exposure_limit"
    RISK_POSITION_LIMIT = "risk.position_limit"
    RISK_VAR_LIMIT = "risk.var_limit"
    RISK_DRAWDOWN_BREAKER = "risk.drawdown_breaker"
    RISK_LEVERAGE = "risk.leverage"
    RISK_CORRELATION = "risk.correlation"
    RISK_MIN_NOTIONAL = "risk.min_notional"
    RISK_KELLY_ZERO_EDGE = "risk.kelly_zero_edge"
    MARKET_SPREAD_TOO_WIDE = "market.spread_too_wide"
    MARKET_VOLATILITY_HALT = "market.volatility_halt"
    MARKET_NO_LIQUIDITY = "market.no_liquidity"
    MARKET_DATA_STALE = "market.data_stale"
    MARKET_MARKET_CLOSED = "market.market_closed"
    MODEL_LOW_SCORE = "model.low_score"
    MODEL_UNCERTAIN = "model.uncertain"
    MODEL_DRIFT_HOLD = "model.drift_hold"
    AGENT_TIMEOUT = "agent.timeout"
    AGENT_UNAVAILABLE = "agent.unavailable"
    AGENT_ERROR = "agent.error"
    AGENT_CONTRADICTORY = "agent.contradictory"
    EXEC_EXCHANGE_REJECT = "exec.exchange_reject"
    EXEC_INSUFFICIENT_FUNDS = "exec.insufficient_funds"
    EXEC_PARTIAL_EXPIRED = "exec.partial_expired"
    EXEC_SLIPPAGE_EXCEEDED = "exec.slippage_exceeded"
    OPS_KILL_SWITCH = "ops.kill_switch"
    OPS_MAINTENANCE = "ops.maintenance"
    OPS_CONFIG_ERROR = "ops.config_error"

    @property
    def family(self) -> str:
        """Return the part before the dot.

        Example:
            >>> RejectCode.RISK_EXPOSURE_LIMIT.family, RejectCode.RISK_EXPOSURE_LIMIT.text
            ('risk', 'Exposure limit exceeded')
        """
        return self.value.partition(".")[0]

    @property
    def text(self) -> str:
        """Return the reason as people read it."""
        return MEANINGS[self].text

    @property
    def severity(self) -> Severity:
        """Return how grave it is."""
        return MEANINGS[self].severity

    @property
    def retryable(self) -> bool:
        """Return whether the same signal may pass a moment later."""
        return MEANINGS[self].retryable


_C = RejectCode
MEANINGS: dict[RejectCode, Meaning] = {
    _C.SCHEMA_MISSING_FIELD: Meaning("A required field is missing", "warning"),
    _C.SCHEMA_BAD_TYPE: Meaning("A field has the wrong type", "warning"),
    _C.SCHEMA_OUT_OF_RANGE: Meaning("A field is out of its range", "warning"),
    _C.SCHEMA_UNKNOWN_SYMBOL: Meaning("Symbol is not traded here", "warning"),
    _C.SCHEMA_UNKNOWN_STRATEGY: Meaning("Strategy is not known here", "warning"),
    _C.SCHEMA_VERSION_UNSUPPORTED: Meaning("Schema version is not supported", "warning"),
    _C.TIME_STALE: Meaning("Signal is too old"),
    _C.TIME_FUTURE_TIMESTAMP: Meaning("Signal comes from the future", "warning"),
    _C.TIME_OUT_OF_SESSION: Meaning("Outside the trading session"),
    _C.DUP_DUPLICATE_ID: Meaning("Signal id was seen before"),
    _C.DUP_NEAR_DUPLICATE: Meaning("Nearly the same signal came a moment ago"),
    _C.DUP_RATE_LIMITED: Meaning("Too many signals from this strategy", retryable=True),
    _C.RISK_EXPOSURE_LIMIT: Meaning("Exposure limit exceeded", "warning"),
    _C.RISK_POSITION_LIMIT: Meaning("Position limit exceeded", "warning"),
    _C.RISK_VAR_LIMIT: Meaning("Value at risk limit exceeded", "warning"),
    _C.RISK_DRAWDOWN_BREAKER: Meaning("Drawdown breaker is open", "critical"),
    _C.RISK_LEVERAGE: Meaning("Leverage limit exceeded", "warning"),
    _C.RISK_CORRELATION: Meaning("Too correlated with what is held", "warning"),
    _C.RISK_MIN_NOTIONAL: Meaning("Order is below the minimum notional"),
    _C.RISK_KELLY_ZERO_EDGE: Meaning("No edge left to size by"),
    _C.MARKET_SPREAD_TOO_WIDE: Meaning("Spread is too wide", retryable=True),
    _C.MARKET_VOLATILITY_HALT: Meaning("Trading is halted by volatility", "warning", True),
    _C.MARKET_NO_LIQUIDITY: Meaning("Not enough liquidity", retryable=True),
    _C.MARKET_DATA_STALE: Meaning("Market data are too old", "warning", True),
    _C.MARKET_MARKET_CLOSED: Meaning("Market is closed"),
    _C.MODEL_LOW_SCORE: Meaning("Model expects a loss"),
    _C.MODEL_UNCERTAIN: Meaning("Model cannot tell"),
    _C.MODEL_DRIFT_HOLD: Meaning("Model is on hold after drift", "warning"),
    _C.AGENT_TIMEOUT: Meaning("An agent did not answer in time", "warning", True),
    _C.AGENT_UNAVAILABLE: Meaning("An agent cannot be reached", "warning", True),
    _C.AGENT_ERROR: Meaning("An agent failed", "warning", True),
    _C.AGENT_CONTRADICTORY: Meaning("Agents contradict each other", "warning"),
    _C.EXEC_EXCHANGE_REJECT: Meaning("Exchange refused the order", "warning", True),
    _C.EXEC_INSUFFICIENT_FUNDS: Meaning("Not enough funds", "warning"),
    _C.EXEC_PARTIAL_EXPIRED: Meaning("Order expired partly filled"),
    _C.EXEC_SLIPPAGE_EXCEEDED: Meaning("Slippage limit exceeded", "warning"),
    _C.OPS_KILL_SWITCH: Meaning("Kill switch is on", "critical"),
    _C.OPS_MAINTENANCE: Meaning("Desk is under maintenance"),
    _C.OPS_CONFIG_ERROR: Meaning("Desk is set up wrongly", "critical"),
}
