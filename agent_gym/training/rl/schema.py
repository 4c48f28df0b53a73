"""The JSON Schema of a training file, for editors: every key, its meaning, its limits."""

from __future__ import annotations

from typing import Any

from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.training.rl.config import TrainerConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def training_schema() -> dict[str, Any]:
    """Return the schema of a training; ``agent`` takes the settings of the algorithm it names.

    Example:
        >>> sorted(training_schema()["properties"]["algo"]["enum"])[:2]
        ['a2c', 'dqn']
    """
    schema = TrainerConfig.model_json_schema()
    places = schema["properties"]
    places["algo"] = {**places["algo"], "enum": list(CONFIGS)}
    places["agent"] = {"type": "object", "description": "settings of the algorithm"}
    kinds = {name: kind.model_json_schema() for name, kind in CONFIGS.items()}
    schema["$defs"].pop("AgentConfig", None)
    schema["$defs"] |= {_name(algo): kind for algo, kind in kinds.items()}
    default = TrainerConfig.model_fields["algo"].default
    schema["allOf"] = [_branch(algo, implied=algo == default) for algo in CONFIGS]
    return {"$schema": DIALECT, **schema}


def _branch(algo: str, *, implied: bool) -> dict[str, Any]:
    """Return what holds if an algorithm is named; the default one is also meant by silence."""
    named: dict[str, Any] = {"properties": {"algo": {"const": algo}}}
    condition = named if implied else {**named, "required": ["algo"]}
    return {"if": condition, "then": {"properties": {"agent": {"$ref": f"#/$defs/{_name(algo)}"}}}}


def _name(algo: str) -> str:
    return f"{algo}_settings"
