"""``agent-gym umc gates``: does the agent hold the bounds that were written down beforehand?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.agent_words import parse_agents
from agent_gym.apps.cli.evaluate import progress
from agent_gym.apps.cli.evaluate_options import TRIALS
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.workspace import check_target, source_commit
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Ref, configure
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.umc import LETTERS, GatesPlan, run_gates
from agent_gym.reporting.umc_gates import GATES, places, write_gates

HEADS = ("figure", "found", "interval", "bound", "passed")


def gates(
    agent: Annotated[
        str, typer.Option(help="Agent, such as umc or umc:kelly_fraction=0.5.")
    ] = "umc",
    only: Annotated[str, typer.Option(help="Gates by letter, such as ABC.")] = "".join(LETTERS),
    seeds: Annotated[
        int, typer.Option(min=2, help="Paths of each null; M1 has 5 times, others 2 times as many.")
    ] = 20,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    bars: Annotated[
        int | None, typer.Option(min=1_000, help="Bars of a path; default: two years of hours.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Real bars for the test of time reversal; default: generated ones."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for JSON, page and picture.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes; changes no number.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure all acceptance gates; exit code 4 says that a bound is missed.

    Bounds and markets are those of the design; a figure that is only shown says why.
    """
    said = {"agent": agent_of(agent), "only": tuple(dict.fromkeys(only.upper())), "seeds": seeds}
    said |= {"first_seed": seed, "bars": bars, "data": data}
    plan = configure(GatesPlan, said, where="umc gates")
    if data is not None and not data.is_file():
        raise ConfigError("there is no such file", where="--data", found=str(data))
    for path in () if out is None else places(out, GATES):
        check_target(path)
    words = ["--agent", agent] if agent != "umc" else []
    words += words_for(GatesPlan(), plan, {"only": only, "first_seed": seed})
    with progress("gates") as done:
        report = run_gates(plan, setting_of(("umc", "gates", *words), jobs, done))
    document = report.as_dict()
    if out is not None:
        write_gates(out, document)
    emit(document, as_json=as_json, view=table(_title(document), HEADS, _rows(document)))
    if not report.passed:
        raise typer.Exit(EXIT_RUN)


def agent_of(word: str) -> Ref:
    """Return the one agent that a word names."""
    arms = parse_agents([word])
    if len(arms) != 1 or len(arms[0].refs) != 1:
        raise ConfigError("the gates are for one agent", where="--agent", found=word)
    return arms[0].refs[0]


def setting_of(words: tuple[str, ...], jobs: int, done: Any) -> Setting:
    """Return who does the work; its registry stays as it is."""
    return Setting(
        TrialRegistry(home() / TRIALS),
        command=("agent-gym", *words),
        commit=source_commit(),
        jobs=jobs,
        done=done,
    )


def words_for(usual: Any, plan: Any, said: dict[str, Any]) -> list[str]:
    """Return the options by which a plan differs from the usual one."""
    options = {"first_seed": "seed"}
    words = []
    for name in type(plan).model_fields:
        if name != "agent" and getattr(plan, name) != getattr(usual, name):
            value = said.get(name, getattr(plan, name))
            words += [f"--{options.get(name, name).replace('_', '-')}", str(value)]
    return words


def _title(document: dict[str, Any]) -> str:
    missed = len(document["failed"])
    return "All gates passed" if not missed else f"{missed} bounds missed"


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    marks = {True: "yes", False: "NO", None: "shown only"}
    return [
        (
            name,
            _number(found["value"]),
            f"{_number(found['low'])} to {_number(found['high'])}",
            f"{found['rule']} {_number(found['bound'])} {found['unit']}",
            marks[found["passed"]],
        )
        for name, found in document["gates"].items()
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
