"""What can be set: how macrostates are fitted and named, and when a cycle counts as one."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from agent_gym.core.registry import Config

MOST_STATES = 7
INPUTS = ("momentum_24", "momentum_168", "volatility_ratio", "volume_z")


class CycleConfig(Config):
    """When a state counts as visited, and what a cycle is held against."""

    confirm_probability: float = Field(
        default=0.6, ge=0.5, lt=1, description="belief that a state must exceed to be confirmed"
    )
    confirm_bars: int = Field(default=3, ge=1, description="bars in a row for which it must")
    least_count: int = Field(
        default=3, ge=1, description="closed walks that make a cycle worth testing"
    )
    surrogates: int = Field(default=200, ge=19, description="resampled series to compare with")
    block_bars: float | None = Field(
        default=None,
        ge=1,
        description="mean block of a surrogate; null: the mean length of a confirmed visit",
    )
    significance: float = Field(
        default=0.05, gt=0, lt=1, description="chance of calling any cycle of noise significant"
    )
    refit_block_bars: float = Field(
        default=336.0, ge=1, description="mean block of the two refits that stability compares"
    )


class MacroConfig(Config):
    """How macrostates are found."""

    inputs: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        default=INPUTS, description="names of the columns, in the order in which they are given"
    )
    drift_input: str = Field(
        default="momentum_24", description="the input that tells the direction of a state"
    )
    volatility_input: str | None = Field(
        default="volatility_ratio",
        description="the input that tells how a state shakes; null: labels do without it",
    )
    volume_input: str | None = Field(
        default="volume_z",
        description="the input that tells how much is traded; null: labels do without it",
    )
    min_states: int = Field(default=2, ge=2, le=MOST_STATES, description="fewest states to try")
    max_states: int = Field(
        default=MOST_STATES, ge=2, le=MOST_STATES, description="most states to try"
    )
    stickiness: float = Field(
        default=50.0, ge=0, description="stays counted for each state before any was seen"
    )
    validation_share: float = Field(
        default=0.2,
        ge=0.05,
        le=0.5,
        description="part of the past held out at a time to choose their number",
    )
    error_margin: float = Field(
        default=1.0,
        ge=0,
        description="fewer states are kept if they score worse by no more standard errors",
    )
    restarts: int = Field(default=3, ge=1, description="starts of the fit for each number")
    max_iterations: int = Field(default=60, ge=1, description="steps of a fit at most")
    tolerance: float = Field(
        default=1e-5, ge=0, description="gain in nats a bar below which a fit ends"
    )
    variance_floor: float = Field(
        default=0.01, gt=0, le=1, description="smallest variance, in variances of the input"
    )
    largest_score: float = Field(
        default=8.0, gt=0, description="deviations from its mean at which an input is clipped"
    )
    label_limit: float = Field(
        default=0.5, gt=0, description="distance from a template that leaves a state unlabeled"
    )
    cycles: CycleConfig = Field(default=CycleConfig(), description="how cycles are tested")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.inputs)) != len(self.inputs):
            raise ValueError(f"every input is named once, found {self.inputs}")
        if self.min_states > self.max_states:
            raise ValueError(f"min_states {self.min_states} is above max_states {self.max_states}")
        for role in (self.drift_input, self.volatility_input, self.volume_input):
            if role is not None and role not in self.inputs:
                raise ValueError(f"{role!r} gives states their labels but is not one of the inputs")
        return self

    def column(self, name: str | None) -> int | None:
        """Return the column of an input, None for no input."""
        return None if name is None else self.inputs.index(name)
