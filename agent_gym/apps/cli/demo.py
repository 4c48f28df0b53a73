"""``agent-gym demo``: from a market to a report, end to end, in one command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from agent_gym.agents.team import Independent
from agent_gym.apps.cli.backtest import CHART, REPORT, sheet_from, short_view
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, notes
from agent_gym.apps.cli.tour import TourStep, guide
from agent_gym.apps.cli.workspace import check_writable, source_commit
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import DATABASE_VARIABLE, home, write_json
from agent_gym.core.registry import Ref, make, names
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import BASELINES, Comparison, compare, label_of
from agent_gym.evaluation.results import RESULTS, staged
from agent_gym.evaluation.saved import write_comparison
from agent_gym.evaluation.stepwise import EPISODE, TRADER, build_world
from agent_gym.evaluation.tearsheet import Sheet, write_sheet
from agent_gym.markets.bars import Bars
from agent_gym.markets.quality import QualityReport, check_bars
from agent_gym.markets.repair import RepairPolicy, refusal
from agent_gym.markets.source import open_market
from agent_gym.rollouts.play import EpisodeResult, play
from agent_gym.rollouts.sinks import ParquetSink

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")

MARKET, SUBJECT = "synthetic/btc-1h", Ref(use="rules/sma-cross")
YEAR_OF_HOURS = 8_760
STEPS, MANIFEST = "steps", "manifest.json"


@app.callback()
@writes("a backtest with its report, chart and steps")
def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for everything; by default results/demo, and the episode goes into the "
            "trajectory store too."
        ),
    ] = None,
    market: Annotated[str, typer.Option(help="Synthetic market to generate.")] = MARKET,
    bars: Annotated[int, typer.Option(min=100, help="Bars to generate.")] = YEAR_OF_HOURS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of market and agents.")] = 0,
    pause: Annotated[
        bool, typer.Option("--pause/--no-pause", help="Wait for Enter after each step.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Generate a market, check it, run all rules over it, record an episode, write a report.

    A guided tour: each step says what is shown, why, and the command that does it alone. Where
    nobody sits at the keyboard it does not wait.
    """
    clock = SystemClock()
    started = clock.monotonic_s()
    folder = out or home() / "demo"
    check_writable(folder)
    rules = [Ref(use=name) for name in names("agent") if name.startswith("rules/")]
    if SUBJECT not in rules:
        raise ConfigError(
            "the rule agents are not known",
            remedy="Install again with `pip install -e .`, so that names are announced",
        )
    plan = Plan(Ref(use=market, params={"n_bars": bars}), rules, seed)
    with progress(len(rules) + 4) as done, staged(folder) as stage:
        shown = run_plan(plan, stage, done)
    kept = keep(shown, seed) if out is None else None
    payload = shown.payload() | {"out": str(folder)}
    took = clock.monotonic_s() - started
    if as_json:
        emit(payload, as_json=True, view="")
    else:
        guide(tour(shown, folder, took, kept), pause=pause)


