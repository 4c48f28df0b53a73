"""Signals whose verdict is written down by hand; every code there is has a row that gives it."""

from collections import Counter

import pytest

from agent_gym.agents.desk import FILTER_RULES, FilterConfig, RejectCode, Signal, parse_signal
from tests.agents.desk_samples import GOLDEN, NOW, checked, golden_rows, raw_signal

ROWS = golden_rows("desk_front.jsonl")
FAMILIES = {"schema", "time", "dup", "risk", "market", "model", "ops"}


def misjudged(rows, **more):
    """Return the names of the rows whose verdict is not the one that is written down."""
    return [row["name"] for row in rows if checked(row, **more).code != row["code"]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_verdict_is_the_one_written_down(row):
    result = checked(row)
    assert (result.code, result.accepted) == (row["code"], row["code"] is None), result
    assert result.stage == row.get("stage", result.stage)
    assert result.paper is row.get("paper", False)
    if "field" in row:
        assert result.detail.startswith(f"{row['field']}: ")
    if "failed" in row:
        assert [code.value for code in result.failed] == row["failed"]
    assert result.accepted or result.detail.isprintable()


def test_there_are_enough_rows_and_no_two_of_a_name():
    assert len(ROWS) >= 60
    assert max(Counter(row["name"] for row in ROWS).values()) == 1
    assert sum(row["code"] is None for row in ROWS) >= 20


def test_every_code_of_the_front_has_a_row():
    given = {row["code"] for row in ROWS} - {None}
    assert given == {code.value for code in RejectCode if code.family in FAMILIES}


def test_every_code_there_is_has_a_row_in_some_golden_file():
    files = sorted(path.name for path in GOLDEN.glob("desk_*.jsonl"))
    given = {row["code"] for name in files for row in golden_rows(name)} - {None}
    assert given == {code.value for code in RejectCode}


@pytest.mark.parametrize("rule", FILTER_RULES, ids=lambda rule: rule.code.value)
def test_a_rule_that_is_missing_would_be_seen(rule):
    others = tuple(other for other in FILTER_RULES if other is not rule)
    assert misjudged(ROWS, rules=others)


def test_a_wrong_reason_would_be_seen():
    wrong = {RejectCode.TIME_STALE: RejectCode.TIME_FUTURE_TIMESTAMP}
    rules = tuple(rule._replace(code=wrong.get(rule.code, rule.code)) for rule in FILTER_RULES)
    assert "31 s old" in misjudged(ROWS, rules=rules)


def test_stages_in_another_order_would_be_seen():
    assert misjudged(ROWS, rules=tuple(reversed(FILTER_RULES)))


def test_the_same_question_has_the_same_answer_as_mapping_and_as_record():
    for row in ROWS:
        if row["code"] is None and "$only" not in row.get("signal", {}):
            signal = parse_signal(raw_signal(row.get("signal", {})))
            assert isinstance(signal, Signal)
            again = row | {"signal": {"$raw": signal}}
            assert checked(again) == checked(row)


CHANGES = {
    "symbols": (["ETH/USDT"], {}),
    "strategies": (["carry"], {}),
    "stale_s": (0.5, {}),
    "future_s": (5.0, {"signal": {"timestamp": NOW + 3}}),
    "session_hours_utc": ([1, 2], {}),
    "session_days": ([0], {}),
    "near_duplicate_s": (30.0, {"past": [{"signal_id": "t", "timestamp": NOW - 20}]}),
    "rate_limit": (1, {"past": [{"signal_id": "t", "timestamp": NOW - 20}]}),
    "rate_window_s": (
        90.0,
        {
            "past": [{"signal_id": f"t{i}", "timestamp": NOW - 70 + 0.1 * i} for i in range(60)],
            "config": {"near_duplicate_s": 0.0},
        },
    ),
    "max_exposure": (0.01, {}),
    "max_position": (0.01, {}),
    "max_var": (0.001, {}),
    "max_drawdown": (0.05, {"holdings": {"drawdown": 0.06}}),
    "max_leverage": (1.0, {"holdings": {"cash": 0.0}}),
    "max_correlation": (
        0.5,
        {
            "holdings": {"positions": {"ETH/USDT": 1.0}},
            "view": {"correlations": {"BTC/USDT": {"ETH/USDT": 0.6}}},
        },
    ),
    "min_notional": (6000.0, {}),
    "kelly_payoff": (0.5, {"signal": {"params": {"amount": 0.1, "confidence": 0.6}}}),
    "max_spread_bp": (1.0, {}),
    "max_volatility": (0.001, {}),
    "max_volume_share": (0.0001, {}),
    "data_stale_s": (0.5, {}),
    "epsilon_pass": (1.0, {"acceptor": {"score": 0.1, "threshold": 0.5}}),
    "audit": (True, {"view": {"kill_switch": True}}),
}


@pytest.mark.parametrize("field", FilterConfig.model_fields)
def test_every_limit_changes_a_verdict(field):
    value, row = CHANGES[field]
    changed = row | {"config": row.get("config", {}) | {field: value}}
    assert checked(changed) != checked(row)
