"""``agent-gym nightly``: play the suite, compare it with the baseline, write everything down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.nightly_options import PlayOptions, live, user
from agent_gym.apps.cli.output import emit, report, screen, table
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home, write_text
from agent_gym.core.registry import Config, unknown
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly import (
    Approval,
    LockHeld,
    NightlyOptions,
    NightlyOutcome,
    RunOptions,
    Workspace,
    one_run,
    run_nightly,
)
from agent_gym.pipeline.nightly.exits import LOCKED, MEANINGS
from agent_gym.pipeline.nightly.plan import plan_of
from agent_gym.pipeline.nightly.quarantine import check_holdable, hold
from agent_gym.pipeline.nightly.times import iso
from agent_gym.reporting.nightly import (
    diff_document,
    headline,
    light,
    markdown_summary,
    summary_view,
    verdict,
)
from agent_gym.reporting.nightly.console import replay_lines

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
_CODES = "; ".join(f"{code}: {text}" for code, text in MEANINGS.items())


class NightOptions(Config):
    """What the night decides and shows."""

    update_baseline: bool = Field(
        default=False, description="make this run the baseline, if it may be; needs --reason"
    )
    reason: str | None = Field(
        default=None, description="why the baseline changes, or a metric goes into quarantine"
    )
    uncompared: bool = Field(
        default=False,
        description="let in a run that could not be compared with the baseline before it",
    )
    set_anchor: bool = Field(default=False, description="make the baseline the release anchor, too")
    fail_on_regression: bool = Field(
        default=False,
        description="exit with 1 if something is worse, with 4 if something cannot be repeated",
    )
    fail_on_unsure: bool = Field(
        default=False, description="exit with 1 also if the night is underpowered or degraded"
    )
    print_summary: bool = Field(default=False, description="print all that changed")
    comment: Path | None = Field(
        default=None, description="also write the comment for a pull request, as Markdown, here"
    )
    date: str | None = Field(
        default=None, description="date that chooses the fresh seeds; default: today (UTC)"
    )
    dry_run: bool = Field(default=False, description="say what would be done, and do nothing")


@app.callback(epilog=f"Exit codes: {_CODES}.")
@on_executor
@with_options("play", PlayOptions, "What is played")
@with_options("night", NightOptions, "What is decided")
def nightly(
    play: PlayOptions,
    night: NightOptions,
    accept_regression: Annotated[
        list[str] | None,
        typer.Option(metavar="SCENARIO/METRIC", help="Let this regression into the baseline."),
    ] = None,
    imports: Annotated[
        list[str] | None,
        typer.Option("--import", metavar="MODULE", help="Module that registers things of yours."),
    ] = None,
    quarantine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCENARIO/METRIC",
            help="Play nothing; hold this metric for 14 days. Needs --reason.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Play a suite, compare it with the baseline on fresh seeds, and write all reports."""
    workspace = Workspace(home())
    options = play.run_options("nightly", tuple(imports or ()), night.date)
    if quarantine:
        put_into_quarantine(workspace, night, tuple(quarantine), options, as_json=as_json)
        return
    approval = approval_of(night, tuple(accept_regression or ()), options)
    if night.comment is not None:
        check_target(night.comment, "--comment")
    if night.dry_run:
        plan = plan_of(options, workspace, SystemClock())
        emit(plan, as_json=as_json, view=plan_view(plan))
        return
    decisions = NightlyOptions(
        fail_on_regression=night.fail_on_regression,
        fail_on_unsure=night.fail_on_unsure,
        approval=approval,
        set_anchor=night.set_anchor,
    )
    try:
        with live("nightly", options.suite) as watch:
            outcome = run_nightly(options, decisions, workspace, watch=watch)
    except LockHeld as error:
        report(error, as_json=as_json)
        raise typer.Exit(LOCKED) from error
    if night.comment is not None:
        write_text(night.comment, markdown_summary(outcome.result))
    emit(payload(outcome), as_json=as_json, view=view(outcome, full=night.print_summary))
    if not as_json:
        told = replay_lines(outcome.result) if night.print_summary else ()
        for line in (*told, *outcome.messages):
            screen.print(line, markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


def put_into_quarantine(
    workspace: Workspace,
    night: NightOptions,
    names: tuple[str, ...],
    options: RunOptions,
    *,
    as_json: bool,
) -> None:
    """Hold metrics, which takes a person and a reason."""
    if night.reason is None or not night.reason.strip() or night.update_baseline:
        raise ConfigError(
            "a quarantine needs a reason, and is no baseline",
            where="--quarantine",
            remedy='Say why, such as --reason "its noise tripled with the new feed"',
        )
    for name in names:
        _check_metric(name, options.suite, "--quarantine")
        check_holdable(name, options.suite)
    clock = SystemClock()
    with one_run(workspace.lock, clock, "agent-gym nightly --quarantine"):
        added = hold(workspace, names, night.reason.strip(), user(), clock)
    said = {"entries": [msgspec.to_builtins(each) for each in added]}
    lines = [Text(f"{each.id} is held until {iso(each.until_ns)}") for each in added]
    emit(said | {"file": str(workspace.quarantine)}, as_json=as_json, view=Group(*lines))


def approval_of(
    night: NightOptions, accepted: tuple[str, ...], options: RunOptions
) -> Approval | None:
    """Return who approves what, or say at once why it cannot be."""
    reason = night.reason
    if not night.update_baseline:
        given = {
            "--reason": reason is not None,
            "--accept-regression": bool(accepted),
            "--uncompared": night.uncompared,
        }
        if any(given.values()):
            raise ConfigError(
                "these options go with --update-baseline only",
                found=next(name for name, there in given.items() if there),
            )
        return None
    if reason is None or not reason.strip():
        raise ConfigError(
            "a new baseline needs a reason",
            where="--update-baseline",
            remedy='Say why, such as --reason "slower on purpose: retries are spread out"',
        )
    if options.subject.plant is not None:
        raise ConfigError("a run with a planted fault can never become a baseline", where="--plant")
    for name in accepted:
        _check_metric(name, options.suite)
    return Approval(reason.strip(), user(), accepted, night.uncompared)


def _check_metric(name: str, suite: Suite, option: str = "--accept-regression") -> None:
    """Refuse the name of a metric that this suite cannot have; one it has lost may be accepted."""
    scenario, slash, metric = name.partition("/")
    if not slash or not metric:
        raise ConfigError(
            "a metric is named with its scenario",
            where=option,
            found=repr(name),
            expected="SCENARIO/METRIC",
        )
    for each in suite.scenarios:
        known = tuple(figure.name for figure in each.metrics()) if each.name == scenario else ()
        if known and metric not in known:
            raise unknown(f"metric of scenario {scenario}", metric, known)


def payload(outcome: NightlyOutcome) -> dict[str, Any]:
    """Return the outcome for ``--json``."""
    return {
        "run_id": outcome.result.run.run_id,
        "status": outcome.result.run.status,
        "verdict": verdict(outcome.result),
        "light": light(outcome.result),
        "headline": headline(outcome.result),
        "exit_code": outcome.exit_code,
        "planted": outcome.result.run.subject.get("plant"),
        "approved_baseline": outcome.approved,
        "played": outcome.played,
        "kept": outcome.kept,
        "messages": list(outcome.messages),
        "files": {name: str(path) for name, path in outcome.places.items()},
        "diff": diff_document(outcome.result),
    }


def view(outcome: NightlyOutcome, *, full: bool) -> RenderableType:
    """Return the outcome for a person."""
    result = outcome.result
    parts: list[RenderableType] = []
    if result.run.subject.get("plant") is not None:
        parts.append(Text(f"SELF-TEST with the fault {result.run.subject['plant']}", "bold red"))
    parts.append(summary_view(result) if full else Text(headline(result), "bold"))
    if outcome.approved is not None:
        parts.append(Text(f"The baseline is now {outcome.approved}"))
    parts.append(
        Text(
            f"Run {result.run.run_id}: {outcome.played} episodes played, {outcome.kept} known; "
            f"see {outcome.places['page']}"
        )
    )
    return Group(*parts)


def plan_view(plan: dict[str, Any]) -> RenderableType:
    """Return what would be done."""
    rows: list[tuple[object, ...]] = [
        (each["name"], each["seeds"], each["known"], each["to_play"]) for each in plan["scenarios"]
    ]
    return Group(
        Text(f"Suite {plan['suite']}, code {plan['code_hash']}, fresh seeds of {plan['date']}"),
        Text(f"Baseline: {plan['baseline'] or plan['problem']}"),
        table("Would be played", ("scenario", "seeds", "known", "to play"), rows),
    )
