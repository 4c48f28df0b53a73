from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scenario_samples import DESK_TYPES, SMALL, plain, play, small
from typing_extensions import override

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, entry
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.counterparties import AgentLatency
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.signal_stream import FLAWS, FLOOD
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, default_suite, play_seed

OTHER: dict[str, dict[str, list[dict[str, Any]]]] = {
    "signal_throughput": {
        "hours": [{"hours": 0.75}],
        "rate_per_hour": [{"rate_per_hour": 200.0}],
        "burst_factor": [{"burst_factor": 8.0}],
        "burst_prob": [{"burst_prob": 0.5}],
        "invalid_share": [{"invalid_share": 0.3}],
        "dup_share": [{"dup_share": 0.2}],
        "stale_share": [{"stale_share": 0.2}],
        "floods": [{"floods": 2}],
        "strategies": [{"strategies": {"momentum": 1.0}}],
        "agent_latency_ms": [
            {"agent_latency_ms": {"median": 90.0}},
            {"agent_latency_ms": {"sigma": 0.1}},
        ],
        "agent_failure_share": [{"agent_failure_share": 0.3}],
        "partial_share": [{"partial_share": 0.5}],
        "capacity": [{"capacity": 3}],
        "queue_limit": [{"queue_limit": 1}],
        "deadline_ms": [{"deadline_ms": 300.0}],
    },
    "execution_fallback": {
        "orders": [{"orders": 41}],
        "interval_s": [{"interval_s": 30.0}],
        "limit_share": [{"limit_share": 0.2}],
        "limit_offset_bp": [{"limit_offset_bp": 3.0}],
        "fail_modes": [
            {"fail_modes": {mode: 0.4}}
            for mode in ("timeout", "reject", "partial", "disconnect", "rate_limit")
        ],
        "outages": [
            {"outages": []},
            {"outages": [{"start_s": 200.0, "duration_s": 60.0}]},
            {"outages": [{"start_s": 100.0, "duration_s": 200.0}]},
        ],
        "routes": [
            {"routes": [{"name": "primary"}]},
            {"routes": [{"name": "primary"}, {"name": "secondary", "badness": 3.0}]},
        ],
        "retry": [{"retry": {"max_retries": 0}}, {"retry": {"limit_wait_s": 6.0}}],
        "bar_s": [{"bar_s": 10.0}],
        "sigma_bp": [{"sigma_bp": 9.0}],
        "spread_bp": [{"spread_bp": 9.0}],
        "latency_bars": [{"latency_bars": 1}],
    },
    "protection_health": {
        "positions": [{"positions": 31}],
        "hours": [{"hours": 13.0}],
        "shocks": [
            {"shocks": []},
            {"shocks": [{"t": 0.5, "jump_pct": -0.1}]},
            {"shocks": [{"t": 0.6, "jump_pct": -0.1}]},
            {"shocks": [{"t": 0.5, "jump_pct": 0.1}]},
        ],
        "gap_prob": [{"gap_prob": 0.2}],
        "stop_loss_pct": [{"stop_loss_pct": 0.01}],
        "take_profit_pct": [{"take_profit_pct": 0.01}],
        "trailing": [{"trailing": True}],
        "cancel_fail_prob": [{"cancel_fail_prob": 0.9}],
        "lost_prob": [{"lost_prob": 0.2}],
        "feed_gap_s": [{"feed_gap_s": 20_000.0}],
        "dd_limit": [{"dd_limit": 0.002}],
        "var_limit": [{"var_limit": 0.012}],
        "position_share": [{"position_share": 0.1}],
        "long_share": [{"long_share": 1.0}],
        "volatility": [{"volatility": 0.01}],
        "bar_s": [{"bar_s": 600.0}],
    },
}
CHANGES = [
    (kind, name, change)
    for kind, fields in OTHER.items()
    for name, changes in fields.items()
    for change in changes
]


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_every_parameter_is_tried(kind: str) -> None:
    fields = set(entry("scenario", kind).config.model_fields)
    recorded = {"source", "hours"} if kind == "execution_fallback" else {"source"}
    assert set(OTHER[kind]) == fields - recorded


