"""``agent-gym umc stress``: the market that hurts it most, and whether the breaker holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field
from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.evaluate import progress
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.umc_backtest import account_of, read_bars
from agent_gym.apps.cli.umc_options import SourceJob
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.splits import Span
from agent_gym.evaluation.protocol.walk import lesson
from agent_gym.evaluation.umc_walk import open_run
from agent_gym.evaluation.umc_walk.run import account_cost_bp
from agent_gym.evaluation.umc_walk.stress import Held, StressConfig, Stressed, stress
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest


class StressJob(SourceJob):
    """Whose agent is put under stress."""

    run: Path | None = Field(
        default=None, description="folder that `umc backtest` has written; its last agent is taken"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """An agent in a folder, the bars it knows, and the account it trades on."""

    folder: Path
    bars: Bars
    account: BacktestConfig


@with_request
@with_options("config", StressConfig, "The stress")
@with_options("job", StressJob, "Whose agent")
def stress_agent(
    job: StressJob,
    config: StressConfig,
    request: ReadRequest,
    gate: Annotated[bool, typer.Option(help="Exit with 4 if the breaker did not hold.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look for the crowd that UMC loses most in, among those that look real, and play shocks.

    The drawdown breaker is on. It holds if no drawdown passes its limit by more than one bar.
    """
    with _subject(job, request) as subject, progress("search") as done:
        found = stress(subject.folder, subject.bars, subject.account, config, job.seed, done)
    emit(found.as_dict(), as_json=as_json, view=_view(found))
    if gate and not found.held:
        raise typer.Exit(EXIT_RUN)


@contextmanager
def _subject(job: StressJob, request: ReadRequest) -> Iterator[Subject]:
    """Yield the last agent of a run, or one that is taught all the bars that were named."""
    named = job.data is not None or job.market is not None
    if named == (job.run is not None):
        raise ConfigError(
            "stress needs one agent",
            found="both --run and bars" if named else "neither",
            expected="--run FOLDER, or --data FILE or --market NAME to teach one",
        )
    if job.run is not None:
        run = open_run(job.run)
        last = run.results["folds"][-1]["fold"]
        yield Subject(run.agent_folder(last), run.bars, run.config)
        return
    bars, account = read_bars(job, request), account_of(job, BacktestConfig())
    with tempfile.TemporaryDirectory(prefix="agent-gym-") as made:
        folder = Path(made) / "agent"
        _taught(bars, account, job.seed).save(folder)
        yield Subject(folder, bars, account)


def _taught(bars: Bars, account: BacktestConfig, seed: int) -> UMCAgent:
    ref = Ref(use="umc", params={"cost_bp": account_cost_bp(account)})
    agent = make("agent", ref)
    assert isinstance(agent, UMCAgent)
    seeds = Seeds(seed).child("fit", 0)
    agent.fit(*lesson(bars, Span(0, len(bars)), agent.needs, account, seeds))
    return agent


def _view(found: Stressed) -> RenderableType:
    rows = [_row(each) for each in (*found.episodes, *found.scenarios)]
    heads = ("market", "growth %", "drawdown %", "worst bar %", "tripped", "held")
    limit = 100 * found.config.max_drawdown
    made = table(f"With the breaker at {limit:g} %, fresh episodes", heads, rows)
    made.box = box.SIMPLE_HEAD
    for column in made.columns[1:]:
        column.justify, column.no_wrap = "right", True
    word = ("held", "bold green") if found.held else ("DID NOT HOLD", "bold red")
    answer = Text.assemble("The breaker ", word, f": {limit:g} % plus one bar")
    if all(each.max_drawdown == 0.0 for each in (*found.episodes, *found.scenarios)):
        answer = Text("Nothing was lost, so the breaker was not tested: the agent did not trade")
    return Group(answer, made, *(Text(line) for line in _search_words(found)))


def _row(each: Held) -> tuple[object, ...]:
    tripped = "-" if each.tripped is None else "yes" if each.tripped else "no"
    figures = (each.growth, each.max_drawdown, each.worst_bar)
    held = "yes" if each.held else "NO"
    return (each.market, *(f"{100 * value:.2f}" for value in figures), tripped, held)


def _search_words(found: Stressed) -> list[str]:
    search = found.found
    lines = [
        f"{search.tried} crowds tried, {search.accepted} of them within a realism distance of "
        f"{found.config.largest_distance:g}; the usual crowd is at "
        f"{search.baseline.distance:.2f} and gives {100 * search.baseline.growth:.2f} %"
    ]
    if search.worst is None or search.fresh_worst is None:
        return [*lines, "No crowd looked real enough: raise --budget or --largest-distance"]
    params = search.worst.market.crowd.params if search.worst.market.crowd else {}
    shares = sorted(params.get("weights", {}).items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares[:4])
    grown, fresh = (100 * each.growth for each in (search.worst, search.fresh_worst))
    lines.append(
        f"Worst found: growth {grown:.2f} % ({fresh:.2f} % with fresh seeds), realism "
        f"distance {search.worst.distance:.2f}; its crowd: {told}"
    )
    return lines
