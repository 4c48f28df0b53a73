"""The tree of commands: of each only its help line is known until it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group
from typing_extensions import override

PACKAGE = "agent_gym.apps.cli"
WIDEST_HELP = 110


def load_command(name: str, line: str | None = None) -> Any:
    """Import the module of a command and return the command with all its options.

    Args:
        name: Of the command, and of its module.
        line: Its help, if the module does not tell more.
    """
    holder = typer.Typer()
    module = import_module(f"{PACKAGE}.{name.replace('-', '_')}")
    holder.add_typer(module.app, name=name)
    command = get_group(holder).commands[name]
    command.help = command.help or line
    return command


def load_whole(name: str, line: str | None = None) -> Any:
    """Import a command and all parts of it, as whoever lists every option needs them."""
    command = load_command(name, line)
    if isinstance(command, LazyParts):
        for part in command.places:
            command.load(part)
    return command


class LazyParts(TyperGroup):
    """A command of parts, each of which is imported when it is called and no sooner.

    Attributes:
        places: Module and function of each part, such as ``marl_train:train``.
    """

    places: ClassVar[Mapping[str, str]] = {}

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, line, rest = super().resolve_command(ctx, args)
        return name, line if name is None else self.load(name), rest

    def load(self, name: str) -> Any:
        """Import a part, put it in the place of its help line, and return it."""
        module, _, function = self.places[name].partition(":")
        holder = typer.Typer(add_completion=False)
        holder.command(name)(getattr(import_module(f"{PACKAGE}.{module}"), function))
        self.commands[name] = get_command(holder)
        return self.commands[name]


class LazyGroup(TyperGroup):
    """The root, which imports a command when it is called and no sooner.

    Help and the list for a shell's completion need the help lines alone. Names that complete an
    option, such as those of agents, come from the registry without the command either.
    """

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, line, rest = super().resolve_command(ctx, args)
        if name is None or line is None:
            return name, line, rest
        if ctx.resilient_parsing:  # a shell asks what could come next
            completion = import_module(f"{PACKAGE}.completion")
            source = completion.known_names(name, rest)
            if source is not None:
                return name, completion.named(source, lambda: load_command(name, line.help)), []
        import_module(f"{PACKAGE}.kernel_notice").listen()
        return name, load_command(name, line.help), rest


def program(commands: Mapping[str, str], root: Any) -> typer.Typer:
    """Return the program: its own options, and the help line of each command.

    Its help is plain text: the library that draws boxes takes longer to import than all the rest.
    """
    made = typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": WIDEST_HELP},
    )
    made.callback()(root)
    add_lines(made, commands)
    return made


def add_lines(made: typer.Typer, lines: Mapping[str, str]) -> None:
    """Add the help line of each command, which stands in for it until it is called."""
    for name, text in lines.items():
        made.command(name, help=text)(_not_loaded)


def _not_loaded() -> None:
    """Stand in for a command whose module is not imported yet."""
