"""How an evaluation is shown in a terminal: verdicts, the table, where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agent_gym.apps.cli.output import table
from agent_gym.evaluation.protocol.failures import FailedArm
from agent_gym.evaluation.protocol.figures import EVALUATION_FIGURES, figures_of
from agent_gym.evaluation.protocol.report import ArmReport, Evaluation
from agent_gym.evaluation.statistics import Interval
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import format_time

COLOURS = {
    "evidence of edge": "bold green",
    "promising": "green",
    "no evidence of edge": "yellow",
    "worse than baseline": "red",
}
FIGURES = {figure.name: figure for figure in EVALUATION_FIGURES}


def evaluation_view(found: Evaluation, registry: Path, reports: Sequence[Path]) -> RenderableType:
    """Return everything that a person is shown."""
    parts: list[RenderableType] = [_verdict(arm) for arm in found.agents]
    parts += [_failed(each) for each in found.failed]
    parts.append(_table(found))
    if any(arm.paths is not None for arm in found.arms):
        parts.append(_paths_table(found))
    parts += [_gate(arm) for arm in found.arms if arm.gates]
    lines = [_where(found), *_paths_notes(found), *_known(found), *_spa(found), *_lockbox(found)]
    lines.append(_trials(found, registry))
    lines += [f"Look at {path}" for path in reports]
    return Group(*parts, *map(Text, lines))


def _verdict(arm: ArmReport) -> Text:
    if arm.verdict is None:
        return Text(arm.label)
    return Text.assemble(
        (arm.label, "bold"),
        ": ",
        (arm.verdict.word, COLOURS[arm.verdict.word]),
        f" ({arm.verdict.why})",
    )


def _failed(arm: FailedArm) -> Text:
    return Text.assemble((arm.label, "bold"), ": ", ("FAILED", "bold red"), f" ({arm.words()})")


def _table(found: Evaluation) -> RenderableType:
    with_share = any(arm.share is not None for arm in found.arms)
    with_seeds = any(arm.lucky is not None for arm in found.arms)
    heads = ["arm", "net", "95 %", "gross", *(["share"] if with_share else [])]
    heads += ["PSR>.95" if with_seeds else "PSR", "DSR", "p"]
    rows = []
    for arm in found.arms:
        figures = figures_of(arm)
        row: list[Any] = [arm.label, _text(figures, "net_bp_per_bar"), _band(arm.net)]
        row.append(_text(figures, "gross_bp_per_bar"))
        if with_share:
            row.append(_text(figures, "share_of_attainable"))
        row.append(str(arm.lucky) if with_seeds else _text(figures, "psr"))
        rows.append((*row, _text(figures, "dsr"), _text(figures, "p_random")))
    title = f"Basis points a bar ({found.unit}) after costs; p is of random timing"
    return _right(table(title, tuple(heads), rows))


def _right(made: Table) -> Table:
    """Return a table of numbers without lines, which fits a narrow terminal."""
    made.box, made.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
    for column in made.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return made


def _paths_table(found: Evaluation) -> RenderableType:
    """Return the spread of every arm's paths; one path has none."""
    heads = ("arm", "paths", "Sharpe", "5 to 95 %", "<0", "growth %", "5 to 95 %", "<0")
    rows: list[tuple[object, ...]] = []
    for arm in found.arms:
        if arm.paths is None:
            continue
        told = arm.paths.as_dict()
        if told["sharpe"] is None:
            path = told["paths"][0]
            ratio = "-" if path["sharpe"] is None else f"{path['sharpe']:.2f}"
            rows.append((arm.label, "1", ratio, "-", "-", f"{100 * path['growth']:.1f}", "-", "-"))
            continue
        row = [arm.label, str(len(told["paths"]))]
        for name, scale, digits in (("sharpe", 1.0, 2), ("growth", 100.0, 1)):
            low, middle, high = (
                f"{scale * told[name][part]:.{digits}f}" for part in ("low", "median", "high")
            )
            row += [middle, f"{low} to {high}", f"{100 * told[name]['below_0']:.0f} %"]
        rows.append(tuple(row))
    return _right(table("Over the paths: yearly Sharpe ratio and log growth, net", heads, rows))


def _paths_notes(found: Evaluation) -> list[str]:
    """Return what must be said of agents whose paths are no distribution."""
    noted = [(arm.label, arm.paths.note) for arm in found.agents if arm.paths is not None]
    lines = [f"{label}: {note}" for label, note in noted if note is not None]
    if noted:
        lines.append(
            "Judged is the path in the middle by Sharpe ratio. Most paths learn from what came "
            "later, so none is a record of what could have been earned"
        )
    return lines


def _text(figures: dict[str, float | int | None], name: str) -> str:
    return FIGURES[name].format(figures[name])


def _band(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"


def _gate(arm: ArmReport) -> Text:
    text = Text(f"{arm.label}: ")
    for gate in arm.gates:
        word, colour = ("passed", "green") if gate.passed else ("FAILED", "bold red")
        text.append(f"gate {gate.name} ").append(word, colour).append(f" ({gate.why}) ")
    return text


def _where(found: Evaluation) -> str:
    market, protocol = found.market, found.protocol
    span = f"{format_time(market['first_ns'])} to {format_time(market['last_ns'])}"
    counted = next(name for name in ("folds", "combinations", "seeds") if name in protocol)
    often = f"{protocol[counted]} {counted}"
    return (
        f"{protocol['name']}, {often}: {market['bars']:,} tested bars of "
        f"{format_period(market['period_ns'])}, {market['name']}, {span}"
    )


def _known(found: Evaluation) -> list[str]:
    best = found.attainable
    if best is None:
        return []
    return [
        f"Attainable at {best['cost_bp']:g} bp a trade: {best['bp_per_bar']:.2f} bp a bar, "
        f"{best['on_same_paths_bp_per_bar']:.2f} on the same paths"
    ]


def _spa(found: Evaluation) -> list[str]:
    if not found.spa:
        return []
    told = ", ".join(f"p {p['consistent']:.3f} against {name}" for name, p in found.spa.items())
    return [f"The best of all agents, picked with hindsight (SPA): {told}"]


def _lockbox(found: Evaluation) -> list[str]:
    held = found.lockbox
    if held is None:
        return []
    lines = [
        f"Lockbox: the last {held['rows']:,} bars, opened {held['openings']} times, "
        f"tested by {held['peeks']} other trials"
    ]
    opening = found.opening
    if opening is not None:
        lines.append(f"Opened now: {opening.words()}; {opening.before} times before")
    return lines


def _trials(found: Evaluation, registry: Path) -> str:
    standing = found.arms[0].standing
    pbo = "not known" if standing.pbo is None else f"{standing.pbo:.2f}"
    return (
        f"{standing.trials} trials on this market, {standing.effective_trials} of them apart, "
        f"PBO {pbo}; registered in {registry}"
    )
