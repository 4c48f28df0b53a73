"""``--dry-run``: a command says what it would do and does nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.config_options import words_of
from agent_gym.apps.cli.output import emit, table
from agent_gym.core.files import home
from agent_gym.core.registry import Config

DRY_RUN: Any = typer.Option("--dry-run", help="Say what would be done, and do nothing.")
UNTOLD = ("as_json", "url")  # how it is printed; an address may hold a password


def say_plan(what: str, planned: dict[str, Any], *, as_json: bool) -> None:
    """Print what would be done; ``done`` is false in the JSON of every dry run."""
    rows: list[tuple[object, ...]] = [(name, str(value)) for name, value in planned.items()]
    view = table(f"Dry run: this {what}, nothing was done", ("what", "how"), rows)
    emit({"dry_run": True, "done": False, "plan": planned}, as_json=as_json, view=view)


def writes(
    what: str, plan: Callable[..., dict[str, Any]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command that writes an option ``--dry-run``.

    It goes right above the function, below what makes options from configs: options are then read
    and checked by the same code, and the work is left out.

    Args:
        what: What it would write.
        plan: Is given what the command would be; refuses what that refuses before it begins, and
            returns what more there is to tell.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def run(*, dry_run: bool = False, **values: Any) -> None:
            inner = next((v for v in values.values() if isinstance(v, typer.Context)), None)
            if not dry_run or (inner is not None and inner.invoked_subcommand is not None):
                command(**values)
                return
            planned = {"what": what, "folder of results": str(home().absolute())}
            said = planned | _given(values) | ({} if plan is None else plan(**values))
            say_plan("would be written", said, as_json=bool(values.get("as_json", False)))

        option: Any = Annotated[bool, DRY_RUN]
        added = inspect.Parameter(
            "dry_run", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option
        )
        kept = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        wrapped: Any = run
        wrapped.__signature__ = inspect.Signature([*kept, added])
        run.__annotations__ = {}
        return run

    return decorate


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said, defaults left out."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Config):
            words = words_of(value)
            found |= {f"options ({name})": " ".join(words)} if words else {}
        elif name not in UNTOLD and not isinstance(value, typer.Context) and value not in _NOTHING:
            found[name] = _plain(value)
    return found


_NOTHING: tuple[Any, ...] = (None, False, [], (), "")


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value
