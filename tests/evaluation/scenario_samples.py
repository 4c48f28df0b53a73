from __future__ import annotations

from functools import cache
from typing import Any

from agent_gym.evaluation.scenarios.scenario import Episode, Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, play_seed

SMALL: dict[str, dict[str, Any]] = {
    "signal_throughput": {
        "hours": 0.3,
        "rate_per_hour": 300.0,
        "burst_prob": 0.2,
        "capacity": 1,
        "agent_failure_share": 0.1,
    },
    "execution_fallback": {
        "orders": 40,
        "outages": [{"start_s": 100.0, "duration_s": 60.0}],
    },
    "protection_health": {
        "hours": 12.0,
        "positions": 30,
        "dd_limit": 0.01,
        "var_limit": 0.05,
        "position_share": 0.15,
        "lost_prob": 0.01,
        "gap_prob": 0.01,
    },
}
DESK_TYPES = tuple(SMALL)


def small(scenario: str, **changes: Any) -> ScenarioConfig:
    return ScenarioConfig(name="small", type=scenario, params={**SMALL[scenario], **changes})


@cache
def plain(scenario: str, seed: int) -> Episode:
    return play_seed(small(scenario), Subject(), seed)


def play(scenario: str, seed: int = 1, plant: str | None = None, **changes: Any) -> Episode:
    return play_seed(small(scenario, **changes), Subject(plant=plant), seed)
