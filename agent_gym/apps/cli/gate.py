"""``agent-gym gate``: the error rates of the regression gate, measured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.nightly_options import live
from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.core.clock import SystemClock
from agent_gym.core.files import home, write_json, write_text
from agent_gym.core.registry import configure
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.gate.power import power_study
from agent_gym.evaluation.gate.power_picture import power_svg
from agent_gym.evaluation.scenarios.suite import default_suite
from agent_gym.pipeline.nightly.same_code import same_code_study
from agent_gym.pipeline.nightly.self_test import fault_study, known_plants
from agent_gym.pipeline.nightly.self_test_jobs import (
    POLICY,
    Say,
    SelfTest,
    approved_baseline,
    self_test_workspace,
)
from agent_gym.pipeline.nightly.times import run_date

EXIT_MISSED = 1
_DATE = typer.Option(help="Date that chooses the fresh seeds; default: today (UTC).")
_MOST = typer.Option(min=2, help="Most fresh seeds of a confirmation; default: as few as may be.")
app = typer.Typer(no_args_is_help=True)


@app.callback()
def gate() -> None:
    """The regression gate and what it promises."""


@app.command()
@writes("the figures, where --out says")
def power(
    suites: Annotated[int, typer.Option(min=1, help="Simulated suites for each question.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Root of all randomness.")] = 20_261_116,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    picture: Annotated[Path | None, typer.Option(help="SVG file to draw.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure false alarms and power of the gate on suites whose truth is known.

    Exit code 1 says that the target was missed; with few suites the bounds are too wide to meet it.
    """
    document = power_study(suites, seed, say=None if as_json else notes.print)
    if out is not None:
        write_json(out, document)
    if picture is not None:
        write_text(picture, power_svg(document))
    emit(document, as_json=as_json, view=table("Gate", _HEADS, _rows(document)))
    if not document["meets_target"]:
        raise typer.Exit(EXIT_MISSED)


@app.command()
@on_executor
@writes("the figures, where --out says")
def faults(
    only: Annotated[
        list[str] | None, typer.Option(help="Plant this fault; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    date: Annotated[str | None, _DATE] = None,
    max_confirm: Annotated[int | None, _MOST] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Plant every known fault and see whether the gate catches it and blames the right metric.

    Goes on where it was stopped, as long as the code is the same. Exit code 1 says that fewer than
    95 % were caught, blamed right and played again, or that a scenario was blamed for nothing.
    """
    names = known_plants(only or ())
    asked = _self_test(workers, date, max_confirm)
    document = fault_study(asked, names, _told(as_json=as_json))
    _close(document, out, as_json=as_json, view=table("Planted faults", _FAULT, _faults(document)))


@app.command("same-code")
@on_executor
@writes("the figures, where --out says")
def same_code(
    reruns: Annotated[int, typer.Option(min=1, help="Nights, and pairs that luck separates.")] = 30,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    date: Annotated[str | None, _DATE] = None,
    max_confirm: Annotated[int | None, _MOST] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Run the same code night after night, and sides that differ in luck alone; expect no alarm.

    Goes on where it was stopped, as long as the code is the same. Exit code 1 says that there was
    an alarm, or that nothing was ever flagged, so that there could be none.
    """
    asked = _self_test(workers, date, max_confirm)
    document = same_code_study(asked, reruns, _told(as_json=as_json))
    _close(document, out, as_json=as_json, view=table("Same code", _SAME, _same(document)))


def _self_test(workers: int, date: str | None, max_confirm: int | None) -> SelfTest:
    suite, clock = default_suite(), SystemClock()
    policy = POLICY
    if max_confirm is not None:
        policy = configure(GatePolicy, {"max_confirm": max_confirm}, where="--max-confirm")
    workspace = self_test_workspace(home(), suite)
    with live("healthy side", suite) as watch:
        approved_baseline(workspace, suite, workers, watch)
    return SelfTest(workspace, suite, run_date(clock.now_ns(), date), workers, policy)


def _told(*, as_json: bool) -> Say:
    return (lambda _text: None) if as_json else notes.print


def _close(
    document: dict[str, Any], out: Path | None, *, as_json: bool, view: RenderableType
) -> None:
    document = {"command": shlex.join(["agent-gym", *sys.argv[1:]]), **document}
    if out is not None:
        write_json(out, document)
    emit(document, as_json=as_json, view=view)
    if not document["meets_target"]:
        raise typer.Exit(EXIT_MISSED)


_FAULT = ("fault", "caught", "blamed right", "stands first", "first in the report", "again", "s")
_SAME = ("question", "n", "with an alarm", "at most (95 %)", "metrics flagged")


def _faults(document: dict[str, Any]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        (
            name,
            *_marks(row["caught"], row["blamed_right"], row["right_first"]),
            row["first"] or "-",
            *_marks(row["replayed"]),
            row["seconds"],
        )
        for name, row in document["faults"].items()
    ]
    for name in ("desk_and_venue", "all"):
        told = document[name]
        words = ("caught", "blamed_right", "right_first", "replayed")
        *blame, again = [f"{told[word]} of {told['planted']}" for word in words]
        rows.append((name, *blame, "", again, ""))
    return rows


def _same(document: dict[str, Any]) -> list[tuple[object, ...]]:
    same, luck = document["reruns"], document["luck"]
    return [
        ("the very same code", same["n"], same["with_regressions"], "", ""),
        (
            "luck alone differs",
            luck["n"],
            luck["with_regressions"],
            luck["upper95"],
            f"{luck['metrics_flagged']} of {luck['metrics_tested']}",
        ),
    ]


def _marks(*values: bool) -> tuple[str, ...]:
    return tuple("yes" if value else "NO" for value in values)


_HEADS = ("noise", "false alarms", "at most (95 %)", "power of a 5 % loss", "flagged", "target")


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            name,
            figures["false_alarm"],
            figures["false_alarm_upper95"],
            figures["power"],
            figures["flagged"],
            "met" if figures["meets_target"] else "missed",
        )
        for name, figures in document["shapes"].items()
    ]
