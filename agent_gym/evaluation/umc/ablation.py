"""The ablation: every part taken out or put in, on the same paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from agent_gym.core.manifest import Manifest, describe
from agent_gym.core.registry import Config, Ref
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.umc.arm_jobs import ArmsJob
from agent_gym.evaluation.umc.comparison import (
    FEWEST_SEEDS,
    Compared,
    Table,
    compare_arms,
    optional_parts,
    unsure_parts,
)
from agent_gym.evaluation.umc.echo_jobs import E1, GateJob, ReflexiveJob
from agent_gym.evaluation.umc.plan import COURSES
from agent_gym.evaluation.umc.variants import (
    ECHO,
    ECHO_ARMS,
    EXOGENOUS,
    EXPECTED,
    FULL,
    METRICS,
    REFLEXIVE,
    VARIANTS,
    about,
)
from agent_gym.rollouts.jobs import Job

MarketName: TypeAlias = Literal["m1", "m2", "m3", "m4", "n1", "e1", "echo"]
ALL: tuple[MarketName, ...] = ("m1", "m2", "m3", "m4", "n1", "e1", "echo")
HEAVY: tuple[MarketName, ...] = ("m1", "m3", "m4")
SCHEMA_VERSION = 2
ORDER = (*VARIANTS, *ECHO_ARMS)


class AblationPlan(Config):
    """Which markets, how many seeds, and whether the heavy arms are played too."""

    markets: tuple[MarketName, ...] = Field(default=ALL, min_length=1)
    seeds: int = Field(default=20, ge=2, description="paths of each market; at least 10 to judge")
    first_seed: int = Field(default=0, ge=0)
    bars: int | None = Field(default=None, ge=1_000, description="null: two years of hours")
    heavy_seeds: int = Field(
        default=0, ge=0, description="paths for arms that take torch; they take minutes each"
    )
    heavy_markets: tuple[MarketName, ...] = Field(
        default=HEAVY, description="markets of these arms, as far as they are among the markets"
    )
    arms: tuple[str, ...] | None = Field(default=None, description="null: all; full is always in")
    reflexive_bars: int = Field(default=E1.bars, ge=50, description="decisions in E1")

    @field_validator("arms")
    @classmethod
    def _known(cls, arms: tuple[str, ...] | None) -> tuple[str, ...] | None:
        wrong = [name for name in arms or () if name not in VARIANTS]
        if wrong:
            raise ValueError(f"no such arms: {', '.join(wrong)}; known: {', '.join(VARIANTS)}")
        return arms

    def light(self) -> tuple[str, ...]:
        """Return the arms that every seed plays."""
        return self._arms(heavy=False)

    def heavy(self) -> tuple[str, ...]:
        """Return the arms that the first seeds play."""
        return self._arms(heavy=True) if self.heavy_seeds else ()

    def _arms(self, *, heavy: bool) -> tuple[str, ...]:
        asked = self.arms or tuple(VARIANTS)
        return tuple(
            name
            for name, variant in VARIANTS.items()
            if variant.heavy == heavy and (name in asked or name == FULL)
        )


@dataclass(frozen=True, slots=True, eq=False)
class AblationReport:
    """Every difference, what was expected of it, and the figures of every seed."""

    plan: AblationPlan
    table: Table
    compared: Sequence[Compared]
    manifest: Manifest

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; they do not depend on the number of processes."""
        arms = {arm for own in self.table.values() for arm in own}
        return {
            "schema_version": SCHEMA_VERSION,
            "metrics": dict(METRICS),
            "arms": {
                name: {
                    "part": about(name).part,
                    "about": about(name).about,
                    "added_after_the_first_run": about(name).later,
                }
                for name in sorted(arms)
            },
            "expected": [one.as_dict() for one in EXPECTED],
            "comparisons": [one.as_dict() for one in self.compared],
            "optional": optional_parts(self.compared),
            "too_few_seeds_for_optional": unsure_parts(self.compared),
            "fewest_seeds_for_optional": FEWEST_SEEDS,
            "seeds": list(_numbers(self.plan)),
            "plan": self.plan.model_dump(mode="json"),
            "per_seed": {
                market: {arm: {name: list(v) for name, v in f.items()} for arm, f in own.items()}
                for market, own in self.table.items()
            },
            "manifest": self.manifest.model_dump(mode="json"),
        }


def run_ablation(plan: AblationPlan, setting: Setting) -> AblationReport:
    """Play all arms on all paths, and compare.

    Args:
        plan: What is asked for.
        setting: Who does the work; nothing is entered into its registry.
    """
    jobs = _jobs(plan)
    rows = setting.work(
        [job for _, _, job in jobs], [f"{market}, seed {seed}" for market, seed, _ in jobs]
    )
    table = _table([market for market, _, _ in jobs], rows)
    manifest = describe(
        argv=list(setting.command),
        config=plan.model_dump(mode="json"),
        data={"markets": _described(plan)},
        seeds=tuple(_numbers(plan)),
        commit=setting.commit,
    )
    return AblationReport(plan, table, compare_arms(table, plan.first_seed), manifest)


def _table(markets: Sequence[str], rows: Sequence[dict[str, Any]]) -> Table:
    """Return the figures by market, arm and metric, in the order in which these were written down.

    Rows of another process come in an order of their own.
    """
    table: dict[str, dict[str, dict[str, list[float]]]] = {}
    for market, row in zip(markets, rows, strict=True):
        for arm in sorted(row["arms"], key=ORDER.index):
            own = table.setdefault(market, {}).setdefault(arm, {})
            for metric in METRICS:
                if metric in row["arms"][arm]:
                    own.setdefault(metric, []).append(row["arms"][arm][metric])
    return table


def _numbers(plan: AblationPlan) -> range:
    return range(plan.first_seed, plan.first_seed + plan.seeds)


def _jobs(plan: AblationPlan) -> list[tuple[str, int, Job]]:
    """Return the work; a seed's heavy arms are played with its light ones, on the same path."""
    return [
        (market, seed, _job(plan, market, seed, heavy=place < heavy_seeds))
        for market in plan.markets
        for heavy_seeds in [plan.heavy_seeds if market in plan.heavy_markets else 0]
        for place, seed in enumerate(_numbers(plan))
    ]


def _job(plan: AblationPlan, market: MarketName, seed: int, *, heavy: bool) -> Job:
    if market == REFLEXIVE:
        return ReflexiveJob(seed=seed, bars=plan.reflexive_bars)
    length: Mapping[str, int] = {} if plan.bars is None else {"n_bars": plan.bars}
    if market == ECHO:
        return GateJob(seed=seed) if plan.bars is None else GateJob(seed=seed, bars=plan.bars)
    course = COURSES[market]
    return ArmsJob(
        market=Ref(use=course.use, params={**course.params, **length}),
        seed=seed,
        arms=(*plan.light(), *(plan.heavy() if heavy else ())),
        cost_bp=course.cost_bp,
        inputs=course.inputs,
    )


def _described(plan: AblationPlan) -> dict[str, Any]:
    known = {
        name: {"use": COURSES[name].use, "cost_bp": COURSES[name].cost_bp}
        for name in plan.markets
        if name in EXOGENOUS
    }
    others: dict[str, Any] = {REFLEXIVE: E1.model_dump(mode="json"), ECHO: {"use": "known/m1"}}
    return known | {name: own for name, own in others.items() if name in plan.markets}
