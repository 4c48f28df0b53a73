"""Words that the command line cannot read become an error of the same shape as any other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer

from agent_gym.apps.cli.tree import load_command
from agent_gym.core.errors import ConfigError

PROGRAM = "agent-gym"


def refuse_empty(words: Sequence[str]) -> None:
    """Raise ConfigError for an empty word: most often a shell variable that is not set.

    An empty path would otherwise mean the current folder, and results would be written there.
    """
    for place, word in enumerate(words):
        if word and not re.fullmatch(r"--[^=]+=", word):
            continue
        option = word or (words[place - 1] if place else "")
        raise ConfigError(
            "an argument is empty",
            where=option.rstrip("=") if option.startswith("-") else f"word {place + 1}",
            found="''",
            expected="a value",
            remedy="Give a value, or leave the option out; is a shell variable not set?",
        )


def usage_error(error: typer.TyperException, words: Sequence[str]) -> ConfigError | None:
    """Return what typer found wrong as an error of ours, None if it has only shown its help.

    Typer makes only the root of its errors public, so they are told apart by what they carry.
    """
    carried: Any = error
    context = getattr(carried, "ctx", None)
    command = _named(words) if context is None else str(context.command_path)
    text = _sentence(str(getattr(carried, "message", error)))
    parameter = getattr(carried, "param", None)
    if parameter is not None:
        return _bad_value(carried, command, words)
    if not text:
        return None
    if getattr(carried, "option_name", None) is not None:
        return _bad_option(carried, command, text, group=_commands(context) is not None)
    what, _, hint = text.partition(". ")
    return ConfigError(
        what,
        where=command,
        found=_quoted(what),
        expected=_commands(context),
        remedy=f"{hint} " * bool(hint) + _help(command),
    )


def _bad_value(carried: Any, command: str, words: Sequence[str]) -> ConfigError:
    """Return the error for an option or argument that is missing or has a value it cannot take."""
    parameter = carried.param
    names = [str(name) for name in parameter.opts]
    option = parameter.param_type_name == "option"
    noun = f"option {names[0]}" if option else f"argument {names[0].upper()}"
    meaning = getattr(parameter, "help", None)
    if hasattr(carried, "param_type"):
        return ConfigError(
            f"the {noun} is missing",
            where=command,
            expected=meaning,
            remedy=_help(command),
        )
    return ConfigError(
        f"the {noun} does not take this value",
        where=command,
        found=_given(words, names),
        expected=_sentence(str(carried.message)),
        remedy=_help(command),
    )


def _bad_option(carried: Any, command: str, text: str, *, group: bool) -> ConfigError:
    """Return the error for an option that does not exist or is used wrongly.

    Args:
        carried: What typer found.
        command: Where.
        text: What typer says.
        group: Whether further commands belong behind this one, and the option behind them.
    """
    name = str(carried.option_name)
    remedy = _help(command)
    known = sorted(getattr(carried, "possibilities", None) or ())
    longer = [each for each in known if each.startswith(name)]  # --fee means --fee-bps, not --seed
    near = longer or get_close_matches(name, known, n=1, cutoff=0.0)
    if name == "--json" and group:
        remedy = f"Write it after the whole command, such as `{command} ... --json`. {remedy}"
    elif near and name != "--json":
        remedy = f"Did you mean {near[0]}? {remedy}"
    return ConfigError(text, where=command, found=name, remedy=remedy)


def _named(words: Sequence[str]) -> str:
    """Return the command that the first words name, for errors that do not say where they are."""
    path, known = [PROGRAM], None
    for word in words:
        if word.startswith("-"):
            break
        found = load_command(word) if known is None else known.get(word)
        if found is None:
            break
        path.append(word)
        known = getattr(found, "commands", {})
    return " ".join(path)


def _given(words: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the value that an option was given; of one given twice the last counts."""
    found = None
    for word, following in zip(words, [*words[1:], None], strict=True):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else following
    return None if found is None else repr(found)


def _commands(context: Any) -> str | None:
    known = sorted(getattr(getattr(context, "command", None), "commands", ()))
    return f"one of {', '.join(known)}" if known else None


def _quoted(text: str) -> str | None:
    inside = re.search(r"'(.*)'|\(([^()]*)\)$", text)
    return None if inside is None else repr(inside[1] or inside[2])


def _sentence(text: str) -> str:
    """Return a message as our errors write them: a small letter first, no full stop at the end."""
    text = " ".join(text.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _help(command: str) -> str:
    return f"`{command} --help` lists what can be said"