@pytest.mark.parametrize(("kind", "name", "change"), CHANGES)
def test_every_parameter_changes_what_happens(kind: str, name: str, change: dict[str, Any]) -> None:
    assert list(change) == [name]
    changed = {play(kind, seed, **change).trajectory_hash for seed in (1, 2)}
    assert changed.isdisjoint({plain(kind, seed).trajectory_hash for seed in (1, 2)})


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_a_seed_is_one_story_and_another_seed_another(kind: str) -> None:
    first, again, other = play(kind, 3), play(kind, 3), play(kind, 4)
    assert (first.metrics, first.trajectory_hash) == (again.metrics, again.trajectory_hash)
    assert first.trajectory_hash != other.trajectory_hash
    assert set(first.perf) >= {"wall_s"}


CHILD = """
import json, sys
from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios import ScenarioConfig, Subject, play_seed
found = {}
for kind, params in json.loads(sys.argv[1]).items():
    config = ScenarioConfig(name="small", type=kind, params=params)
    episode = play_seed(config, Subject(), 3)
    found[kind] = [episode.trajectory_hash, dict(episode.metrics)]
print(json.dumps(found))
"""


@pytest.mark.parametrize(("hash_seed", "zone"), [("0", "UTC"), ("4711", "Asia/Kathmandu")])
def test_the_story_is_the_same_in_another_process(hash_seed: str, zone: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(SMALL)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    here = {kind: [plain(kind, 3).trajectory_hash, dict(plain(kind, 3).metrics)] for kind in SMALL}
    assert json.loads(done.stdout) == here


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_a_healthy_desk_breaks_no_law(kind: str) -> None:
    laws = [metric.name for metric in small(kind).metrics() if metric.must_be_zero]
    assert len(laws) >= 4
    for seed in range(20):
        episode = play(kind, 100 + seed)
        assert {name: episode.metrics[name] for name in laws} == dict.fromkeys(laws, 0.0)


def test_a_healthy_desk_judges_every_flaw_right() -> None:
    seen = set()
    for seed in range(4):
        episode = play("signal_throughput", seed, invalid_share=0.6, burst_prob=0.5)
        assert episode.metrics["reason_accuracy"] == 1.0
        assert episode.metrics["false_accept_rate"] == 0.0
        assert episode.metrics["false_reject_rate"] == 0.0
        config = small("signal_throughput", invalid_share=0.6, burst_prob=0.5)
        scenario: Any = config.make()
        tally, _ = scenario._played(Seeds(seed), Subject(), None)
        seen |= {taken.arrival.flaw for taken in tally.signals}
    assert seen == {"", "duplicate", "stale", FLOOD, *FLAWS}


def test_a_slow_desk_lets_good_signals_go_stale() -> None:
    slow: dict[str, Any] = {
        "agent_latency_ms": {"median": 450.0, "sigma": 0.0},
        "rate_per_hour": 6_000.0,
    }
    slow |= {"burst_prob": 0.0, "floods": 0, "agent_failure_share": 0.0}
    episode = play("signal_throughput", 1, **slow, capacity=1)
    reject = episode.metrics["false_reject_rate"]
    assert reject is not None
    assert reject > 0.1
    quick = play("signal_throughput", 1, **slow, capacity=20)
    assert quick.metrics["false_reject_rate"] == 0.0
    queue = quick.metrics["queue_max"]
    assert queue is not None
    assert queue <= 2


@pytest.mark.parametrize(
    ("kind", "change", "worse"),
    [
        ("signal_throughput", {"deadline_ms": 200.0}, ("deadline_miss_rate",)),
        (
            "signal_throughput",
            {"agent_latency_ms": {"median": 400.0}},
            ("wait_p95_ms", "queue_max"),
        ),
        ("signal_throughput", {"queue_limit": 1, "rate_per_hour": 5e3}, ("dropped_signals",)),
        (
            "execution_fallback",
            {"retry": {"deadline_s": 1e6, "max_slippage_bp": 1e-6}, "limit_share": 0.0},
            ("unfinished_orders",),
        ),
        (
            "execution_fallback",
            {"fail_modes": {"reject": 0.4}, "limit_share": 0.0},
            ("market_failed",),
        ),
        ("protection_health", {"cancel_fail_prob": 1.0}, ("orphan_guards",)),
    ],
)
def test_figures_that_no_planted_fault_moves_can_move(
    kind: str, change: dict[str, Any], worse: tuple[str, ...]
) -> None:
    base, other = plain(kind, 1), play(kind, 1, **change)
    for name in worse:
        was, now = base.metrics[name], other.metrics[name]
        assert was is not None
        assert now is not None
        assert now > was, name


def test_late_answers_do_not_count_as_processed() -> None:
    base, late = plain("signal_throughput", 1), play("signal_throughput", 1, deadline_ms=200.0)
    was = base.metrics["signals_processed_per_hour"]
    now = late.metrics["signals_processed_per_hour"]
    assert was is not None
    assert now is not None
    assert now < was


def test_the_desks_own_config_is_under_test() -> None:
    careless = Subject(desk=Ref(use="core-agent", params={"filter": {"future_s": 1e6}}))
    config = small("signal_throughput", invalid_share=0.5)
    healthy, other = play_seed(config, Subject(), 1), play_seed(config, careless, 1)
    assert healthy.metrics["false_accept_rate"] == 0.0
    assert other.metrics["false_accept_rate"] != 0.0
    unknown = Subject(desk=Ref(use="core-agent", params={"filter": {"futur_s": 1.0}}))
    with pytest.raises(ConfigError):
        play_seed(config, unknown, 1)


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_an_agent_of_a_market_scenario_is_nothing_to_a_desk(kind: str) -> None:
    other = play_seed(small(kind), Subject(agent=Ref(use="rules/momentum")), 1)
    assert other.trajectory_hash == play(kind, 1).trajectory_hash


def test_streams_are_apart() -> None:
    # More latency draws, another failure share: the signals that come in stay the same ones.
    base = play("signal_throughput", 1)
    for change in (
        {"agent_failure_share": 0.5},
        {"agent_latency_ms": AgentLatency(median=10.0).model_dump()},
        {"partial_share": 0.9},
        {"capacity": 7},
    ):
        other = play("signal_throughput", 1, **change)
        for name in ("signals_total", "unique_symbols", "avg_confidence", "reason_accuracy"):
            assert other.metrics[name] == base.metrics[name]


class OtherDesk(Seeds):
    """The same world, met by a desk whose own draws come out otherwise."""

    __slots__ = ()

    @override
    def child(self, *names: str | int) -> Seeds:
        own = names[0] in ("agent", "retries")
        return Seeds(self.root + 1 if own else self.root, self.path).child(*names)


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        (
            "signal_throughput",
            ("signals_total", "reason_accuracy", "false_accept_rate", "latency_p50_ms"),
        ),
        ("execution_fallback", ("fill_rate", "double_fill_count", "wrong_side_count")),
    ],
)
def test_another_draw_of_the_desk_changes_only_its_waits(kind: str, same: tuple[str, ...]) -> None:
    patient = {"retry": {"backoff_s": 8.0}, "fail_modes": {"timeout": 0.3}}
    scenario = small(kind, **(patient if kind == "execution_fallback" else {})).make()
    one, other = scenario.play(Seeds(1), Subject()), scenario.play(OtherDesk(1), Subject())
    assert one.trajectory_hash != other.trajectory_hash
    for name in same:
        assert one.metrics[name] == pytest.approx(other.metrics[name], rel=0.05, abs=1e-9)
    assert scenario.play(OtherDesk(1), Subject()).trajectory_hash == other.trajectory_hash


