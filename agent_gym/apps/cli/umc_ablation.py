"""``agent-gym umc ablation``: what is each part of the agent worth?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from pydantic import Field
from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.evaluate import progress
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.output import emit, table
from agent_gym.apps.cli.umc_gates import StudyOutputs, check_study, setting_of
from agent_gym.core.registry import Config, configure
from agent_gym.evaluation.umc import AblationPlan, run_ablation
from agent_gym.evaluation.umc.ablation import ALL, HEAVY
from agent_gym.reporting.umc_gates import ABLATION, LATER, optional_words, write_ablation

HEADS = ("market", "arm", "figure", "gap", "95 % interval", "p (Holm)", "verdict")
BREAKS = {"95 % interval": 8, "p (Holm)": 7, "verdict": 13}
"""Columns with several words, and the room that the longest of them takes."""
NET = "net_bp"
SHORT = {
    NET: "net",
    "growth_bp": "growth",
    "max_drawdown": "drawdown",
    "log_score": "score",
    "changed_share": "changed",
}


class AblationJob(Config):
    """Which arms, where, and how often."""

    markets: str = Field(default=",".join(ALL), description="markets, by comma")
    arms: str | None = Field(
        default=None,
        description="arms on recorded bars, by comma (default all); e1 and echo play their own",
    )
    seeds: int = Field(default=20, ge=2, description="paths of each market")
    heavy_seeds: int = Field(
        default=0, ge=0, description="paths for arms that take torch and minutes each"
    )
    heavy_markets: str = Field(default=",".join(HEAVY), description="their markets, by comma")
    seed: int = Field(default=0, ge=0, description="first seed")
    bars: int | None = Field(
        default=None, ge=1_000, description="bars of a path (default two years of hours)"
    )

    def plan(self) -> AblationPlan:
        """Return the plan that this asks for."""
        said: dict[str, Any] = {"markets": tuple(self.markets.split(",")), "seeds": self.seeds}
        said |= {"heavy_seeds": self.heavy_seeds, "first_seed": self.seed, "bars": self.bars}
        said["heavy_markets"] = tuple(self.heavy_markets.split(","))
        said["arms"] = None if self.arms is None else tuple(self.arms.split(","))
        return configure(AblationPlan, said, where="umc ablation")


@on_executor
@with_options("outputs", StudyOutputs, "What is written")
@with_options("job", AblationJob, "What is asked")
@writes("figures and page of the ablation")
def ablation(
    job: AblationJob,
    outputs: StudyOutputs,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take parts out or put them in, on the same paths, and say what that changes.

    What was expected is written down in the code; what was added after the first run is marked.
    With 10 seeds or more, parts that change nothing are called optional.
    """
    plan = job.plan()
    check_study(outputs, ABLATION)
    with progress("ablation") as done:
        setting = setting_of(("umc", "ablation", *words_of(job)), outputs.jobs, done)
        report = run_ablation(plan, setting)
    document = report.as_dict()
    if outputs.out is not None:
        write_ablation(outputs.out, document)
    emit(document, as_json=as_json, view=_view(document))


def _view(document: dict[str, Any]) -> RenderableType:
    """Return a table that fits 80 columns without breaking a name."""
    made = table("Ablation: each arm less the one it is compared with", HEADS, _rows(document))
    made.box, made.show_edge, made.padding = box.SIMPLE_HEAD, False, (0, 0)
    for column in made.columns:
        column.min_width = BREAKS.get(str(column.header))
        column.no_wrap = column.min_width is None
    return Group(made, Text(f"* {LATER}"), Text(optional_words(document)))


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            one["market"],
            one["arm"],
            SHORT[one["metric"]],
            f"{one['estimate']:.3g}",
            f"{one['low']:.3g} to {one['high']:.3g}",
            f"{one['p_holm']:.2g}",
            _verdict(one),
        )
        for one in document["comparisons"]
        if one["metric"] == NET or one["expected"] is not None
    ]


def _verdict(one: dict[str, Any]) -> str:
    wished = one["expected"]
    if wished is None:
        return ""
    later = "*" if wished["added_after_the_first_run"] else ""
    return f"{one['verdict']} ({wished['sign']}){later}"
