"""What can be said to ``agent-gym umc``, as models from which its options are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.umc.lam import LambdaConfig
from agent_gym.apps.cli.config_options import parse_pairs
from agent_gym.apps.cli.evaluate_options import TRIALS, MarketJob
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure, entry, names, unknown
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import compute_features

LAMBDA = LambdaConfig()
TIER = "umc/"
KNOWN = "_known"
OF_OPTIONS = {
    "lam": "--lambda-base",
    "model": "--tiers",
    "inputs": "--inputs",
    "macro": "--macro",
    "actor": "--actor",
    "cost_bp": "the costs of the account",
    "folder": "no option: every fold learns from its own past",
}


class SourceJob(MarketJob):
    """Where the bars come from, and the seed of all that is drawn."""

    seed: int = Field(default=0, ge=0, description="seed of the market, the model and the crowd")


class WalkJob(SourceJob):
    """What is walked over, and in which steps."""

    train: str = Field(default="180d", description="first training segment; it grows")
    validation: str | None = Field(
        default="30d", description="segment by which the model is chosen, or none"
    )
    test: str = Field(default="30d", description="test segment of a fold, and the step to the next")
    purge: int = Field(default=6, ge=0, description="bars that a label reaches forward")
    embargo: int = Field(default=168, ge=0, description="bars that features remember")
    lockbox: str | None = Field(
        default=None, description="last stretch that is held out, such as 60d"
    )
    release: str | None = Field(
        default=None, description="open the lockbox for this release, which is recorded"
    )
    draws: int = Field(
        default=500, ge=1, le=100_000, description="random positions with the same turnover"
    )


class MindOptions(Config):
    """How UMC models the market."""

    lambda_base: float = Field(
        default=LAMBDA.lambda_base,
        description=f"where the weight of information rests, {LAMBDA.lambda_min:g} to "
        f"{LAMBDA.lambda_max:g}; on recorded bars it changes no trade",
    )
    tiers: str = Field(
        default="exact,kalman",
        description="models to choose from, light to heavy; recurrent needs torch and minutes",
    )
    inputs: str | None = Field(
        default=None, description="columns that may lead the price, such as momentum_24,volume_z"
    )
    macro: bool = Field(default=False, description="follow macrostates, and let the model see them")
    actor: bool = Field(
        default=False, description="train a policy that decides where it grew more than the planner"
    )
    param: tuple[str, ...] = Field(
        default=(), description="any other parameter of the agent, repeatable"
    )
    echo_size: int = Field(
        default=100, ge=0, le=100_000, description="echoes beside it, which move nothing; 0: none"
    )

    def echoes(self, seed: int) -> EchoConfig:
        """Return the crowd."""
        return configure(EchoConfig, {"size": self.echo_size, "seed": seed}, where="--echo-size")

    def params(self) -> dict[str, Any]:
        """Return the agent's parameters; whatever does not fit is a ConfigError."""
        found: dict[str, Any] = {
            "lam": {"lambda_base": self._lambda()},
            "model": {"tiers": [{"use": name} for name in self._tiers()]},
        }
        if self.inputs is not None:
            found["inputs"] = [name.strip() for name in self.inputs.split(",") if name.strip()]
        if self.macro:
            found["macro"] = {}
        if self.actor:
            found["actor"] = {}
        found |= self._others()
        configure(entry("agent", "umc").config, found, where="agent umc")
        return found

    def _lambda(self) -> float:
        if not LAMBDA.lambda_min <= self.lambda_base <= LAMBDA.lambda_max:
            raise ConfigError(
                "lambda rests within its bounds",
                where="--lambda-base",
                found=f"{self.lambda_base:g}",
                expected=f"{LAMBDA.lambda_min:g} to {LAMBDA.lambda_max:g}",
                remedy="Choose one between them; on recorded bars no lambda changes a trade",
            )
        return self.lambda_base

    def _tiers(self) -> list[str]:
        known = tuple(name.removeprefix(TIER) for name in names("tier") if name.startswith(TIER))
        asked = [name.strip().removeprefix(TIER) for name in self.tiers.split(",") if name.strip()]
        for name in asked:
            if name not in known:
                raise unknown("tier", name, known)
        if not asked or len(set(asked)) < len(asked):
            raise ConfigError(
                "every tier is named once, and one at least",
                where="--tiers",
                found=repr(self.tiers),
                remedy=f"Known: {', '.join(known)}",
            )
        return [TIER + name for name in asked]

    def _others(self) -> Mapping[str, Any]:
        said = parse_pairs(self.param, "--param")
        for name in said:
            if name in OF_OPTIONS:
                raise ConfigError(
                    "this parameter has a place of its own",
                    where="--param",
                    found=name,
                    remedy=f"It is set by {OF_OPTIONS[name]}",
                )
        return said


class Outputs(Config):
    """What is written, and where."""

    out: Path | None = Field(
        default=None, description="folder of the run (default results/umc/NAME)"
    )
    plot: bool = Field(default=False, description="also write report.html there")
    report: tuple[Path, ...] = Field(default=(), description="HTML report, repeatable")
    registry: Path | None = Field(
        default=None, description=f"file of all trials (default results/{TRIALS})"
    )
    jobs: int = Field(default=1, ge=1, le=256, description="processes; changes no number")


def check_inputs(inputs: tuple[str, ...], bars: Bars) -> None:
    """Raise ConfigError for a column that the market does not show."""
    if not inputs:
        return
    shown = compute_features(bars).observations()[0]
    known = tuple(name for name in shown if name + KNOWN in shown)
    for name in inputs:
        if name not in known:
            error = unknown("input", name, known)
            error.where = "--inputs"
            raise error
