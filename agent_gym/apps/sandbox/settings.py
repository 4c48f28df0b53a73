"""What a sandbox is told when it starts."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from agent_gym.evaluation.config import TradingTerms

STEP, POLL = "step", "poll"


class SandboxSettings(TradingTerms):
    """Money, costs and clock of a sandbox."""

    speed: str = Field(
        default="60",
        description=f"simulated seconds a second; 1: real time, {STEP}: moves when it is told to, "
        f"{POLL}: when a client asks again what it has been told in this bar",
    )
    history: int = Field(default=100, ge=1, description="bars that are past when it begins")
    rebase: bool = Field(
        default=False, description="move the bars in time so that the session begins now"
    )
    together: bool = Field(
        default=False, description="a step waits until every account has asked for it"
    )
    weight: int = Field(
        default=6_000, ge=1, description="request weight of a client in a simulated minute"
    )

    @field_validator("speed", mode="before")
    @classmethod
    def _known_speed(cls, value: Any) -> str:
        said = str(value)
        if said not in (STEP, POLL) and not _is_speed(said):
            raise ValueError(f"a number from 0.001 to 1,000,000, {STEP} or {POLL}")
        return said

    def pace(self) -> float | None:
        """Return simulated seconds a second, None for a clock that is stepped."""
        return None if self.speed in (STEP, POLL) else float(self.speed)


def _is_speed(text: str) -> bool:
    try:
        return 1e-3 <= float(text) <= 1e6
    except ValueError:
        return False
