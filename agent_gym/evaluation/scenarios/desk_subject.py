"""The desk under test: its plan, with what the scenario prescribes and with a planted fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.agents.desk.core_agent import DeskPlan
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.evaluation.scenarios.plants import sabotage_named
from agent_gym.evaluation.scenarios.sabotage import Sabotage
from agent_gym.evaluation.scenarios.scenario import Subject


def sabotage_of(subject: Subject) -> Sabotage:
    """Return the fault that is planted; faults of other rooms leave a desk scenario alone."""
    return sabotage_named(subject.plant)


def open_desk(subject: Subject, prescribed: Mapping[str, Mapping[str, Any]]) -> DeskPlan:
    """Return the plan of the desk under test.

    What the scenario prescribes (its stops, its retries, its strategies) takes the place of what
    the desk has under the same names; everything else is the desk's own.
    """
    params = dict(subject.desk.params)
    for part, values in prescribed.items():
        params[part] = {**params.get(part, {}), **values}
    plan = make("desk", Ref(use=subject.desk.use, params=params))
    if not isinstance(plan, DeskPlan):
        raise ConfigError(
            "what is registered is no desk",
            where=f"desk {subject.desk.use}",
            found=type(plan).__name__,
            expected="a DeskPlan",
        )
    return sabotage_of(subject).plan(plan)
