"""All faults that can be planted on purpose, and the figures that must give them away.

A gate that has never caught anything proves nothing. Each fault here sits in one part of the desk
or the venue, and names the figures (``type/metric``) that must move to the worse because of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.registry import unknown
from agent_gym.evaluation.scenarios import plants_desk as desk
from agent_gym.evaluation.scenarios import plants_line as line
from agent_gym.evaluation.scenarios import plants_trading as trading
from agent_gym.evaluation.scenarios.plant import Plant, Room
from agent_gym.evaluation.scenarios.plants_market import MARKET_PLANTS
from agent_gym.evaluation.scenarios.plants_plan import Altered
from agent_gym.evaluation.scenarios.sabotage import Sabotage

_C = RejectCode
_SIGNALS, _ORDERS, _GUARDS = "signal_throughput/", "execution_fallback/", "protection_health/"
_HEALTHY = Sabotage()
_SABOTAGE: dict[str, Sabotage] = {}
_DESK_PLANTS: dict[str, Plant] = {}


def _plant(name: str, what: str, room: Room, sabotage: Sabotage, *blamed: str) -> None:
    _SABOTAGE[name] = sabotage
    _DESK_PLANTS[name] = Plant(name=name, what=what, room=room, blamed=blamed)


def sabotage_named(name: str | None) -> Sabotage:
    """Return what a fault does to desk and venue; nothing, if it sits in the market.

    Raises:
        ConfigError: There is no such fault; the message has the nearest name.
    """
    if name is None or name in MARKET_PLANTS:
        return _HEALTHY
    if name not in _SABOTAGE:
        raise unknown("planted fault", name, tuple(sorted(PLANTS)))
    return _SABOTAGE[name]


# fmt: off
_plant("signals_dropped", "1 % of signals get no answer", "desk",
       Altered(desk.DroppingPlan), _SIGNALS + "dropped_signals")
_plant("dedupe_skipped", "the filter does not look for repeats", "desk",
       desk.OtherRules(_C.DUP_DUPLICATE_ID, _C.DUP_NEAR_DUPLICATE),
       _SIGNALS + "false_accept_rate", _SIGNALS + "reason_accuracy")
_plant("repeat_executed", "neither filter nor flow knows ids that came before", "desk",
       Altered(desk.RepeatingPlan), _SIGNALS + "duplicate_executions")
_plant("near_duplicates_accepted", "nearly equal signals pass", "desk",
       desk.OtherRules(_C.DUP_NEAR_DUPLICATE), _SIGNALS + "false_accept_rate")
_plant("rate_limit_ignored", "a strategy may send as much as it likes", "desk",
       desk.OtherRules(_C.DUP_RATE_LIMITED), _SIGNALS + "false_accept_rate")
_plant("stale_signals_accepted", "signals of any age pass", "desk",
       desk.OtherRules(_C.TIME_STALE), _SIGNALS + "false_accept_rate")
_plant("future_accepted", "signals from the future pass", "desk",
       desk.OtherRules(_C.TIME_FUTURE_TIMESTAMP), _SIGNALS + "false_accept_rate")
_plant("stale_price_accepted", "old quotes are traded on", "desk",
       desk.OtherRules(_C.MARKET_DATA_STALE),
       _SIGNALS + "false_accept_rate", _GUARDS + "blind_entries")
_plant("spread_check_off", "wide spreads are traded on", "desk",
       desk.OtherRules(_C.MARKET_SPREAD_TOO_WIDE), _SIGNALS + "false_accept_rate")
_plant("wrong_reason", "stale signals are said to come from the future", "desk",
       desk.OtherRules(renamed=(_C.TIME_STALE, _C.TIME_FUTURE_TIMESTAMP)),
       _SIGNALS + "reason_accuracy")
_plant("exposure_check_off", "the exposure limit is a hundred times too large", "desk",
       desk.OtherConfig(filter={"max_exposure": 100.0}), _SIGNALS + "reason_accuracy")
_plant("stale_limit_too_tight", "signals count as stale after half a second", "desk",
       desk.OtherConfig(filter={"stale_s": 0.5}),
       _SIGNALS + "false_reject_rate", _SIGNALS + "acceptance_rate_valid")
_plant("double_submit", "an order without an answer is sent again unasked", "desk",
       Altered(desk.ResendingPlan), _SIGNALS + "duplicate_executions")
_plant("compensation_skipped", "the rest of a partly filled order is left standing", "desk",
       Altered(desk.LeavingPlan), _SIGNALS + "orphan_orders")
_plant("oversized_orders", "every order is a tenth too large", "desk",
       Altered(desk.GreedyPlan), _SIGNALS + "wrong_executions")
_plant("retries_off", "nothing is ever tried again", "desk",
       desk.OtherConfig(flow={"max_retries": 0}, execution={"max_retries": 0}),
       _SIGNALS + "completion_rate", _SIGNALS + "acceptance_rate_valid")
_plant("latency_up", "agents take 30 % longer", "desk", line.Slowness(1.3),
       _SIGNALS + "latency_p50_ms", _SIGNALS + "latency_p95_ms")
_plant("risk_told_small", "value at risk is told at a third", "desk", line.WrongRisk(1.0 / 3.0),
       _SIGNALS + "false_accept_rate", _GUARDS + "var_exceedance_gap")

_plant("double_submit_line", "a line sends an unanswered order again under another name", "desk",
       line.OtherLine(line.DoublingLine),
       _ORDERS + "double_fill_count", _ORDERS + "exposure_mismatch_max")
_plant("retry_storm", "failed orders are sent again five times at once", "desk",
       line.OtherLine(line.StormingLine), _ORDERS + "retries_per_order")
_plant("secondary_never_used", "only the first line is ever used", "desk",
       Altered(trading.LonelyPlan),
       _ORDERS + "recovery_time_p95_s", _ORDERS + "market_fallback_ratio")
_plant("orphans_left", "cancels are said to have worked and were never sent", "desk",
       line.OtherLine(line.LeavingLine),
       _ORDERS + "orphan_orders", _ORDERS + "double_fill_count", _ORDERS + "exposure_mismatch_max")
_plant("sign_flip", "one order in fifty is turned around", "desk",
       line.OtherLine(line.FlippingLine),
       _ORDERS + "wrong_side_count", _ORDERS + "exposure_mismatch_max")
_plant("partial_fill_forgotten", "what traded of an order that was taken back is lost", "desk",
       line.OtherLine(line.ForgettingLine),
       _ORDERS + "exposure_mismatch_max", _ORDERS + "double_fill_count")
_plant("slippage_limit_ignored", "market orders go out at any price", "desk",
       desk.OtherConfig(execution={"max_slippage_bp": None}), _ORDERS + "slippage_bp_p95")
_plant("market_never_used", "no market order when limits do not fill", "desk",
       desk.OtherConfig(execution={"use_market": False}),
       _ORDERS + "fill_rate")
_plant("breaker_stuck", "a half-open breaker never closes", "desk",
       Altered(trading.StuckPlan), _ORDERS + "primary_fill_share")

_plant("stop_not_resized", "a stop keeps its first size", "desk",
       Altered(trading.LazyPlan),
       _GUARDS + "stale_protection_count", _GUARDS + "bare_positions",
       _GUARDS + "protected_time_share")
_plant("stop_disabled", "no stops are placed", "desk", Altered(trading.StoplessPlan),
       _GUARDS + "bare_positions", _GUARDS + "protected_time_share")
_plant("stop_too_wide", "stops stand twice as far away", "desk",
       desk.OtherConfig(protection={"stop_loss_pct": 0.04}), _GUARDS + "stop_trigger_recall")
_plant("stop_too_tight", "stops stand half as far away", "desk",
       desk.OtherConfig(protection={"stop_loss_pct": 0.01}), _GUARDS + "stop_false_trigger_rate")
_plant("target_on_wrong_side", "profit targets stand on the side of the loss", "desk",
       desk.OtherConfig(protection={"take_profit_pct": -0.01}), _GUARDS + "losing_take_profits")
_plant("guards_unwatched", "nobody asks what became of stops", "desk",
       Altered(trading.BlindPlan), _GUARDS + "position_mismatches", _GUARDS + "bare_positions")
_plant("breaker_bar_late", "the drawdown breaker is a bar late", "desk",
       Altered(trading.LatePlan), _GUARDS + "breaker_latency_bars")

_plant("fee_doubled", "the venue takes twice its fees", "venue",
       line.OtherCosts({"maker_bps": 2.0, "taker_bps": 2.0}), _ORDERS + "fees_bp_mean")
_plant("slippage_up", "the venue slips five times as much", "venue",
       line.OtherCosts({"slippage_bps": 5.0}),
       _ORDERS + "slippage_bp_p95", _GUARDS + "stop_overshoot_bp_p95")
_plant("orders_travel_longer", "orders arrive a bar later", "venue",
       line.OtherCosts({}, {"latency_bars": 1}),
       _ORDERS + "time_to_fill_p50_s", _GUARDS + "protected_time_share")
# fmt: on

PLANTS: Mapping[str, Plant] = {**_DESK_PLANTS, **MARKET_PLANTS}
