"""``agent-gym umc ablation``: what is each part of the agent worth?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.evaluate import progress
from agent_gym.apps.cli.output import emit, table
from agent_gym.apps.cli.umc_gates import setting_of, words_for
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.registry import configure
from agent_gym.evaluation.umc import AblationPlan, run_ablation
from agent_gym.reporting.umc_gates import ABLATION, places, write_ablation

HEADS = ("market", "arm", "figure", "difference", "low", "high", "p (Holm)", "expected", "verdict")
NET = "net_bp"


def ablation(
    markets: Annotated[str, typer.Option(help="Markets, by comma.")] = "m1,m3,m4,n1,e1,echo",
    arms: Annotated[str | None, typer.Option(help="Arms, by comma; default: all.")] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Paths of each market.")] = 20,
    heavy_seeds: Annotated[
        int, typer.Option(min=0, help="Paths for arms that take torch, minutes each.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    bars: Annotated[
        int | None, typer.Option(min=1_000, help="Bars of a path; default: two years of hours.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for JSON, page and picture.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes; changes no number.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take parts out or put them in, on the same paths, and say what that changes.

    What was expected is written down in the code; parts that change nothing are called optional.
    """
    said: dict[str, Any] = {"markets": tuple(markets.split(",")), "seeds": seeds}
    said |= {"heavy_seeds": heavy_seeds, "first_seed": seed, "bars": bars}
    said["arms"] = None if arms is None else tuple(arms.split(","))
    plan = configure(AblationPlan, said, where="umc ablation")
    for path in () if out is None else places(out, ABLATION):
        check_target(path)
    words = words_for(AblationPlan(), plan, {"markets": markets, "arms": arms})
    with progress("ablation") as done:
        report = run_ablation(plan, setting_of(("umc", "ablation", *words), jobs, done))
    document = report.as_dict()
    if out is not None:
        write_ablation(out, document)
    emit(document, as_json=as_json, view=table(_title(document), HEADS, _rows(document)))


def _title(document: dict[str, Any]) -> str:
    return f"Ablation; optional: {', '.join(document['optional']) or 'nothing'}"


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            one["market"],
            one["arm"],
            one["metric"],
            *(float(one[name]) for name in ("estimate", "low", "high", "p_holm")),
            one["expected"] or "",
            one["verdict"],
        )
        for one in document["comparisons"]
        if one["metric"] == NET or one["expected"] is not None
    ]
