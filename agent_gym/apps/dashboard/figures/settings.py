"""Settings of the service, its health, who may come in, and what the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_gym import __version__
from agent_gym.apps.api.service import Service
from agent_gym.apps.api.tokens import FILE, Token, TokenFile
from agent_gym.apps.cli.doctor import Finding, examine


@dataclass(frozen=True, slots=True)
class SettingsFigures:
    """What the page shows; ``tokens`` and ``findings`` are None where they were not asked for."""

    version: str
    folder: str
    health: dict[str, Any]
    settings: dict[str, Any]
    tokens: tuple[Token, ...] | None
    findings: tuple[Finding, ...] | None


def settings_figures(service: Service, *, tokens: bool, doctor: bool) -> SettingsFigures:
    """Return the settings; the doctor is asked only if somebody wants to know."""
    path = service.folder.path
    said = service.settings.model_dump(mode="json", exclude={"folder", "database"})
    return SettingsFigures(
        version=__version__,
        folder=str(path),
        health=service.health(),
        settings=said,
        tokens=TokenFile(path / FILE).all() if tokens else None,
        findings=tuple(examine(path)) if doctor else None,
    )
