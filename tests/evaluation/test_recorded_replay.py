"""A recorded log in a suite: its window, its names and prices, and what a reader is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios.scenario import Episode, Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, play_seed

T0 = 1_700_000_000.0


def rows(n: int = 60, every_s: float = 180.0, **more: Any) -> list[dict[str, Any]]:
    made = []
    for i in range(n):
        side = "buy" if i % 2 else "sell"
        own = {"signal_id": f"r{i}", "symbol": "BTCUSDT", "strategy": "mom", "side": side}
        size = {"amount": 0.01, "price": 30_000.0, "confidence": 0.7}
        made.append({"stream": "signals", "timestamp": T0 + every_s * i, **own, **size, **more})
    return made


def play(
    folder: Path,
    log: list[dict[str, Any]],
    kind: str = "signal_throughput",
    desk: dict[str, Any] | None = None,
    **more: Any,
) -> Episode:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in log), encoding="utf-8")
    source = {"kind": "recorded", "path": str(path)} | more.pop("source", {})
    config = ScenarioConfig(name="own", type=kind, source=source, **more)
    return play_seed(config, Subject(desk=Ref(use="core-agent", params=desk or {})), 1)


@pytest.mark.parametrize("scenario", [{"source": {"hours": 2.0}}, {"hours": 2.0}])
def test_rates_are_of_the_hours_of_the_window(tmp_path: Path, scenario: dict[str, Any]) -> None:
    figures = play(tmp_path, rows(), **scenario).metrics
    assert figures["signals_total"] == 41.0  # both ends of two hours, one in three minutes
    assert figures["signals_processed_per_hour"] == pytest.approx(41.0 / 2.0)


def test_without_a_window_all_of_the_log_is_played(tmp_path: Path) -> None:
    figures = play(tmp_path, rows(n=60, every_s=3_600.0)).metrics
    assert figures["signals_total"] == 60.0
    assert figures["signals_processed_per_hour"] == pytest.approx(60.0 / 59.0)


def test_the_source_comes_before_the_scenario(tmp_path: Path) -> None:
    log = rows(n=60, every_s=3_600.0)
    figures = play(tmp_path, log, hours=3.0, source={"hours": 48.0}).metrics
    assert figures["signals_processed_per_hour"] == pytest.approx(49.0 / 48.0)


def test_a_single_moment_has_a_rate(tmp_path: Path) -> None:
    assert play(tmp_path, rows(n=1)).metrics["signals_processed_per_hour"] == pytest.approx(60.0)


def test_a_window_that_is_too_long_to_play_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        play(tmp_path, rows(n=3, every_s=1e7))
    assert "hours" in str(error.value.remedy)


def test_a_log_with_its_own_names_and_prices_is_traded(tmp_path: Path) -> None:
    own = {"filter": {"strategies": ["other"], "symbols": ["ETH/USDT"]}}
    episode = play(tmp_path, rows(), desk=own)
    assert episode.metrics["completion_rate"] is not None
    assert episode.metrics["latency_p50_ms"] is not None
    assert not any("refused" in note for note in episode.notes)


def test_a_name_that_the_log_calls_unknown_stays_unknown(tmp_path: Path) -> None:
    code = "schema.unknown_strategy"
    bad = rows(n=20, strategy="rogue", accepted=False, code=code)
    good = [
        row | {"signal_id": f"g{i}", "timestamp": row["timestamp"] + 60.0, "accepted": True}
        for i, row in enumerate(rows(n=20))
    ]
    figures = play(tmp_path, [*bad, *good]).metrics
    assert figures["reason_accuracy"] == 1.0
    assert figures["false_accept_rate"] == 0.0


def test_a_log_that_is_mostly_refused_says_why(tmp_path: Path) -> None:
    episode = play(tmp_path, rows(amount=1e-6))
    (note,) = [note for note in episode.notes if "refused" in note]
    assert "60 of 60" in note
    assert "risk.min_notional 60" in note
    assert episode.notes[0] == note  # before the rows that could not be read


def test_every_fill_of_a_window_opens_or_changes_a_position(tmp_path: Path) -> None:
    fills = [
        {"stream": "fills", "timestamp": T0 + 3_600.0 * i, "order_id": f"o{i}", "quantity": 0.5,
         "price": 100.0}
        for i in range(100)
    ]  # fmt: skip
    short = play(tmp_path, fills, "protection_health", source={"hours": 20.0})
    long = play(tmp_path, fills, "protection_health", source={"hours": 95.0})
    assert long.events > 2 * short.events


def test_how_a_log_is_played_is_part_of_what_is_compared(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(rows(n=1)[0]), encoding="utf-8")
    source = {"kind": "recorded", "path": str(tmp_path / "log.jsonl")}
    made, own = (
        ScenarioConfig(name="own", type="signal_throughput", source=each) for each in (None, source)
    )
    assert made.identity()["version"] == "1"  # a generated one is what it was
    assert "replay" in own.identity()["version"]
