"""``agent-gym audit amal``: what is silently broken in how a team is trained and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.audit import AuditReport
from agent_gym.training.marl.audit import TeamSubject, audit_team, check_named
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.runs import changed, named_config


def audit_algorithm(
    name: str, file: Path | None, pairs: Mapping[str, Any], checks: Sequence[str] | None, job: Any
) -> tuple[AuditReport, Ref]:
    """Audit the training that the name of a shipped one means, with some settings changed.

    Args:
        name: The shipped training.
        file: Other settings of the same algorithm; None: those that are shipped.
        pairs: Settings by dotted key, as ``--set`` gives them.
        checks: What is looked at; None: all.
        job: The options of ``agent-gym audit``, of which only the seed means something here.
    """
    strange = sorted(job.model_fields_set - {"seed"})
    if strange:
        raise ConfigError(
            "a team is trained in battles, not on a market",
            where=f"agent-gym audit {name}",
            found=", ".join(f"--{each}" for each in strange),
            remedy="Leave it out",
        )
    names = list(dict.fromkeys(check_named(each).name for each in checks or ()))
    config = audited_config(name, file, {**pairs, "seed": job.seed})
    return audit_team(TeamSubject(name, config), names), Ref(use=name, params=dict(pairs))


def audited_config(name: str, file: Path | None, changes: Mapping[str, Any]) -> TeamTrainConfig:
    """Return the settings that are audited; they must be of the algorithm that the name means."""
    _, shipped = named_config(name)
    config = shipped if file is None else named_config(str(file))[1]
    config = changed(config, changes, where=f"--set of {name}")
    if config.algorithm != shipped.algorithm:
        raise ConfigError(
            "the settings are those of another algorithm",
            where=f"agent-gym audit {name}",
            found=config.algorithm,
            expected=shipped.algorithm,
        )
    return config
