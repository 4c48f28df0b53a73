from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from faulty_venue import MIXED, drive
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults import (
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    Fault,
    FaultInjector,
    FaultPlan,
    PartialRule,
    RateLimitRule,
    RejectRule,
    StaleDataRule,
    TimeoutRule,
)
from agent_gym.exchange.faults.plan import PATH

SCRIPT = """
import json, sys
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults import FaultInjector, FaultPlan
injector = FaultInjector(FaultPlan.model_validate_json(sys.argv[1]), Seeds(11))
for i in range(1000):
    injector.on_request(("submit", "cancel", "positions")[i % 3], f"r{i}", i * 20 * 10**9)
print(json.dumps(injector.report()))
"""


def test_the_same_seed_gives_the_same_faults_in_other_processes() -> None:
    reports = []
    for hash_seed in ("0", "1234"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, MIXED.model_dump_json()],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        reports.append(json.loads(run.stdout))
    assert reports[0] == reports[1]
    injector = FaultInjector(MIXED, Seeds(11))
    kinds: list[Any] = ["submit", "cancel", "positions"]
    for i in range(1000):
        injector.on_request(kinds[i % 3], f"r{i}", i * 20 * SECOND_NS)
    assert reports[0] == injector.report()
    assert len(injector.log) > 100
    assert drive(MIXED, 11, 300).report() != drive(MIXED, 12, 300).report()


def test_every_kind_occurs_and_is_logged() -> None:
    injector = drive(MIXED, 5, 600)
    assert all(injector.counts[kind] > 0 for kind in PATH)
    assert Counter(fault.kind for fault in injector.log) == injector.counts
    assert injector.requests == {"submit": 600, "cancel": 600, "positions": 600}
    report = json.loads(json.dumps(injector.report(), allow_nan=False))
    assert len(report["log"]) == sum(report["faults"].values())
    timeouts = [fault.reached for fault in injector.log if fault.kind == "timeout"]
    assert {True, False} == set(timeouts)


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (TimeoutRule(rate=0.1), "submit"),
        (RejectRule(rate=0.05), "submit"),
        (PartialRule(rate=0.3), "submit"),
        (RateLimitRule(rate=0.05), "cancel"),
        (StaleDataRule(rate=0.2), "data"),
        (DelayedAckRule(rate=0.5), "cancel"),
        (DuplicateAckRule(rate=0.01), "submit"),
    ],
)
def test_rates_lie_within_binomial_intervals(rule: Any, kind: Any) -> None:
    injector = FaultInjector(FaultPlan(rules=(rule,)), Seeds(9))
    for i in range(20_000):
        injector.on_request(kind, f"r{i}", 0)
    low, high = stats.binom.interval(0.9999, 20_000, rule.rate)
    assert low <= injector.counts[rule.kind] <= high


def test_rates_are_shares_of_what_comes_so_far() -> None:
    injector = FaultInjector(FaultPlan.from_rates({"reject": 0.5, "timeout": 0.4}), Seeds(9))
    for i in range(20_000):
        injector.on_request("submit", f"r{i}", 0)
    low, high = stats.binom.interval(0.9999, 20_000, 0.6 * 0.5)
    assert low <= injector.counts["reject"] <= high


def test_outages_cover_the_share_of_bars_that_the_rate_implies() -> None:
    injector = FaultInjector(FaultPlan(rules=(DisconnectRule(rate=0.02, bars=3),)), Seeds(9))
    for bar in range(20_000):
        injector.on_request("submit", f"r{bar}", bar * MINUTE_NS)
    share = injector.counts["disconnect"] / 20_000
    assert share == pytest.approx(1 - 0.98**3, rel=0.15)


@settings(deadline=None)
@given(st.permutations(range(12)), st.integers(0, 11))
def test_a_fault_depends_on_its_own_request_alone(order: list[int], left_out: int) -> None:
    plan = FaultPlan.from_rates({"timeout": 0.3, "reject": 0.3, "partial": 0.3})

    def faults(requests: list[int]) -> dict[int, Fault | None]:
        injector = FaultInjector(plan, Seeds(1))
        return {i: injector.on_request("submit", f"r{i}", 0) for i in requests}

    straight = faults(list(range(12)))
    assert faults(order) == straight
    fewer = faults([i for i in order if i != left_out])
    assert fewer == {i: fault for i, fault in straight.items() if i != left_out}


def test_a_new_rule_changes_nothing_before_it() -> None:
    few = FaultInjector(FaultPlan.from_rates({"timeout": 0.3}), Seeds(1))
    more = FaultInjector(FaultPlan.from_rates({"partial": 0.9, "timeout": 0.3}), Seeds(1))
    for i in range(200):
        fault = few.on_request("submit", f"r{i}", 0)
        other = more.on_request("submit", f"r{i}", 0)
        assert fault is None or fault == other


