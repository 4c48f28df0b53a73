"""Write docs/reference from the code: commands, everything registered, settings.

``python -m scripts.make_reference`` writes the pages; ``--check`` says which of them are out of
date. A test does the same, so a page that differs from the code does not get in.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from agent_gym.apps.cli.main import COMMANDS
from agent_gym.apps.cli.tree import load_whole
from agent_gym.core.files import write_text
from agent_gym.core.registry import Config, Kind, entry
from scripts.reference_words import Fields, cell, first_words, plain

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Made by scripts/make_reference.py: do not edit. -->\n\n"
HIDDEN = ("--help", "--install-completion", "--show-completion")
VALUES = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
KINDS: dict[Kind, tuple[str, str]] = {
    "agent": ("Agents", "Everything that decides. [How to write one](../agents.md)."),
    "market": ("Markets", "Where bars come from. [Which to take](../markets.md)."),
    "scenario": ("Scenarios", "What the [nightly](../scenarios.md) plays."),
    "world": ("Worlds", "What a role sees, may do and is paid: [doors](../doors.md)."),
    "team": ("Teams", "Several roles at once."),
    "check": ("Checks", "What the [audit](../audit.md) looks for."),
    "desk": ("Desks", "The [signal desk](../core_agent.md)."),
    "tier": ("Tiers", "Models of the market inside [UMC](../umc.md)."),
    "crowd": ("Crowds", "Who moves the price in the world `reflexive`."),
    "learner": ("Learners", "Parts that learn within an agent."),
}
SETTINGS: dict[str, tuple[str, ...]] = {
    "Backtests": (
        "agent_gym.evaluation.config.BacktestConfig",
        "agent_gym.exchange.costs.Costs",
        "agent_gym.exchange.costs.AccountRules",
        "agent_gym.exchange.risk.chain.RiskConfig",
    ),
    "Market data": (
        "agent_gym.markets.readers.request.ReadRequest",
        "agent_gym.markets.snapshot.config.SnapshotConfig",
    ),
    "The nightly": (
        "agent_gym.evaluation.scenarios.suite.Suite",
        "agent_gym.evaluation.gate.policy.GatePolicy",
    ),
    "Training": (
        "agent_gym.training.rl.config.TrainerConfig",
        "agent_gym.training.rl.experiment_config.ExperimentConfig",
        "agent_gym.agents.sb3.config.PPOConfig",
        "agent_gym.agents.sb3.config.A2CConfig",
        "agent_gym.agents.sb3.config.SACConfig",
        "agent_gym.agents.sb3.config.TD3Config",
        "agent_gym.training.grpo.config.GRPOConfig",
        "agent_gym.training.marl.config.TeamTrainConfig",
        "agent_gym.training.umc.config.UMCTrainConfig",
        "agent_gym.training.desk.config.RetrainingConfig",
    ),
    "The loop and the service": (
        "agent_gym.pipeline.harness.asked.HarnessOptions",
        "agent_gym.apps.api.settings.ServiceSettings",
        "agent_gym.pipeline.cleanup.plan.CleanupRules",
    ),
    "Sandbox and cage": (
        "agent_gym.apps.sandbox.settings.SandboxSettings",
        "agent_gym.agents.doors.isolation.Isolation",
    ),
}


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    made = {"commands.md": _commands, "registered.md": _registered, "settings.md": _settings}
    return {name: NOTE + "\n".join(lines()).rstrip() + "\n" for name, lines in made.items()}


def outdated(folder: Path = FOLDER) -> list[str]:
    """Return the pages that differ from the code."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def _commands() -> Iterator[str]:
    yield from (
        "# Commands and options",
        "",
        "Every command with all it takes. What each is for, with examples, is in"
        " [command line](../cli.md). An option that may be given several times says so.",
        "",
        *(f"- [{name}](#{name}): {cell(line)}" for name, line in COMMANDS.items()),
        "",
    )
    for name, line in COMMANDS.items():
        command = load_whole(name, line)
        inner = getattr(command, "commands", {})
        yield from (f"## {name}", "", cell(first_words(command.help or line)), "")
        if not inner or getattr(command, "invoke_without_command", False):
            yield from _options(command.params)
        for sub, found in _inner(inner):
            yield from (f"### {name} {sub}", "", cell(first_words(found.help or "")), "")
            yield from _options(found.params)


