"""``--executor`` and ``--address``: where the jobs of a command are done."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from agent_gym.rollouts.choice import executing
from agent_gym.rollouts.hands import ADDRESS_VARIABLE, EXECUTOR_VARIABLE

PANEL = "Where it runs; changes no number"
EXECUTOR: Any = typer.Option(
    "--executor",
    metavar="local|ray",
    envvar=EXECUTOR_VARIABLE,
    help="Processes of this machine (local), or of a Ray cluster.",
    rich_help_panel=PANEL,
)
ADDRESS: Any = typer.Option(
    "--address",
    metavar="HOST:PORT",
    envvar=ADDRESS_VARIABLE,
    help="The head of the cluster, or auto; default: a cluster of this machine alone.",
    rich_help_panel=PANEL,
)


def on_executor(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command whose work is done in jobs the options that say where.

    It goes above whatever makes other options. The choice holds while the command runs.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def run(*, executor: str | None = None, address: str | None = None, **values: Any) -> None:
        with executing(executor, address):
            command(**values)

    kept = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    wrapped: Any = run
    wrapped.__signature__ = inspect.Signature(
        [*kept, _parameter("executor", EXECUTOR), _parameter("address", ADDRESS)]
    )
    run.__annotations__ = {}
    return run


def _parameter(name: str, option: Any) -> inspect.Parameter:
    annotated: Any = Annotated[str | None, option]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=annotated)
