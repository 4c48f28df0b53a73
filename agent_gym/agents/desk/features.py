"""The features of a signal: one function, used live and in training.

It sees the signal, the view of that moment and what the context knew then; so a row of training
data is what the model would have been shown.
"""

from __future__ import annotations

from math import cos, inf, isfinite, log1p, nextafter, pi, sin

from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.schemas import Signal
from agent_gym.agents.desk.view import DeskView, Quote

HOUR_S = 3600.0
DAY_S = 86_400.0
RECENT_RESULTS = 50
OWN_PREFIX = "own."
FEATURE_NAMES = (
    "side",
    "notional_share",
    "volume_share",
    "is_limit",
    "limit_distance_bp",
    "confidence",
    "confidence_known",
    "horizon_hours",
    "age_s",
    "quote_known",
    "quote_age_s",
    "spread_bp",
    "volatility",
    "log_volume",
    "hour_sin",
    "hour_cos",
    "weekday",
    "exposure",
    "cash_share",
    "position_share",
    "drawdown",
    "value_at_risk",
    "log_signals_1h",
    "refused_share_1h",
    "log_pause_s",
    "win_share",
    "log_results",
)


def signal_features(signal: Signal, view: DeskView, context: ContextReader) -> dict[str, float]:
    """Return the features of a signal, all finite, always in the order of FEATURE_NAMES.

    What is not known has a neutral value and a flag that says so. ``strategy=<name>`` is 1 for
    the signal's strategy, and its own features follow under ``own.``. Pass ``context.as_of(t)``
    for the row of a past moment; it makes no difference whether the signal itself is stored by
    then, for its past ends before it came in.
    """
    found = [
        *_wish(signal, view),
        *_market(view.quotes.get(signal.symbol), view.now),
        *_calendar(view.now),
        *_account(signal, view),
        *_past(signal, view, context),
    ]
    features = dict(zip(FEATURE_NAMES, map(_finite, found), strict=True))
    features[f"strategy={signal.strategy}"] = 1.0
    for name, value in (signal.features or {}).items():
        features[OWN_PREFIX + name] = value
    return features


def _wish(signal: Signal, view: DeskView) -> tuple[float, ...]:
    params, quote = signal.params, view.quotes.get(signal.symbol)
    side = 1.0 if params.side == "buy" else -1.0
    mid = quote.mid if quote is not None else 0.0
    distance_bp = 0.0 if params.price is None else side * _ratio(1e4 * (params.price - mid), mid)
    return (
        side,
        _ratio(params.amount * mid, view.holdings.equity),
        _ratio(params.amount, quote.volume_per_hour if quote is not None else 0.0),
        float(params.price is not None),
        max(-1e4, min(1e4, distance_bp)),
        0.5 if params.confidence is None else params.confidence,
        float(params.confidence is not None),
        (params.horizon_s or 0) / HOUR_S,
        view.now - signal.timestamp,
    )


def _market(quote: Quote | None, now: float) -> tuple[float, ...]:
    if quote is None:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    return (
        1.0,
        now - quote.timestamp,
        _ratio(1e4 * (quote.ask - quote.bid), quote.mid),
        quote.volatility,
        log1p(max(0.0, quote.volume_per_hour)),
    )


def _calendar(now: float) -> tuple[float, ...]:
    turn = 2.0 * pi * (now % DAY_S) / DAY_S
    return (sin(turn), cos(turn), (now // DAY_S + 3.0) % 7.0)


def _account(signal: Signal, view: DeskView) -> tuple[float, ...]:
    holdings, quote = view.holdings, view.quotes.get(signal.symbol)
    side = 1.0 if signal.params.side == "buy" else -1.0
    held = holdings.positions.get(signal.symbol, 0.0) * (quote.mid if quote is not None else 0.0)
    return (
        holdings.exposure,
        _ratio(holdings.cash, holdings.equity),
        side * _ratio(held, holdings.equity),
        holdings.drawdown,
        holdings.value_at_risk,
    )


def _past(signal: Signal, view: DeskView, context: ContextReader) -> tuple[float, ...]:
    strategy, now = signal.strategy, view.now
    known_at = context.first_known(signal.signal_id)
    before = nextafter(now if known_at is None else min(now, known_at), -inf)
    arrived = context.arrivals(strategy, now - HOUR_S, before)
    refused = context.refusals(strategy, now - HOUR_S, before)
    last = context.last_arrival(strategy, before)
    results = context.last_results(strategy, RECENT_RESULTS, before)
    pause_s = DAY_S if last is None else min(DAY_S, now - last)
    return (
        log1p(arrived),
        min(1.0, (refused + 0.5) / (arrived + 1.0)),
        log1p(max(0.0, pause_s)),
        (sum(result.won for result in results) + 1.0) / (len(results) + 2.0),
        log1p(len(results)),
    )


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0.0 else 0.0


def _finite(value: float) -> float:
    return value if isfinite(value) else 0.0
