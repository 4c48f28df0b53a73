"""The rules that come with the desk."""

from __future__ import annotations

from msgspec.structs import replace
from pydantic import Field

from agent_gym.agents.desk.logic_table import Plan, Rule, Situation, refused, scaled
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.registry import Config


class LogicConfig(Config):
    """Where the desk grows careful; each caution multiplies the order by ``caution_factor``."""

    careful_drawdown: float = Field(default=0.075, ge=0.0, le=1.0)
    careful_volatility: float = Field(default=0.025, ge=0.0)
    careful_spread_bp: float = Field(default=25.0, ge=0.0)
    careful_confidence: float = Field(default=0.55, ge=0.0, le=1.0)
    caution_factor: float = Field(default=0.5, gt=0.0, le=1.0)
    min_notional: float = Field(default=10.0, ge=0.0)


def default_rules(config: LogicConfig | None = None) -> tuple[Rule, ...]:
    """Return the table for a config."""
    limits = config or LogicConfig()
    half = scaled(limits.caution_factor)

    def no_market(at: Situation, _: Plan) -> bool:
        quote = at.quote
        return quote is None or not quote.is_open or not 0.0 < quote.bid <= quote.ask

    def losing(at: Situation, _: Plan) -> bool:
        return not at.closes and at.view.holdings.drawdown >= limits.careful_drawdown

    def restless(at: Situation, _: Plan) -> bool:
        quote = at.quote
        return not at.closes and quote is not None and quote.volatility >= limits.careful_volatility

    def wide(at: Situation, _: Plan) -> bool:
        quote = at.quote
        return not at.closes and quote is not None and quote.spread_bp >= limits.careful_spread_bp

    def doubtful(at: Situation, _: Plan) -> bool:
        chance = at.signal.params.confidence
        return not at.closes and chance is not None and chance < limits.careful_confidence

    def dust(at: Situation, plan: Plan) -> bool:
        return at.quote is not None and plan.size * at.quote.mid < limits.min_notional

    def smallest(at: Situation, plan: Plan) -> Plan:
        mid = at.quote.mid if at.quote is not None else 0.0
        least = limits.min_notional / mid if mid > 0.0 else plan.size
        return replace(plan, size=min(plan.size, least), action="reduce")

    return (
        Rule("kill-switch", 0, lambda at, _: at.view.kill_switch,
             refused(RejectCode.OPS_KILL_SWITCH), "reject everything"),
        Rule("maintenance", 1, lambda at, _: at.view.maintenance,
             refused(RejectCode.OPS_MAINTENANCE, "defer"), "defer until the desk is back"),
        Rule("no-market", 2, no_market,
             refused(RejectCode.MARKET_MARKET_CLOSED, "defer"), "defer until there is a market"),
        Rule("closing", 10, lambda at, _: at.closes,
             lambda _, plan: replace(plan, route=("risk", "execution")),
             "a trade that only closes needs no word from the strategy agent"),
        Rule("careful-drawdown", 20, losing, half, "smaller while losing"),
        Rule("careful-volatility", 21, restless, half, "smaller while prices jump about"),
        Rule("careful-spread", 22, wide, half, "smaller while the spread is wide"),
        Rule("careful-confidence", 23, doubtful, half, "smaller while the signal doubts itself"),
        Rule("dust", 30, dust,
             refused(RejectCode.RISK_MIN_NOTIONAL), "reject what became too small"),
        Rule("paper", 40, lambda at, _: at.result is not None and at.result.paper, smallest,
             "what the model vetoed is followed on paper, at the least size"),
    )  # fmt: skip


DEFAULT_RULES = default_rules()
