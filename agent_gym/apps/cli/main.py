"""``agent-gym``: every command is a module that is imported only when it is called."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym import __version__
from agent_gym.apps.cli.exit_codes import EXIT_OK, EXIT_STOPPED, EXIT_USAGE
from agent_gym.apps.cli.tree import program
from agent_gym.apps.cli.usage import refuse_empty, usage_error
from agent_gym.core.errors import AgentGymError, ConfigError, StoreError

COMMANDS = {
    "agents": "The agents that can be named, and their parameters.",
    "audit": "Look for what is silently broken in an agent.",
    "backtest": "Run an agent over a market and report it beside baselines.",
    "benchmark": "Play agents on snapshots and score them against the attainable optimum.",
    "blobs": "Step files and models by their hash, on this disk or a server: stats, verify, gc.",
    "cleanup": "What could go from the folder of results, and how much.",
    "compare": "Two recorded runs, metric by metric.",
    "data": "Fetch, import, check and describe market data.",
    "db": "The trajectory store: backup, restore, migrate, prune, stats; SQLite or PostgreSQL.",
    "demo": "A backtest from data to report, end to end.",
    "desk": "The Core Agent: its log, its model, one signal through it.",
    "doctor": "What this machine has, and what is missing.",
    "evaluate": "Judge agents by a protocol, with intervals and a verdict.",
    "experiment": "Trainings that differ in one thing, compared over several seeds.",
    "export": "A trained model as a script that makes it again, as ONNX or as a zip.",
    "gate": "How sure the regression gate is: false alarms and power.",
    "harness": "The whole loop: play, record, train, judge on sealed snapshots, serve the best.",
    "init": "A small project of your own: an agent, a scenario, a suite, a test, a nightly.",
    "judge": "Score trajectories of a group against each other; how far a judge can be trusted.",
    "llm": "Language models that run on this machine.",
    "market": "Generate synthetic markets and measure how real they look.",
    "marl": "Teams: train, compare and diagnose them, record their battles and watch them.",
    "mcp": "Markets, backtests and sessions as MCP tools, for agents of any kind.",
    "nightly": "Play the suite, compare with the baseline, report.",
    "oracle": "What a market with a known law lets anyone earn, after costs.",
    "promotion": "How sure the promotion gate and the rollout's monitor are.",
    "registry": "Signed models: list, verify, promote, roll back, history, keys, audit.",
    "replay": "Play one seed of a recorded run again.",
    "report": "The page of a run of any kind: where it is, or open it.",
    "results": "Tables, pages and videos from stored training runs.",
    "run": "Play a suite of scenarios and report it.",
    "sandbox": "A simulated Binance for bots that exist already, unchanged.",
    "serve": "The loop as a service: living agents, trainings and models over HTTP.",
    "snapshot": "Benchmark snapshots: generate, verify, show.",
    "tokens": "Who may call the service: add, list, revoke.",
    "train": "Train an agent with Stable-Baselines3, several seeds at once.",
    "trials": "The trials that have been registered.",
    "umc": "The active-inference trader: backtest, explain, stress, gates, ablation, train.",
    "verify": "Is the whole loop in order, and what is to be done next?",
    "watch": "One episode of a trained model as a video.",
}


PROGRAM = "agent-gym"
PROJECT_VARIABLE, PROJECT_FILE, MARK = "AGENT_GYM_PROJECT", "pyproject.toml", b"[tool.agent-gym]"

_STOPPED = AgentGymError(
    "stopped before the end",
    found="Ctrl-C, or a request to end (SIGTERM)",
    remedy="Run it again; no file was left half-written",
)


def build() -> typer.Typer:
    """Return the program; a command is imported when it is called."""
    return program(COMMANDS, _root)


def main() -> None:
    """Run the command line; whatever goes wrong becomes a message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name that the terminal cannot show must not end the run.
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:]
    as_json = "--json" in words
    with _cleanly_ended():
        code = run(words, as_json=as_json)
    sys.exit(code)


def report(error: AgentGymError, *, as_json: bool) -> int:
    """Print an error and return its exit code; what draws it is imported only now."""
    code: int = import_module("agent_gym.apps.cli.output").report(error, as_json=as_json)
    return code


def enter_project(folder: Path) -> None:
    """Let names of the project that this folder is be found, here and in every process of a run.

    Only a ``pyproject.toml`` with a table [tool.agent-gym] is such a project: nobody's code is run
    because somebody stands in its folder.
    """
    file = folder / PROJECT_FILE
    if PROJECT_VARIABLE in os.environ or not file.is_file():
        return
    if MARK in file.read_bytes():
        os.environ[PROJECT_VARIABLE] = str(folder)


def run(words: Sequence[str], *, as_json: bool) -> int:
    """Run one command and return its exit code."""
    try:
        refuse_empty(words)
        enter_project(Path.cwd())
        asked = list(words) or ["--help"]  # nothing asked for: the help, but not a success
        code: Any = build()(args=asked, prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        problem = usage_error(error, words)
        return EXIT_USAGE if problem is None else report(problem, as_json=as_json)
    except AgentGymError as error:
        return report(error, as_json=as_json)
    except ModuleNotFoundError as error:
        return report(_not_installed(error), as_json=as_json)
    except MemoryError as error:
        return report(_too_large(error), as_json=as_json)
    except OSError as error:
        return report(_not_stored(error), as_json=as_json)
    except KeyboardInterrupt:
        code = EXIT_STOPPED
    if code == EXIT_STOPPED:
        report(_STOPPED, as_json=as_json)
    if not words:
        return EXIT_USAGE
    return code if isinstance(code, int) else EXIT_OK


@contextmanager
def _cleanly_ended() -> Iterator[None]:
    """Let a polite request to end clear up half-written files, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _not_installed(error: ModuleNotFoundError) -> ConfigError:
    return ConfigError(
        "this command needs a library that is not installed",
        found=error.name,
        remedy="Training needs `pip install 'agent-gym[rl]'`; `agent-gym doctor` tells what is "
        "missing",
    )


def _too_large(error: MemoryError) -> AgentGymError:
    return AgentGymError(
        "this needs more memory than there is",
        found=str(error) or None,
        remedy="Ask for fewer bars or a shorter span",
    )


def _not_stored(error: OSError) -> StoreError:
    return StoreError(
        "a file could not be read or written",
        where=None if error.filename is None else os.fspath(error.filename),
        found=error.strerror or str(error),
        remedy="Free some space, or choose another folder",
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agent-gym {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The offline proving ground for trading agents."""