def test_the_default_suite_is_large_enough_and_plays() -> None:
    suite = default_suite()
    gating = [m for scenario in suite.scenarios for m in scenario.metrics() if m.gates]
    assert len(suite.scenarios) >= 8
    assert len(gating) >= 60
    assert {scenario.type for scenario in suite.scenarios} >= {*DESK_TYPES, "flash_crash"}
    for scenario in suite.scenarios:
        assert play_seed(scenario, suite.subject(), 5).events > 0


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_metrics_are_defined_where_the_default_suite_gates(kind: str) -> None:
    for scenario in default_suite().scenarios:
        if scenario.type == kind:
            for seed in (11, 12, 13):
                episode = play_seed(scenario, Subject(), seed)
                gating = [m.name for m in scenario.metrics() if m.gates]
                assert [name for name in gating if episode.metrics[name] is None] == []


def _write_log(path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for i in range(60):
        stamp = 1_700_000_000.0 + 90.0 * i
        side, sign = ("buy", 1.0) if i % 2 else ("sell", -1.0)
        signal = {"signal_id": f"r{i}", "symbol": "BTC/USDT", "strategy": "own", "side": side}
        market = {"timestamp": stamp, "confidence": 0.7, "quality": 0.5, "amount": 0.5}
        rows.append({"stream": "signals", **signal, **market})
        order = {"order_id": f"o{i}", "symbol": "BTC/USDT", "signal_id": f"r{i}"}
        detail = {"quantity": sign * 0.5, "kind": "limit", "price": 100.0, "status": "filled"}
        rows.append({"stream": "orders", "timestamp": stamp + 1.0, **order, **detail})
        fill = {"order_id": f"o{i}", "quantity": 0.5, "price": 100.0}
        rows.append({"stream": "fills", "timestamp": stamp + 2.0, **fill})
        guard = {"symbol": "BTC/USDT", "kind": "sl", "event": "created"}
        rows.append({"stream": "protections", "timestamp": stamp + 3.0, **guard})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("signal_throughput", {"signals_total": 60.0, "avg_quality": 0.5, "avg_confidence": 0.7}),
        ("execution_fallback", {"limit_fill_ratio": 1.0, "limit_timeout": 0.0}),
        ("protection_health", {"sl_created": 60.0, "auto_fix_sl": 0.0}),
    ],
)
def test_a_recorded_log_is_played_and_measured(
    tmp_path: Path, kind: str, expected: dict[str, float]
) -> None:
    path = tmp_path / "log.jsonl"
    _write_log(path)
    source = {"kind": "recorded", "path": str(path)}
    config = ScenarioConfig(name="own", type=kind, hours=2.0, source=source)
    episode = play_seed(config, Subject(), 1)
    again = play_seed(config, Subject(), 1)
    assert {name: episode.metrics[name] for name in expected} == pytest.approx(expected)
    assert episode.events >= 60 if kind != "protection_health" else episode.events > 10
    assert episode.trajectory_hash == again.trajectory_hash
    assert config.identity()["data_hash"]
    moved = tmp_path / "elsewhere.jsonl"
    moved.write_bytes(path.read_bytes())
    elsewhere = config.model_copy(update={"source": {"kind": "recorded", "path": str(moved)}})
    assert elsewhere.identity() == config.identity()
    laws = [metric.name for metric in config.metrics() if metric.must_be_zero]
    assert {name: episode.metrics[name] for name in laws} == dict.fromkeys(laws, 0.0)


@pytest.mark.parametrize("kind", DESK_TYPES)
def test_a_log_without_the_stream_gives_no_figures_and_no_crash(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log.jsonl"
    rows = [{"stream": "fills", "timestamp": 1.7e9 + i, "order_id": "o", "quantity": 1.0,
             "price": 1.0} for i in range(3)] if kind != "protection_health" else [
        {"stream": "signals", "timestamp": 1.7e9, "signal_id": "a", "symbol": "BTC/USDT",
         "side": "buy"}]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    source = {"kind": "recorded", "path": str(path)}
    config = ScenarioConfig(name="own", type=kind, hours=1.0, source=source)
    episode = play_seed(config, Subject(), 1)
    recorded = {"signal_throughput": "signals_total", "execution_fallback": "limit_fill_ratio"}
    assert episode.metrics[recorded.get(kind, "sl_created")] is None
