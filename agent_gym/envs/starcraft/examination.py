"""What StarCraft II needs on this machine: what is there, what is missing, and the exact steps."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import ConfigError
from agent_gym.envs.starcraft.link import Link
from agent_gym.envs.starcraft.messages import PROTOCOL, GameLost, Probed

PYTHON_VARIABLE = "AGENT_GYM_SC2_PYTHON"
GAME_VARIABLE = "SC2PATH"
DEFAULT_GAME = Path("~/StarCraftII")
EXECUTABLE = "SC2_x64"
MAP_NAMES = ("3m", "8m", "2s_vs_1sc", "2s3z", "3s_vs_5z")
"""The maps that SMAC and our own engine both have."""
PROBE_S = 60.0
SMAC_STEPS = (
    "With Python 3.8 to 3.10: `python3.10 -m venv ~/sc2-venv`, `~/sc2-venv/bin/pip install "
    "'protobuf<3.21' 'pysc2>=3'`, then `~/sc2-venv/bin/pip install` the sources of SMAC "
    "(repository oxwhirl/smac; the package that is named smac is another project), and "
    f"`export {PYTHON_VARIABLE}=~/sc2-venv/bin/python`"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was looked at; ``remedy`` is empty where nothing is missing."""

    name: str
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where everything is."""

    python: Path
    game: Path


def examine() -> list[Fact]:
    """Look at this machine, as the environment variables describe it."""
    game = game_folder(None)
    return [_game(game), _executable(game), _maps(game, MAP_NAMES), _interpreter(game)]


def located(python: Path | None, game: Path | None, map_name: str) -> Installation:
    """Return where everything is that a battle on a map needs.

    Raises:
        ConfigError: Something is missing; it says which step to do.
    """
    place, program = game_folder(game), python_path(python)
    for fact in (_game(place), _executable(place), _maps(place, (map_name,)), _program(program)):
        if fact.remedy:
            raise ConfigError(
                "StarCraft II is not set up", where=fact.name, found=fact.found, remedy=fact.remedy
            )
    assert program is not None
    return Installation(program, place)


def game_folder(chosen: Path | None) -> Path:
    """Return the folder of the game: the chosen one, SC2PATH, or where it is usually put."""
    told = os.environ.get(GAME_VARIABLE)
    return (chosen or (Path(told) if told else DEFAULT_GAME)).expanduser().absolute()


def python_path(chosen: Path | None) -> Path | None:
    """Return the other interpreter, None if nobody named one; a link to it is not followed."""
    told = os.environ.get(PYTHON_VARIABLE)
    path = chosen or (Path(told) if told else None)
    return None if path is None else path.expanduser().absolute()


def _game(game: Path) -> Fact:
    name = "starcraft game"
    if game.is_dir():
        return Fact(name, str(game))
    return Fact(
        name,
        f"no folder {game}",
        "Unpack Blizzard's Linux package of StarCraft II (4.10 is the last one) into "
        f"{DEFAULT_GAME}, or set {GAME_VARIABLE} to the folder that holds Versions and Maps",
    )


def _executable(game: Path) -> Fact:
    name = "starcraft executable"
    found = sorted(game.glob(f"Versions/Base*/{EXECUTABLE}"))
    usable = [path for path in found if os.access(path, os.X_OK)]
    if usable:
        return Fact(name, ", ".join(str(path.relative_to(game)) for path in usable))
    if found:
        return Fact(name, f"{found[-1]} cannot be run", f"`chmod +x {found[-1]}`")
    return Fact(
        name,
        f"no {game}/Versions/Base*/{EXECUTABLE}",
        f"Unpack the Linux package of the game again, so that {game}/Versions is in it",
    )


def _maps(game: Path, wanted: tuple[str, ...]) -> Fact:
    name, folder = "starcraft maps", game / "Maps" / "SMAC_Maps"
    missing = [each for each in wanted if not (folder / f"{each}.SC2Map").is_file()]
    if not missing:
        return Fact(name, f"{len(wanted)} of SMAC in {folder}")
    return Fact(
        name,
        f"not in {folder}: {', '.join(missing)}",
        f"Copy the folder SMAC_Maps of SMAC (smac/env/starcraft2/maps in its sources) into "
        f"{game}/Maps, so that {folder}/{missing[0]}.SC2Map is a file",
    )


def _program(python: Path | None) -> Fact:
    name = "starcraft python"
    if python is None:
        return Fact(name, f"{PYTHON_VARIABLE} is not set", SMAC_STEPS)
    if not python.is_file() or not os.access(python, os.X_OK):
        return Fact(name, f"{python} cannot be run", SMAC_STEPS)
    return Fact(name, str(python))


def _interpreter(game: Path) -> Fact:
    """Start the other interpreter and see whether it can import SMAC."""
    python = python_path(None)
    there = _program(python)
    if there.remedy or python is None:
        return there
    try:
        link = Link(python, game)
        found = link.ask("probe", Probed, PROBE_S)
        link.close()
    except (ConfigError, GameLost) as error:
        return Fact(there.name, f"{python}: {error.found or error.what}", SMAC_STEPS)
    if found.protocol != PROTOCOL:
        return Fact(there.name, f"{python} speaks protocol {found.protocol}", SMAC_STEPS)
    return Fact(
        there.name,
        f"{python} (Python {found.python}, smac {found.smac}, pysc2 {found.pysc2})",
    )
