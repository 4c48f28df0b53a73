"""``agent-gym judge``: score groups of trajectories, and measure what the scores are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.markup import escape

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.judge_options import JudgeOptions, judge_of, open_store, record_of
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.judge import Calibration, CandidateGroup, calibrate
from agent_gym.evaluation.judge.calibration import check_judge
from agent_gym.evaluation.judge.practice import practice_groups
from agent_gym.evaluation.judge.scoring import (
    StoreScoring,
    groups_of,
    judge_groups,
    read_group,
    truth_of,
)
from agent_gym.evaluation.judge.truth import RETURN
from agent_gym.evaluation.statistics import Interval
from agent_gym.rollouts.progress import progress_bar

app = typer.Typer(no_args_is_help=True)
_STORE = typer.Option(help="Folder of a trajectory store.")
_URL = typer.Option("--database", help="URL of the store's database, if it is not inside it.")
_JSON = typer.Option("--json", help="Print one JSON document.")
_OUT = typer.Option(help="JSON file to write.")
_PANEL = "The judge"
Truth = dict[str, dict[str, float]]


@app.callback()
def judge() -> None:
    """Scores relative to a group, and what they are worth."""


@app.command("calibrate")
@with_options("options", JudgeOptions, _PANEL)
@writes("the figures, where --out says, and recorded answers")
def calibrate_judge(
    options: JudgeOptions,
    groups: Annotated[int, typer.Option(min=2, max=10_000, help="Groups to show.")] = 10,
    store: Annotated[Path | None, _STORE] = None,
    url: Annotated[str | None, _URL] = None,
    out: Annotated[Path | None, _OUT] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Measure stability, order flips and agreement with the truth.

    Without a store, groups of eight known players are played on fresh snapshots. The judge that
    knows the truth must come out at 100 %: that checks the way from record to score.
    """
    truth: Truth = {}
    asked = judge_of(options, truth)  # what is wrong with it is said before anything is played
    check_judge(asked)
    if store is not None:
        shown = _stored(options, groups, (store, url), truth)
    elif url is None:
        shown = _practice(options, groups, truth)
    else:
        raise ConfigError("--database needs --store, where the steps are", found=url)
    with progress_bar("groups") as progress:
        found = calibrate(asked, shown, truth, progress)
    payload = found.as_dict()
    if out is not None:
        write_json(out, payload)
    emit(payload, as_json=as_json, view=_calibration_view(found))
    if found.failed:
        raise typer.Exit(EXIT_RUN)


@app.command()
@with_options("options", JudgeOptions, _PANEL)
@writes("scores in the store, and recorded answers")
def score(
    options: JudgeOptions,
    store: Annotated[Path | None, _STORE] = None,
    url: Annotated[str | None, _URL] = None,
    batch: Annotated[str | None, typer.Option(help="Only the members of this batch.")] = None,
    groups: Annotated[int | None, typer.Option(min=1, help="Groups at most.")] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Judge the groups of a store and write every score with its trajectory.

    A group that this judge has judged before is left as it is. Failures are told and write nothing.
    """
    known: Truth = {}
    made = judge_of(options, known)  # what is wrong with it is said before anything is read
    with open_store(store, url) as opened:
        found, alone = groups_of(opened, batch_id=batch)
        if not found:
            raise DataError(
                "there is no group of two or more trajectories here",
                where=str(opened.folder) if batch is None else f"batch {batch}",
                found=f"{alone} trajectories on their own",
            )
        some = found[:groups]
        if options.backend == "truth":
            known.update(truth_of(opened, some, options.measure))
        with progress_bar("groups") as progress:
            scored = judge_groups(opened, made, some, measure=options.measure, progress=progress)
    payload = {
        "judge": {"model": made.model, "version": made.version, "hindsight": made.knows_outcomes},
        "groups": len(some),
        "left_out": len(found) - len(some),
        "alone": alone,
        "known": list(scored.known),
        "trajectories": scored.trajectories,
        "judgments": [one.as_dict() for one in scored.judgments],
    }
    emit(payload, as_json=as_json, view=_scoring_view(scored, alone))
    if scored.failed:
        raise typer.Exit(EXIT_RUN)


def _practice(options: JudgeOptions, n: int, truth: Truth) -> list[CandidateGroup]:
    """Play groups, and put what their members earned beside the truth that is known."""
    if options.measure != RETURN:
        raise ConfigError(
            "practice groups are measured by their return alone",
            where="--measure",
            found=options.measure,
            remedy="Give a --store whose trajectories tell that metric",
        )
    with progress_bar("groups played") as progress:
        made = []
        for one in practice_groups(n, options.seed, record_of(options)):
            made.append(one.group)
            truth[one.group.group_id] = one.returns
            progress(len(made), n, {"status": "ok"})
    return made


def _stored(
    options: JudgeOptions, n: int, place: tuple[Path, str | None], truth: Truth
) -> list[CandidateGroup]:
    """Read groups of a store, and put what their members came to beside the truth."""
    with open_store(*place) as store:
        some = groups_of(store)[0][:n]
        truth.update(truth_of(store, some, options.measure))
        return [read_group(store, one, record_of(options), options.measure) for one in some]


_WORDS = {
    "pairwise_accuracy": "pairs in the true order",
    "single_pass_accuracy": "the same with a single pass",
    "kendall_tau": "Kendall's tau with the truth",
    "stability_tau": "Kendall's tau between passes",
    "score_spread": "deviation of a score between passes",
    "order_flip_rate": "pairs that flip in the reverse order",
    "repeat_flip_rate": "pairs that flip when asked again",
    "tie_share": "pairs with equal scores",
}


def _calibration_view(found: Calibration) -> Group:
    rows: list[tuple[object, ...]] = [
        (_WORDS[name], *_cells(value)) for name, value in found.figures.items()
    ]
    counts: list[tuple[object, ...]] = [
        ("groups", found.groups),
        ("groups not judged", len(found.failed)),
        *((name.replace("_", " "), count) for name, count in found.counts.items()),
    ]
    return Group(
        table(f"Judge {found.model}", ("figure", "mean", "95 % interval"), rows),
        table("Asked", ("what", "how many"), counts),
        *(escape(f"{group}: {reason}") for group, reason in found.failed.items()),
        escape(found.sentence),
    )


def _cells(value: Interval | float | None) -> tuple[str, str]:
    if isinstance(value, Interval):
        return f"{value.estimate:.3f}", f"{value.low:.3f} to {value.high:.3f}"
    return ("-" if value is None else f"{value:.3f}"), "-"


def _scoring_view(scored: StoreScoring, alone: int) -> Group:
    rows: list[tuple[object, ...]] = [
        (
            one.group_id,
            len(one.representatives),
            f"{len(one.good_passes)} of {len(one.passes)}",
            _range(one.scores) if one.judged else f"not judged: {one.reason}",
        )
        for one in scored.judgments
    ]
    words = (
        f"{scored.trajectories} scores written, {len(scored.known)} groups were judged before, "
        f"{alone} trajectories have nobody to be compared with."
    )
    heads = ("group", "different records", "good passes", "scores")
    return Group(table("Judged", heads, rows), words)


def _range(scores: dict[str, Any]) -> str:
    return f"{min(scores.values()):.3f} to {max(scores.values()):.3f}"
