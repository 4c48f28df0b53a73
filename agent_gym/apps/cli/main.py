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
from typing import Annotated, Any

import typer

from agent_gym import __version__
from agent_gym.apps.cli.output import EXIT_OK, EXIT_STOPPED, EXIT_USAGE, report
from agent_gym.apps.cli.usage import refuse_empty, usage_error
from agent_gym.core.errors import AgentGymError, ConfigError, StoreError

COMMANDS = {
    "agents": "The agents that can be named, and their parameters.",
    "audit": "Look for what is silently broken in an agent.",
    "backtest": "Run an agent over a market and report it beside baselines.",
    "benchmark": "Play agents on snapshots and score them against the attainable optimum.",
    "cleanup": "What could go from the folder of results, and how much.",
    "compare": "Two recorded runs, metric by metric.",
    "data": "Fetch, import, check and describe market data.",
    "demo": "A backtest from data to report, end to end.",
    "desk": "The Core Agent: its log, its model, one signal through it.",
    "doctor": "What this machine has, and what is missing.",
    "evaluate": "Judge agents by a protocol, with intervals and a verdict.",
    "experiment": "Trainings that differ in one thing, compared over several seeds.",
    "export": "A trained model as a script that makes it again, as ONNX or as a zip.",
    "gate": "How sure the regression gate is: false alarms and power.",
    "harness": "The whole loop: play, record, train, judge on sealed snapshots, serve the best.",
    "judge": "Score trajectories of a group against each other; how far a judge can be trusted.",
    "llm": "Language models that run on this machine.",
    "market": "Generate synthetic markets and measure how real they look.",
    "marl": "Teams: train, compare and diagnose them, record their battles and watch them.",
    "nightly": "Play the suite, compare with the baseline, report.",
    "oracle": "What a market with a known law lets anyone earn, after costs.",
    "promotion": "How sure the promotion gate and the rollout's monitor are.",
    "registry": "Signed models: list, verify, promote, roll back, history.",
    "replay": "Play one seed of a recorded run again.",
    "results": "Tables, pages and videos from stored training runs.",
    "run": "Play a suite of scenarios and report it.",
    "serve": "The loop as a service: living agents, trainings and models over HTTP.",
    "snapshot": "Benchmark snapshots: generate, verify, show.",
    "tokens": "Who may call the service: add, list, revoke.",
    "train": "Train an agent with Stable-Baselines3, several seeds at once.",
    "trials": "The trials that have been registered.",
    "umc": "The active-inference trader: backtest, explain, stress, gates, ablation, train.",
    "verify": "Is the whole loop in order, and what is to be done next?",
    "watch": "One episode of a trained model as a video.",
}


_STOPPED = AgentGymError(
    "stopped before the end",
    found="Ctrl-C, or a request to end (SIGTERM)",
    remedy="Run it again; no file was left half-written",
)


def build(called: str | None) -> typer.Typer:
    """Return the program: the called command in full, of the others only their help line."""
    program = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    program.callback()(_root)
    for name, text in COMMANDS.items():
        if name == called:
            program.add_typer(import_module(f"agent_gym.apps.cli.{name}").app, name=name, help=text)
        else:
            program.add_typer(typer.Typer(callback=_root), name=name, help=text)
    return program


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


def run(words: Sequence[str], *, as_json: bool) -> int:
    """Run one command and return its exit code."""
    named = [word for word in words if not word.startswith("-")]
    try:
        refuse_empty(words)
        program: Any = build(named[0] if named else None)
        code = program(args=list(words), prog_name="agent-gym", standalone_mode=False)
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
