"""Names for a shell's completion, from where they are announced, without importing what they name.

A shell waits at every press of TAB, so nothing here may import torch, kernels or data frames.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand
from typer.main import get_command
from typing_extensions import override

from agent_gym.apps.cli.known_names import (
    agents,
    agents_and_teams,
    experiments,
    maps,
    markets,
    presets,
    scenarios,
    trainings,
)

Source: TypeAlias = Callable[[], tuple[str, ...]]

OPTIONS: dict[str, Source] = {
    "--agent": agents,
    "--market": markets,
    "--map": maps,
    "--preset": presets,
}
"""Options that mean the same in every command."""

OWN_OPTIONS: dict[tuple[str, str], Source] = {
    ("train", "--config"): trainings,
}

ARGUMENTS: dict[tuple[str, ...], Source] = {
    ("agents", "show"): agents,
    ("audit",): agents_and_teams,
    ("evaluate",): agents,
    ("experiment", "run"): experiments,
    ("experiment", "show"): experiments,
    ("replay", "latest"): scenarios,
    ("replay", "baseline"): scenarios,
}
"""What follows these words is one of these names."""


def known_names(command: str, rest: Sequence[str]) -> Source | None:
    """Return where the next word of a command line is looked up, None if only the command knows.

    Example:
        >>> known_names("backtest", ["--agent"]) is agents
        True
        >>> known_names("backtest", ["--seed"]) is None
        True
    """
    last = rest[-1] if rest else ""
    if last.startswith("-"):
        return OWN_OPTIONS.get((command, last)) or OPTIONS.get(last)
    return ARGUMENTS.get((command, *rest))


class Named(TyperCommand):
    """A command of which only the names that come next are known; options load the real one."""

    load: Callable[[], Any]

    @override
    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        real = self.load()
        with real.make_context(self.name, [], parent=ctx.parent, resilient_parsing=True) as own:
            return real.shell_complete(own, incomplete)


def named(source: Source, load: Callable[[], Any]) -> Any:
    """Return a command that offers names for its next word, and for its options asks the real one.

    Args:
        source: Where the names are.
        load: Import the real command.
    """

    def offered(incomplete: str) -> list[str]:
        return [name for name in source() if name.startswith(incomplete)]

    def stand_in(
        word: Annotated[str | None, typer.Argument(autocompletion=offered)] = None,
    ) -> None:
        """Stand in for a command while a shell asks."""

    made = typer.Typer(add_completion=False)
    made.command(cls=Named)(stand_in)
    command: Any = get_command(made)
    command.load = load
    return command
