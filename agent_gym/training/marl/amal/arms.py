"""Arms of an ablation: what is set otherwise in a training of AMAL, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.core.registry import configure, unknown
from agent_gym.training.marl.config import TeamTrainConfig

ARMS: Mapping[str, Mapping[str, Any]] = {
    "amal": {},
    "mappo": {
        "amal": None,
        "n_envs": 16,
        "learn": {"reuse": None, "learning_rate": 1e-3, "last_rate": 0.1},
    },
    "mappo-short": {"amal": None, "learn": {"reuse": None}},
    "mappo-reuse": {"amal": None},
    "lambda-0": {"amal": {"lambda_info": 0.0}},
    "no-auxiliaries": {"amal": {"auxiliary_share": 0.0, "late_share": 0.0}},
    "random-auxiliaries": {"amal": {"cem_selection": False}},
    "auxiliaries-not-learned": {"amal": {"auxiliary_weight": 0.0}},
    "no-imitation": {"learn": {"reuse": {"imitation": 0.0}}},
    "no-correction": {"learn": {"reuse": {"corrected": False}}},
    "symmetric-model": {"amal": {"model": {"symmetric": True}}},
    "one-head-error": {"amal": {"information": "error"}},
    "distillation": {
        "amal": {"information": "distillation", "auxiliary_share": 0.0, "late_share": 0.0}
    },
    "full-parameter-cem": {"amal": {"cem_space": "all"}},
}
"""``symmetric-model`` is unsafe by intent: the count of leaks gives it away."""


def arm_config(name: str, base: TeamTrainConfig) -> TeamTrainConfig:
    """Return a training of AMAL as an arm changes it.

    Example:
        >>> from agent_gym.training.marl.config import shipped_config
        >>> arm_config("mappo-reuse", shipped_config("amal")).algorithm
        'mappo-reuse'
    """
    if name not in ARMS:
        raise unknown("arm of an ablation", name, tuple(ARMS))
    changed = _merged(base.model_dump(mode="json"), ARMS[name])
    return configure(TeamTrainConfig, changed, where=f"arm {name}")


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with some entries set otherwise, however deep they lie."""
    made = dict(base)
    for key, value in changes.items():
        below = made.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            made[key] = _merged(below, value)
        else:
            made[key] = value
    return made