@dataclass(frozen=True, slots=True)
class Plan:
    """What the demo does; equal plans give equal files."""

    market: Ref
    rules: list[Ref]
    seed: int

    def command(self) -> list[str]:
        """Return the command that makes the same files."""
        words = ["agent-gym", "demo", "--market", self.market.use]
        return [*words, "--bars", str(self.market.params["n_bars"]), "--seed", str(self.seed)]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the demo found."""

    comparison: Comparison
    quality: QualityReport
    episode: EpisodeResult

    def payload(self) -> dict[str, Any]:
        """Return plain values; nothing depends on the clock, the machine or the folder."""
        return self.comparison.payload() | {
            "quality": self.quality.as_dict(),
            "episode": self.episode.as_dict(),
        }


def run_plan(plan: Plan, stage: Path, done: Callable[[str], None]) -> Shown:
    """Do everything and write it into a folder that is there."""
    bars = open_market(plan.market, Seeds(plan.seed))
    done("market")
    quality = check(bars, plan.market.use)
    done("check")
    config = BacktestConfig()
    engine = BacktestEngine(config, command=plan.command(), commit=source_commit())
    comparison = compare(engine, bars, SUBJECT, plan.seed, beside=plan.rules, done=done)
    episode = record(bars, config, plan.seed, stage / STEPS)
    done("steps")
    shown = Shown(comparison, quality, episode)
    sheet = sheet_from(comparison, title="Agent Gym demo")
    write_comparison(comparison, _for_picture(sheet), stage)
    write_sheet(stage / CHART, _for_picture(sheet))
    write_sheet(stage / REPORT, sheet)
    write_json(stage / MANIFEST, comparison.main.manifest.model_dump(mode="json"))
    write_json(stage / RESULTS, shown.payload())
    done("report")
    return shown


def check(bars: Bars, name: str) -> QualityReport:
    """Return the quality report of the market; a fault stops the demo."""
    report = check_bars(bars, source_name=name)
    problem = refusal(report, RepairPolicy())
    if problem is not None:
        raise problem
    return report


def record(bars: Bars, config: BacktestConfig, seed: int, folder: Path) -> EpisodeResult:
    """Play the same run step by step and keep every step, with what the agent saw."""
    team = Independent({TRADER: cast(Agent, make("agent", SUBJECT))})
    with ParquetSink(folder, observations=True) as sink:
        result = play(build_world(bars, config), team, EPISODE, Seeds(seed), (sink,))
        sink.finish_episode(result)
    return result


def keep(shown: Shown, seed: int) -> str | None:
    """Put the episode into the trajectory store, if its libraries are there; return its id."""
    if find_spec("sqlalchemy") is None:
        return None
    url = os.environ.get(DATABASE_VARIABLE) or None
    store = import_module("agent_gym.apps.cli.demo_episode")
    return str(store.keep_episode(shown.comparison.main, SUBJECT, seed, url))


def _for_picture(sheet: Sheet) -> Sheet:
    """Return the sheet with the usual baselines alone: nine curves cannot be told apart."""
    usual = dict.fromkeys((sheet.subject, *map(label_of, BASELINES)))
    return replace(sheet, equity={label: sheet.equity[label] for label in usual})


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on stderr and yield the call that moves it."""
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True) as bar:
        task = bar.add_task("market", total=total)

        def done(what: str) -> None:
            bar.update(task, advance=1, description=what)

        yield done


def tour(shown: Shown, folder: Path, took: float, kept: str | None) -> tuple[TourStep, ...]:
    """Return the steps of the tour over what the demo has found."""
    run = shown.comparison.main
    stored = f"\nin the store as {kept}: `agent-gym serve` replays it" if kept else ""
    market = f"{len(run.bars):,} bars of {run.manifest.data['period']}"
    return (
        TourStep(
            "A market",
            "Nothing here needs the network: markets are generated, and a seed is always the same.",
            Text(f"{market} ({run.manifest.data['origin']})"),
            "agent-gym market generate --preset btc-1h --bars 4000 --out hours.parquet",
        ),
        TourStep(
            "Its check",
            "Wrong data give right-looking results, so every market is checked before it is used.",
            Text(f"checked: {'no faults' if shown.quality.ok else shown.quality.counts}"),
            "agent-gym data check hours.parquet",
        ),
        TourStep(
            "All rules over it, after costs",
            "A figure alone says nothing: an agent stands beside doing nothing, holding and luck.",
            short_view(shown.comparison),
            f"agent-gym backtest --agent {shown.comparison.subject} --market {MARKET} --bars 4000",
        ),
        TourStep(
            "An episode, step by step",
            "What an agent saw, did and got is kept, to be replayed, judged and learned from.",
            Text(
                f"{shown.episode.steps:,} steps of {shown.comparison.subject} recorded; "
                f"equity hash {run.equity_hash}{stored}"
            ),
            "agent-gym nightly --print-summary",
        ),
        TourStep(
            "A page to pass on",
            "One file without network: curves, drawdowns, costs, and the command that made it.",
            Text(f"Look at {folder / REPORT} ({took:.1f} s in all)"),
            f"agent-gym report {folder} --open",
        ),
        TourStep(
            "Your turn",
            "A project of your own has an agent, a scenario, a test and a nightly that goes red.",
            Text("Write it, and its README tells the next commands."),
            "agent-gym init my_desk",
        ),
    )
