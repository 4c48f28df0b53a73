"""The rule table: what each rule makes of a signal, and that every branch is walked."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from agent_gym.agents.desk import (
    DEFAULT_RULES,
    FilterResult,
    LogicConfig,
    LogicExecutor,
    RecentContext,
    RejectCode,
    Rule,
    default_rules,
    parse_signal,
)
from agent_gym.agents.desk.logic_table import scaled
from agent_gym.core.errors import AgentError, ConfigError
from tests.agents.desk_samples import HOLDINGS, RAW, VIEW, view_of
from tests.agents.test_desk_filter import WILD, calm_views, views

FULL = ("strategy", "risk", "execution")
LONG = {"positions": {"BTC/USDT": 0.5}}
PAPER = FilterResult("g1", True, "model", paper=True)
SITUATIONS = {
    "plain": ({}, {}, None, ("execute", 0.1, FULL, None, ())),
    "kill switch": (
        {"view": {"kill_switch": True, "maintenance": True}},
        {},
        None,
        ("reject", 0.0, (), "ops.kill_switch", ("kill-switch",)),
    ),
    "maintenance": (
        {"view": {"maintenance": True}},
        {},
        None,
        ("defer", 0.0, (), "ops.maintenance", ("maintenance",)),
    ),
    "closed": (
        {"quote": {"is_open": False}},
        {},
        None,
        ("defer", 0.0, (), "market.market_closed", ("no-market",)),
    ),
    "nobody bids": (
        {"quote": {"bid": 0.0}},
        {},
        None,
        ("defer", 0.0, (), "market.market_closed", ("no-market",)),
    ),
    "closing": (
        {"holdings": LONG | {"drawdown": 0.2}},
        {"side": "sell"},
        None,
        ("execute", 0.1, ("risk", "execution"), None, ("closing",)),
    ),
    "turning round": (
        {"holdings": LONG},
        {"side": "sell", "amount": 0.6},
        None,
        ("execute", 0.6, FULL, None, ()),
    ),
    "losing": (
        {"holdings": {"drawdown": 0.08}},
        {},
        None,
        ("reduce", 0.05, FULL, None, ("careful-drawdown",)),
    ),
    "restless": (
        {"quote": {"volatility": 0.03}},
        {},
        None,
        ("reduce", 0.05, FULL, None, ("careful-volatility",)),
    ),
    "wide": (
        {"quote": {"bid": 49_925.0, "ask": 50_075.0}},
        {},
        None,
        ("reduce", 0.05, FULL, None, ("careful-spread",)),
    ),
    "doubtful": (
        {},
        {"confidence": 0.52},
        None,
        ("reduce", 0.05, FULL, None, ("careful-confidence",)),
    ),
    "losing and doubtful": (
        {"holdings": {"drawdown": 0.08}},
        {"confidence": 0.52},
        None,
        ("reduce", 0.025, FULL, None, ("careful-drawdown", "careful-confidence")),
    ),
    "too small once it is halved": (
        {"holdings": {"drawdown": 0.08}},
        {"amount": 0.0003},
        None,
        ("reject", 0.0, (), "risk.min_notional", ("careful-drawdown", "dust")),
    ),
    "on paper": ({}, {}, PAPER, ("reduce", 0.0002, FULL, None, ("paper",))),
}


def decided(executor, row, params, result):
    signal = parse_signal(RAW | {"params": RAW["params"] | params})
    return executor.execute(signal, view_of(row), RecentContext(), result)


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_is_decided_as_written_down(name):
    row, params, result, (action, size, route, code, rules) = SITUATIONS[name]
    decision = decided(LogicExecutor(), row, params, result)
    assert (decision.action, decision.route, decision.rule_ids) == (action, route, rules)
    assert decision.size == pytest.approx(size, rel=1e-12)
    assert decision.code == (None if code is None else RejectCode(code))
    assert decision.signal_id == "g1"


def test_the_situations_walk_every_branch_of_the_table():
    executor = LogicExecutor()
    for row, params, result, _ in SITUATIONS.values():
        decided(executor, row, params, result)
    coverage = executor.coverage()
    assert coverage["branch_share"] == 1.0
    assert (coverage["never_held"], coverage["always_held"]) == ([], [])
    assert coverage["decisions"] == len(SITUATIONS)


def test_coverage_names_what_was_not_walked():
    executor = LogicExecutor()
    decided(executor, {}, {}, None)
    coverage = executor.coverage()
    assert "paper" in coverage["never_held"]
    assert coverage["branch_share"] == 0.5
    assert LogicExecutor(()).coverage()["branch_share"] is None


@pytest.mark.parametrize("rule", DEFAULT_RULES, ids=lambda rule: rule.id)
def test_a_rule_that_is_missing_would_be_seen(rule):
    table = LogicExecutor([other for other in DEFAULT_RULES if other is not rule])
    changed = [
        name
        for name, (row, params, result, _) in SITUATIONS.items()
        if decided(table, row, params, result) != decided(LogicExecutor(), row, params, result)
    ]
    assert changed


@given(view=calm_views() | views(WILD))
def test_a_decision_is_pure_and_never_larger_than_the_wish(view):
    signal, context, executor = parse_signal(RAW), RecentContext(), LogicExecutor()
    first = executor.execute(signal, view, context)
    assert executor.execute(signal, view, context) == first
    assert 0.0 <= first.size <= signal.params.amount
    assert (first.code is None) is bool(first.route)


def test_a_rule_that_makes_an_order_larger_is_stopped():
    bold = Rule("bold", 5, lambda at, plan: True, scaled(2.0), "twice as much")
    with pytest.raises(AgentError, match=r"made an order larger.*bold"):
        decided(LogicExecutor((*DEFAULT_RULES, bold)), {}, {}, None)


def test_two_rules_of_one_id_are_refused():
    with pytest.raises(ConfigError, match=r"same id.*dust"):
        LogicExecutor((*DEFAULT_RULES, *[rule for rule in DEFAULT_RULES if rule.id == "dust"]))


def test_the_order_of_the_table_is_by_priority_and_not_by_place():
    shuffled = LogicExecutor(DEFAULT_RULES[::-1])
    assert shuffled.rules == LogicExecutor().rules


@pytest.mark.parametrize("field", LogicConfig.model_fields)
def test_every_limit_of_the_table_changes_something(field):
    value = getattr(LogicConfig(), field)
    other = 0.0 if field.startswith("careful") and field != "careful_confidence" else 0.9
    other = 1e5 if field == "min_notional" else other
    assert other != value
    rules = default_rules(LogicConfig(**{field: other}))
    row = {"holdings": {"drawdown": 0.08}} if field == "caution_factor" else {}
    changed = decided(LogicExecutor(rules), row, {"confidence": 0.6}, None)
    assert changed != decided(LogicExecutor(), row, {"confidence": 0.6}, None)


def test_a_trace_follows_from_the_id():
    one = decided(LogicExecutor(), {}, {}, None).trace_id
    assert one == decided(LogicExecutor(), {"view": {"now": 5.0}}, {}, None).trace_id
    other = LogicExecutor().execute(
        parse_signal(RAW | {"signal_id": "g2"}), replace(VIEW, holdings=HOLDINGS), RecentContext()
    )
    assert other.trace_id != one