def test_a_drawn_outage_lasts_its_bars_whoever_asks() -> None:
    plan = FaultPlan(bar_ns=10, rules=(DisconnectRule(rate=0.03, bars=4),))
    down = []
    for step in (1, 7):
        injector = FaultInjector(plan, Seeds(4))
        found = {ts for ts in range(0, 4000, step) if injector.on_request("data", f"{ts}", ts)}
        down.append(found)
    assert {ts for ts in down[0] if ts % 7 == 0} == down[1]
    bars = sorted({ts // 10 for ts in down[0]})
    assert len(down[0]) == 10 * len(bars)
    runs = [bar for bar in bars if bar - 1 not in bars]
    assert all(bar + extra in bars for bar in runs for extra in range(4) if bar + extra < 400)


def test_time_cannot_go_back() -> None:
    injector = FaultInjector(FaultPlan(), Seeds(0))
    injector.on_request("data", "a", 10)
    with pytest.raises(VenueError, match="go back"):
        injector.on_request("data", "b", 9)


# For each field of each rule: another value must change the record of the same run.
CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("timeout", {"rate": 0.3}, {"rate": 0.4}),
    ("timeout", {"rate": 0.3}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("timeout", {"rate": 0.3}, {"on": ["cancel"]}),
    ("timeout", {"rate": 0.3}, {"reached_share": 0.1}),
    ("reject", {"rate": 0.3}, {"rate": 0.4}),
    ("reject", {"rate": 0.3}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("reject", {"rate": 0.3}, {"on": ["cancel"]}),
    ("reject", {"rate": 0.3}, {"reasons": ["no"]}),
    ("partial", {"rate": 0.3}, {"rate": 0.4}),
    ("partial", {"rate": 0.3}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("partial", {"rate": 0.3}, {"on": []}),
    ("partial", {"rate": 0.3}, {"smallest": 0.2}),
    ("partial", {"rate": 0.3}, {"largest": 0.8}),
    ("disconnect", {"rate": 0.1}, {"rate": 0.2}),
    ("disconnect", {"rate": 0.1}, {"bars": 2}),
    ("disconnect", {"rate": 0.1}, {"on": ["cancel"]}),
    ("disconnect", {"rate": 0.1}, {"windows": [[0, 10**10]]}),
    ("rate_limit", {"rate": 0.1}, {"rate": 0.2}),
    ("rate_limit", {"rate": 0.1}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("rate_limit", {"rate": 0.1}, {"on": ["cancel"]}),
    ("rate_limit", {"rate": 0.1}, {"max_requests": 1}),
    ("rate_limit", {"rate": 0.1}, {"window_ns": 7}),
    ("stale_data", {"rate": 0.3}, {"rate": 0.4}),
    ("stale_data", {"rate": 0.3}, {"at": [f"positions:{i * 20 * 10**9}:0" for i in range(9)]}),
    ("stale_data", {"rate": 0.3}, {"on": ["data"]}),
    ("stale_data", {"rate": 0.3}, {"bars": 5}),
    ("delayed_ack", {"rate": 0.3}, {"rate": 0.4}),
    ("delayed_ack", {"rate": 0.3}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("delayed_ack", {"rate": 0.3}, {"on": ["cancel"]}),
    ("delayed_ack", {"rate": 0.3}, {"delay_ns": 3}),
    ("duplicate_ack", {"rate": 0.3}, {"rate": 0.4}),
    ("duplicate_ack", {"rate": 0.3}, {"at": ["submit:o3:0", "submit:o4:0", "submit:o5:0"]}),
    ("duplicate_ack", {"rate": 0.3}, {"on": ["cancel"]}),
    ("duplicate_ack", {"rate": 0.3}, {"delay_ns": 3}),
]


@pytest.mark.parametrize(("kind", "usual", "changed"), CHANGES)
def test_each_rule_field_acts(kind: str, usual: dict[str, Any], changed: dict[str, Any]) -> None:
    reports = []
    for params in (usual, usual | changed):
        plan = FaultPlan.model_validate({"rules": [{"kind": kind, **params}]})
        reports.append(drive(plan, 2, 60).report())
    assert reports[0] != reports[1]


def test_the_list_of_fields_above_is_complete() -> None:
    rules = (
        TimeoutRule,
        RejectRule,
        PartialRule,
        DisconnectRule,
        RateLimitRule,
        StaleDataRule,
        DelayedAckRule,
        DuplicateAckRule,
    )
    fields = {
        (rule.model_fields["kind"].default, name)
        for rule in rules
        for name in rule.model_fields
        if name != "kind"
    }
    assert {(kind, next(iter(changed))) for kind, _, changed in CHANGES} == fields
    assert (
        drive(MIXED, 1, 60).report()
        != drive(MIXED.model_copy(update={"bar_ns": SECOND_NS}), 1, 60).report()
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "timeout", "rate": 1.1},
        {"kind": "timeout", "rat": 0.1},
        {"kind": "earthquake"},
        {"kind": "partial", "smallest": 0.9, "largest": 0.1},
        {"kind": "partial", "on": ["cancel"]},
        {"kind": "disconnect", "windows": [[5, 5]]},
        {"kind": "rate_limit", "max_requests": 0},
        {"kind": "reject", "reasons": []},
    ],
)
def test_wrong_rules_are_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FaultPlan.model_validate({"rules": [rule]})
