"""``agent-gym umc gates``: does the agent hold the bounds of the design?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.agent_words import parse_agents
from agent_gym.apps.cli.config_options import with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.evaluate import progress
from agent_gym.apps.cli.evaluate_options import TRIALS
from agent_gym.apps.cli.executor_option import on_executor
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.workspace import check_target, source_commit
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, Ref, configure
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.protocol.setting import Done, Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.umc import LETTERS, GatesPlan, run_gates
from agent_gym.evaluation.umc.canary import REVERSAL, real_bars
from agent_gym.evaluation.umc.plan import UMC
from agent_gym.markets.source import open_market
from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates import GATES, places, write_gates

HEADS = ("figure", "found", "interval", "bound", "passed")


FEWEST_SEEDS = 20


class GatesJob(Config):
    """What is asked of which agent."""

    agent: str = Field(default=UMC, description="agent, such as umc or umc:kelly_fraction=0.5")
    only: str = Field(default="".join(LETTERS), description="gates by letter, such as ABC or A,B")
    seeds: int = Field(
        default=20, ge=2, description="paths of each null; other markets have 2 to 25 times as many"
    )
    seed: int = Field(default=0, ge=0, description="first seed")
    bars: int | None = Field(
        default=None, ge=1_000, description="bars of a path (default two years of hours)"
    )
    data: Path | None = Field(
        default=None, description="real bars for time reversal (default generated ones)"
    )

    def plan(self) -> GatesPlan:
        """Return the plan that this asks for."""
        if self.data is not None:
            if not self.data.is_file():
                raise ConfigError("there is no such file", where="--data", found=str(self.data))
            open_market(real_bars(self.data), Seeds(self.seed))  # refused now, not in minutes
        said = {"only": letters_of(self.only), "first_seed": self.seed}
        said |= {"agent": agent_of(self.agent), "seeds": self.seeds}
        said |= {"bars": self.bars, "data": self.data}
        return configure(GatesPlan, said, where="umc gates")


def letters_of(words: str) -> tuple[str, ...]:
    """Return the gates that were named, with or without commas between them.

    Example:
        >>> letters_of("AB"), letters_of("a, b")
        (('A', 'B'), ('A', 'B'))
    """
    letters = tuple(dict.fromkeys(words.upper().replace(",", "").replace(" ", "")))
    wrong = [letter for letter in letters if letter not in LETTERS]
    if wrong or not letters:
        raise ConfigError(
            "there is no such gate" if wrong else "no gate was named",
            where="--only",
            found=", ".join(wrong) or repr(words),
            expected=f"letters of {', '.join(LETTERS)}",
            remedy="Say --only AB or --only A,B; without it all gates are measured",
        )
    return letters


class StudyOutputs(Config):
    """What is written, and by how many processes."""

    out: Path | None = Field(default=None, description="folder for JSON, page and picture")
    jobs: int = Field(default=1, ge=1, le=256, description="processes; changes no number")


@on_executor
@with_options("outputs", StudyOutputs, "What is written")
@with_options("job", GatesJob, "What is asked")
@writes("figures and page of the gates")
def gates(
    job: GatesJob,
    outputs: StudyOutputs,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure all acceptance gates; exit code 4 says that a bound is missed.

    The bounds are those of the design; the page says what was set after a first run.
    """
    plan = job.plan()
    check_study(outputs, GATES)
    with progress("gates") as done:
        setting = setting_of(("umc", "gates", *words_of(job)), outputs.jobs, done)
        report = run_gates(plan, setting)
    document = report.as_dict()
    if outputs.out is not None:
        write_gates(outputs.out, document)
    emit(document, as_json=as_json, view=_view(document))
    if not report.passed:
        raise typer.Exit(EXIT_RUN)


def check_study(outputs: StudyOutputs, name: str) -> None:
    """Raise ConfigError unless the files of a study can be written."""
    for path in () if outputs.out is None else places(outputs.out, name):
        check_target(path)


def agent_of(word: str) -> Ref:
    """Return the one agent that a word names."""
    arms = parse_agents([word])
    if len(arms) != 1 or len(arms[0].refs) != 1:
        raise ConfigError("the gates are for one agent", where="--agent", found=word)
    return arms[0].refs[0]


def setting_of(words: tuple[str, ...], jobs: int, done: Done) -> Setting:
    """Return who does the work; its registry stays as it is."""
    return Setting(
        TrialRegistry(home() / TRIALS),
        command=("agent-gym", *words),
        commit=source_commit(),
        jobs=jobs,
        done=done,
    )


def _view(document: dict[str, Any]) -> RenderableType:
    """Return the table, and the words of figures that cannot be read without them."""
    told = [
        Text(f"{name}: {found['words']}")
        for name, found in document["gates"].items()
        if found["words"] and (found["passed"] is not True or name == REVERSAL)
    ]
    return Group(table(_title(document), HEADS, _rows(document)), *told)


def _title(document: dict[str, Any]) -> str:
    missed = len(document["failed"])
    if missed:
        return f"{many(missed, 'bound')} missed"
    seeds = len(document["seeds"])
    if seeds < FEWEST_SEEDS:
        return f"All gates passed on {seeds} seeds; the bounds are meant for {FEWEST_SEEDS}"
    return "All gates passed"


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
