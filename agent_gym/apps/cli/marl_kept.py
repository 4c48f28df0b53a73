"""What was trained before, read again: from folders of trainings, or from a kept comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from agent_gym.apps.cli.marl_choices import SEED_FOLDER
from agent_gym.core.errors import DataError
from agent_gym.evaluation.marl import TeamRun, kept_run, run_of
from agent_gym.training.marl.runs import Trained, read_json, stored_training
from agent_gym.training.marl.trainer import RECORD

COMPARED = "comparison of teams"


class Kept(NamedTuple):
    """A run, the maps of the study that it is from, and the seconds that it took."""

    run: TeamRun
    maps: tuple[str, ...]
    cpu_s: float


Study: TypeAlias = list[Kept]


def kept_training(trained: Trained, arm: str | None) -> Kept:
    """Return a finished training as a study sees it."""
    maps = (trained.record["manifest"]["data"]["map"],)
    return Kept(run_of(trained.record, arm), maps, trained.cpu_s)


def read_kept(places: Sequence[Path], *, renew: bool = False) -> Study:
    """Return all runs of kept comparisons, and all finished trainings in or below folders.

    With ``renew`` a run stands where it came first, and is the one that came last.
    """
    found = [
        each
        for place in places
        for each in (_compared(place) if place.is_file() else _trained(place))
    ]
    return list({_name(each.run): each for each in found}.values()) if renew else found


def _name(run: TeamRun) -> tuple[str, str, int]:
    return run.task, run.arm, run.seed


def _compared(path: Path) -> Iterator[Kept]:
    document = read_json(path)
    if not isinstance(document, Mapping) or document.get("kind") != COMPARED:
        raise DataError(
            "this is no comparison of teams",
            where=str(path),
            found=document.get("kind") if isinstance(document, Mapping) else type(document),
            expected=COMPARED,
            remedy="Name the JSON file that `agent-gym marl compare --out` has written",
        )
    try:
        maps, seconds = tuple(document["manifest"]["data"]["maps"]), _seconds(document)
        for each in document["runs"]:
            yield Kept(kept_run(each), maps, next(seconds[each["task"], each["arm"]]))
    except (KeyError, TypeError, StopIteration) as error:
        raise DataError(
            "this comparison is not whole", where=str(path), found=repr(error)
        ) from error


def _seconds(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Iterator[float]]:
    found: defaultdict[tuple[str, str], Iterator[float]] = defaultdict(lambda: iter(()))
    for task, arms in document["cpu_s"].items():
        for arm, each in arms.items():
            found[task, arm] = iter(each)
    return found


def _trained(top: Path) -> Iterator[Kept]:
    """Return what lies in or below a folder; an arm is called like its folder."""
    places = sorted({path.parent for path in top.rglob(RECORD)}, key=_order)
    if not places:
        raise DataError(
            "there is no finished training here",
            where=str(top),
            expected=f"folders with {RECORD}, or the JSON file of a comparison",
            remedy="Name what `agent-gym marl train` or `marl compare` has written",
        )
    for place in places:
        trained = stored_training(place)
        if trained is not None:
            arm = place.parent.name if place.name.startswith(SEED_FOLDER) else None
            yield kept_training(trained, arm)


def _order(place: Path) -> tuple[str, int, str]:
    number = place.name.removeprefix(SEED_FOLDER)
    return str(place.parent), int(number) if number.isdigit() else 0, place.name
