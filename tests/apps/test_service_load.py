"""The load on a service: what it counts, and a few seconds of it on a real one."""

from __future__ import annotations

from collections import Counter

from scripts.load_service import EMPTY, Counts, Route, figures, load, page, prepare, routes
from scripts.seed_dashboard import seed
from scripts.served import served

MIX = [Route(EMPTY, "GET", "/x", status=404), Route("slow", "GET", "/y")]


def counts_of(slow_statuses: Counter[str], memory: list[float]) -> Counts:
    found = Counts(memory_mb=memory)
    found.seconds |= {EMPTY: [0.001] * 200, "slow": [0.01] * slow_statuses.total()}
    found.statuses |= {EMPTY: Counter({"404": 200}), "slow": slow_statuses}
    return found


def test_late_answers_are_told_as_a_ratio_to_an_empty_route() -> None:
    told = figures(MIX, counts_of(Counter({"200": 100}), [100.0, 101.0, 102.0]), 2.0)
    assert told["violations"] == []
    assert told["requests_per_s"] == 150
    assert abs(told["routes"]["slow"]["p99_ratio"] - 10.0) < 1e-9
    few = figures(MIX, counts_of(Counter({"200": 99}), [100.0]), 2.0)
    assert few["routes"]["slow"]["p99_ratio"] is None


def test_what_is_not_as_it_must_be_is_named() -> None:
    told = figures(MIX, counts_of(Counter({"200": 98, "500": 2}), [100.0, 150.0, 200.0]), 2.0)
    assert told["violations"] == [
        "slow: 2 times 500 instead of 200",
        "memory grew from 100 to 200 MB",
    ]
    more = {"clients": 1, "seconds": 2.0, "cpus": 2, "command": "make load-results"}
    assert "**Not as it must be:** slow: 2 times 500" in page(told | more)


def test_a_service_answers_all_of_the_mix_as_it_must(tmp_path) -> None:
    names = seed(tmp_path / "loop", runs=30, steps=6_000, trajectories=30)
    with served(tmp_path / "loop") as service:
        prepare(service)
        mix = routes(names["long_trajectory"])
        counts = load(service, mix, 6.0, 4)
    told = figures(mix, counts, 6.0)
    wrong = [each for each in told["violations"] if not each.startswith("memory")]  # it warms up
    assert wrong == []
    assert told["routes"][EMPTY]["requests"] > 0
