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
from agent_gym.evaluation.umc_walk.stress import (
    FIT_CANDIDATES,
    Held,
    StressConfig,
    Stressed,
    stress,
)
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest
from agent_gym.reporting.text import many


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
    gate: Annotated[
        bool,
        typer.Option(help="Exit with 4 if the breaker did not hold, or no crowd looks real."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fit a crowd to the bars, look around it for the one that UMC loses most in, play shocks.

    The drawdown breaker is on. It holds if no more is lost than its limit, the bar that passed it,
    and getting out at the next open.
    """
    with _subject(job, request) as subject, progress("search") as done:
        found = stress(subject.folder, subject.bars, subject.account, config, job.seed, done)
    emit(found.as_dict(), as_json=as_json, view=stress_view(found))
    if gate and not (found.held and found.realistic):
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


HEADS = ("market", "growth", "fall", "worst bar", "passing", "way out", "strict", "full")


def stress_view(found: Stressed) -> RenderableType:
    """Return the answer, every episode, and what was searched."""
    lines = [*fit_words(found), *search_words(found)]
    if not any(each.tried for each in found.episodes):
        lines.append("It traded in none of these crowds: it found nothing there worth its costs")
    return Group(stress_table(found), *(Text(line) for line in lines))


def stress_table(found: Stressed) -> RenderableType:
    """Return the answer and every episode."""
    rows = [_row(each) for each in found.all_episodes]
    limit = 100 * found.config.max_drawdown
    made = table(f"In %, with the breaker at {limit:g} %, fresh episodes", HEADS, rows)
    made.box, made.show_edge, made.padding = box.SIMPLE_HEAD, False, (0, 0)
    for column in made.columns:
        column.no_wrap = True
    for column in made.columns[1:]:
        column.justify = "right"
    return Group(_answer(found, limit), made)


def _answer(found: Stressed, limit: float) -> Text:
    """Say whether the breaker held, by both rules, and how often it had anything to do."""
    tried = [each for each in found.all_episodes if each.tried]
    if not tried:
        return Text("The breaker was NOT TRIED: the agent held nothing in any episode")
    word = ("held", "bold green") if found.held else ("DID NOT HOLD", "bold red")
    strictly = sum(each.held_strictly for each in tried)
    passed = sum(each.tripped for each in tried)
    return Text.assemble(
        "The breaker ",
        word,
        f" by the full rule ({limit:g} %, the bar that passed it, way out); by the strict rule "
        f"({limit:g} % and that bar alone) in {strictly} of {many(len(tried), 'episode')} with "
        f"a position; the limit was passed in {passed}",
    )


def _row(each: Held) -> tuple[object, ...]:
    figures = (each.growth, each.max_drawdown, each.worst_bar, each.passing, each.leaving)
    marks = ({True: "yes", False: "NO"}[held] for held in (each.held_strictly, each.held))
    words = marks if each.tried else ("not tried", "not tried")
    return (each.market, *(f"{100 * value:.2f}" for value in figures), *words)


def fit_words(found: Stressed) -> list[str]:
    """Say how real the fitted crowd is, and what real means."""
    fitted, config, target = found.fitted, found.config, found.found.target
    bound = config.largest_distance
    within = 100 * target.real_share(bound)
    lines = [
        f"Realism: distance 1 is that of another {target.stretch_bars:,} of these bars; "
        f"{within:.0f} % of {len(target.stretches)} such stretches lie within the bound of "
        f"{bound:g}",
        f"The crowd fitted to them, best of {config.fit_budget // FIT_CANDIDATES * FIT_CANDIDATES}"
        f", is at {fitted.fresh_distance:.2f} (on the same courses: without its echoes "
        f"{fitted.crowdless_distance:.2f}, before the fit {fitted.start_distance:.2f}); on those "
        f"of the search at {found.found.baseline.distance:.2f}, which is held against the bound",
    ]
    if not fitted.moved:
        lines.append("Nothing that was tried looks more real than the crowd before the fit")
    if fitted.crowdless_distance <= fitted.fresh_distance:
        lines.append("Its echoes do not make it look more real: its news do")
    if not found.realistic:
        far = sorted(fitted.misses.items(), key=lambda pair: -abs(pair[1]))
        told = ", ".join(f"{name} {miss:+.1f}" for name, miss in far)
        lines.append(
            "NO CROWD LOOKS REAL: the fitted one lies beyond the bound, so nothing was searched "
            f"around it. It is off by, in usual deviations of a stretch: {told}. "
            "Raise --fit-budget, or --largest-distance if these do not matter"
        )
    return lines


def search_words(found: Stressed) -> list[str]:
    """Say what was searched around the fitted crowd, and what was found there."""
    search = found.found
    if search.worst is None or search.fresh_worst is None:
        return []
    if not search.tried:
        return ["Nothing was searched around it: --budget is below 6; it alone was played"]
    lines = [
        f"{search.tried} crowds tried around it, {search.accepted} of them within the bound; "
        f"the fitted one gives {100 * search.baseline.growth:.2f} %"
    ]
    if search.worst is search.baseline:
        return [*lines, "None of these costs more than the fitted crowd"]
    crowd = search.worst.market.crowd
    assert crowd is not None
    shares = sorted(crowd.params["weights"].items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares[:4])
    grown, fresh = (100 * each.growth for each in (search.worst, search.fresh_worst))
    lines.append(
        f"Worst found: growth {grown:.2f} % ({fresh:.2f} % with fresh seeds), realism distance "
        f"{search.worst.distance:.2f} ({search.fresh_worst.distance:.2f}); its crowd: {told}"
    )
    return lines