def _inner(commands: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all commands below one, each by the words that call it."""
    for name, found in sorted(commands.items()):
        deeper = getattr(found, "commands", None)
        if deeper is None:
            yield name, found
        else:
            yield from ((f"{name} {words}", one) for words, one in _inner(deeper))


def _options(params: Iterable[Any]) -> Iterator[str]:
    shown = [
        param
        for param in params
        if not getattr(param, "hidden", False) and not {*param.opts} & {*HIDDEN}
    ]
    rows = [f"| {_called(param)} | {_meaning(param)} |" for param in shown]
    if rows:
        yield from ("| option | meaning |", "|---|---|", *rows, "")


def _called(param: Any) -> str:
    if not hasattr(param, "is_flag"):
        many = "..." if param.nargs == -1 else ""
        return cell(f"`{(param.metavar or param.name).upper()}`{many}")
    names = " ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    return names if param.is_flag else f"{names} {_value(param)}"


def _value(param: Any) -> str:
    if param.metavar:
        return cell(str(param.metavar))
    kind = param.type_descriptor.annotation
    while get_args(kind) and get_origin(kind) is not Literal:
        kind = get_args(kind)[0]  # of a list, or of what may be left out
    if get_origin(kind) is Literal:
        return cell("|".join(map(str, get_args(kind))))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return cell("|".join(str(one.value) for one in kind))
    return VALUES.get(kind, "VALUE")


def _meaning(param: Any) -> str:
    text = cell(re.sub(r"\s+", " ", param.help or "").strip())
    told = param.show_default and param.default not in (None, False, (), [])
    notes = [
        "required" if param.required else "",
        "may be repeated" if getattr(param, "multiple", False) and "repeat" not in text else "",
        f"default `{plain(param.default)}`" if told else "",
    ]
    said = ", ".join(note for note in notes if note)
    return f"{text} ({said})" if said else text


def _registered() -> Iterator[str]:
    yield from (
        "# Everything that has a name",
        "",
        "What can be named on the command line and in files, with its parameters. A file says"
        " `{use: NAME, params: {...}}`. Plug-ins of yours add to these: `agent-gym agents list`"
        " shows what is installed.",
        "",
    )
    fields = Fields()
    for kind, (title, text) in KINDS.items():
        yield from (f"## {title}", "", text, "")
        shipped = {
            point.name
            for point in entry_points(group=f"agent_gym.{kind}")
            if point.value.startswith("agent_gym.")
        }
        for name in sorted(shipped):
            found = entry(kind, name)
            about = first_words(inspect.getdoc(found.factory) or found.config.__doc__ or "")
            yield from (f"### {name}", "", cell(about), "", *fields.table(found.config), "")
    yield from fields.parts()


def _settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "The models behind files and options: every field, its type and limits, its default."
        " Unknown fields, wrong types and numbers that are not finite are refused.",
        "",
    )
    fields = Fields()
    for title, names in SETTINGS.items():
        yield from (f"## {title}", "")
        for dotted in names:
            yield from fields.section(_model(dotted), dotted)
    yield from fields.parts()


def _model(dotted: str) -> type[Config]:
    module, _, name = dotted.rpartition(".")
    found: type[Config] = getattr(import_module(module), name)
    return found


def main(words: list[str]) -> int:
    """Write the pages, or say which are out of date."""
    if words == ["--check"]:
        late = outdated()
        sys.stdout.write("".join(f"out of date: docs/reference/{name}\n" for name in late))
        return 1 if late else 0
    for name, text in pages().items():
        write_text(FOLDER / name, text)
        sys.stdout.write(f"{FOLDER / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
