"""``agent-gym init``: a small commented project of the user's own."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.text import Text

from agent_gym.apps.cli.known_names import CONFIGS
from agent_gym.apps.cli.output import emit, screen, table
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import write_text
from agent_gym.core.registry import names

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)

FILES = {
    "README.md": "what is here, and the next commands",
    "pyproject.toml": "where names are announced",
    "suite.yaml": "what is played every night, and by whom",
    "{package}/agent.py": "an agent of your own",
    "{package}/scenario.py": "a scenario of your own",
    "tests/test_agent.py": "the contract of agents, for yours",
    ".github/workflows/nightly.yml": "the nightly in CI",
    ".gitignore": "results are not committed",
}
"""Each file, and what it is for; its text lies under its last name in the shipped configs."""


@app.callback()
def init(
    folder: Annotated[Path, typer.Argument(help="New or empty folder.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the Python package (default: that of the folder).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a project with an agent, a scenario, a suite, a test and a nightly for CI.

    Example: agent-gym init my_desk && cd my_desk && agent-gym backtest --agent my_desk/trend
    --market synthetic/btc-1h
    """
    package = package_name(folder, name)
    check_empty(folder)
    check_writable(folder, "FOLDER")
    texts = project_texts(package)
    if not dry_run:
        for path, text in texts.items():
            write_text(folder / path, text)
    steps = [
        f"cd {quote(str(folder))}",
        f"agent-gym backtest --agent {package}/trend --market synthetic/btc-1h --bars 4000",
        'agent-gym nightly --scenarios suite.yaml --update-baseline --reason "first baseline"',
    ]
    payload = {
        "folder": str(folder),
        "package": package,
        "files": sorted(texts),
        "written": not dry_run,
        "next_steps": steps,
    }
    title = f"{'Would be written' if dry_run else 'Written'} to {folder}"
    told = {path.format(package=package): about for path, about in FILES.items()}
    rows: list[tuple[object, ...]] = [(path, told.get(path, "")) for path in texts]
    emit(payload, as_json=as_json, view=table(title, ("file", "what it is"), rows))
    if not as_json:
        screen.print(Text("\n  $ ".join(("Next:", *steps))), soft_wrap=True)


def package_name(folder: Path, said: str | None) -> str:
    """Return the name of the package; one that Python or the registry has already is refused."""
    name = said or re.sub(r"\W+", "_", folder.absolute().name.lower(), flags=re.ASCII).strip("_")
    usable = name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
    known = {each.partition("/")[0] for each in names("agent")}
    if not usable or name in sys.stdlib_module_names or name in known | {"agent_gym", "tests"}:
        raise ConfigError(
            "a package cannot have this name",
            where="FOLDER" if said is None else "--name",
            found=repr(name),
            expected="letters, digits and underscores, and no name that is taken",
            remedy="Give another name, such as --name my_desk",
        )
    return name


def check_empty(folder: Path) -> None:
    """Raise ConfigError if files of somebody's would be mixed with ours; a .git may be there."""
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in found if name != ".git"]
    if others:
        raise ConfigError(
            "this folder is not empty",
            where=str(folder),
            found=", ".join(others[:3]),
            expected="a new or empty folder",
            remedy="Name another folder",
        )


def project_texts(package: str) -> dict[str, str]:
    """Return the text of each file of a project by its path."""
    found = {f"{package}/__init__.py": f'"""Agents and scenarios of {package}."""\n'}
    for path in FILES:
        source = CONFIGS / "project" / f"{Path(path).name.removeprefix('.')}.txt"
        text = source.read_text(encoding="utf-8")
        found[path.format(package=package)] = text.format(package=package)
    return dict(sorted(found.items()))
