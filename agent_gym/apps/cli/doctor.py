"""``agent-gym doctor``: what this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from rich.console import Group
from rich.text import Text

from agent_gym import __version__
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import HOME_VARIABLE, home
from agent_gym.core.registry import names

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")

Status: TypeAlias = Literal["ok", "absent", "problem"]
GIB = 1 << 30
PACKAGE = Path(__file__).resolve().parents[2]
DATA = PACKAGE.parents[1] / "shared" / "data"
OPTIONAL = {
    "torch": "rl",
    "stable-baselines3": "rl",
    "transformers": "llm",
    "fastapi": "service",
    "ray": "ray",
}
PROGRAMS = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "pictures of web pages"),
    "postgres": (("postgres", "psql"), "a database that several machines share"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``required`` means that nothing works without it."""

    name: str
    status: Status
    found: str
    remedy: str = ""
    required: bool = False

    @property
    def broken(self) -> bool:
        """Return whether something required is not in order."""
        return self.required and self.status != "ok"


@app.callback()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Look at this machine; the exit code is 4 if something required is broken."""
    findings = examine()
    broken = [each.name for each in findings if each.broken]
    payload = {"ok": not broken, "broken": broken, "findings": [asdict(each) for each in findings]}
    rows: list[tuple[object, ...]] = [(each.name, each.status, each.found) for each in findings]
    title = f"agent-gym {__version__}: " + (
        f"broken: {', '.join(broken)}" if broken else "ready to work"
    )
    advice = [Text(f"{each.name}: {each.remedy}") for each in findings if each.remedy]
    if advice:
        advice.insert(0, Text("What to do", style="bold"))
    view = Group(table(title, ("what", "status", "found"), rows), *advice)
    emit(payload, as_json=as_json, view=view)
    if broken:
        raise typer.Exit(EXIT_RUN)


def examine(folder: Path | None = None) -> list[Finding]:
    """Return everything that was looked at, the required first.

    Args:
        folder: Where results go; the folder that is served, or else that of the environment.
    """
    place = home() if folder is None else folder
    return [
        _python(),
        _libraries(),
        _compiler(),
        _agents(),
        _home(place),
        _kernel_cache(),
        _cores(),
        _memory(),
        _disk(place),
        _isolation(),
        *(_optional(name, extra) for name, extra in OPTIONAL.items()),
        _data(),
        *(_program(name, *known) for name, known in PROGRAMS.items()),
        *_starcraft(),
    ]


def _python() -> Finding:
    fits = sys.version_info >= (3, 11)
    found = f"{platform.python_version()} at {sys.executable}"
    return Finding(
        "python",
        "ok" if fits else "problem",
        found,
        "" if fits else "Use Python 3.11 or newer",
        required=True,
    )


def required_libraries() -> list[str]:
    """Return the libraries that the package asks for, without its optional extras."""
    try:
        wanted = requires("agent-gym") or []
    except PackageNotFoundError:
        return []
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in wanted if "extra ==" not in line]


def _libraries() -> Finding:
    wanted = required_libraries()
    missing = [name for name in wanted if _version(name) is None]
    if missing or not wanted:
        found = f"missing: {', '.join(missing)}" if wanted else "agent-gym is not installed"
        return Finding("libraries", "problem", found, "Run `pip install -e .`", required=True)
    shown = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "numba", "polars"))
    return Finding("libraries", "ok", f"{len(wanted)} present ({shown})", required=True)


def _compiler() -> Finding:
    clock = SystemClock()
    started = clock.monotonic_s()
    try:
        kernels = import_module("agent_gym.core.kernels")
    except ImportError as error:
        return Finding("compiler", "problem", str(error), "Reinstall numba", required=True)
    doubled = kernels.inlined(_double)(21.0)
    took = clock.monotonic_s() - started
    right = doubled == _double(21.0)
    found = f"a kernel compiled in {took:.2f} s" if right else f"21 doubled is {doubled}"
    return Finding(
        "compiler",
        "ok" if right else "problem",
        found,
        "" if right else "Reinstall numba and llvmlite",
        required=True,
    )


def _double(value: float) -> float:
    return value + value


def _agents() -> Finding:
    known = names("agent")
    if known:
        return Finding("agents", "ok", f"{len(known)} can be named", required=True)
    remedy = "Install again with `pip install -e .`, so that names are announced"
    return Finding("agents", "problem", "none is announced", remedy, required=True)


def _home(place: Path) -> Finding:
    usual = home().absolute()
    served = place.resolve() != usual.resolve()
    try:
        check_writable(place)
    except ConfigError as error:
        remedy = f"Set {HOME_VARIABLE} to a folder that can be written"
        remedy = "Serve a folder that can be written" if served else remedy
        return Finding("home", "problem", str(error), remedy, required=True)
    if served:
        found = f"{place.absolute()} is served; without {HOME_VARIABLE} commands write to {usual}"
        return Finding("home", "ok", found, required=True)
    return Finding("home", "ok", f"{place.absolute()} ({HOME_VARIABLE} moves it)", required=True)


def _kernel_cache() -> Finding:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    place = Path(chosen) if chosen else PACKAGE / "exchange" / "kernel"
    try:
        check_writable(place)
    except ConfigError:
        remedy = "Set NUMBA_CACHE_DIR to a folder that can be written; else every start compiles"
        return Finding("kernel cache", "problem", f"{place} cannot be written", remedy)
    return Finding("kernel cache", "ok", str(place))


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Finding("cores", "ok", f"{usable} usable of {os.cpu_count()}")


def _memory() -> Finding:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    enough = total >= 1.5
    remedy = "" if enough else "Use shorter series; a year of minutes needs about 1 GiB"
    return Finding("memory", "ok" if enough else "problem", f"{total:.1f} GiB", remedy)


def _disk(place: Path) -> Finding:
    place = place.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / GIB
    enough = free >= 1.0
    remedy = "" if enough else f"Free some space or move the results with {HOME_VARIABLE}"
    return Finding("disk", "ok" if enough else "problem", f"{free:.1f} GiB free", remedy)


def _isolation() -> Finding:
    """Say which walls held when a program in a cage tried to get out; imported late, as below."""
    try:
        reached = import_module("agent_gym.agents.doors.probe").probe()
    except (ImportError, OSError) as error:
        return Finding("isolation", "problem", str(error), "Run no untrusted agent here")
    if reached.level == "sealed":
        found = f"sealed: all {len(reached.attempts)} attempts to get out were held"
        return Finding("isolation", "ok", found)
    escapes = "; ".join(f"{name}: {what}" for name, what in reached.escapes.items())
    remedy = (
        "Untrusted programs (door/pipe) are held no better than this; a newer kernel (Landlock, "
        "user namespaces) would help. `require` refuses to run them below a level"
    )
    return Finding("isolation", "problem", f"{reached.level or 'none'}: {escapes}", remedy)


def _optional(name: str, extra: str) -> Finding:
    found = _version(name)
    if found is not None:
        return Finding(name, "ok", found)
    return Finding(name, "absent", "not installed", f"pip install 'agent-gym[{extra}]'")


def _data() -> Finding:
    files = sorted(DATA.glob("*.parquet")) if DATA.is_dir() else []
    if files:
        return Finding("market data", "ok", f"{len(files)} files in {DATA}")
    remedy = "Fetch some with `agent-gym data fetch`, or use a synthetic market"
    return Finding("market data", "absent", f"none in {DATA}", remedy)


def _program(name: str, candidates: tuple[str, ...], purpose: str) -> Finding:
    place = next((path for path in map(shutil.which, candidates) if path is not None), None)
    if place is not None:
        return Finding(name, "ok", place)
    return Finding(name, "absent", "not on the path", f"Only needed for {purpose}")


def _starcraft() -> list[Finding]:
    """Return what StarCraft II needs; imported late, since a broken compiler must be told too."""
    try:
        facts = import_module("agent_gym.envs.starcraft.examination").examine()
    except ImportError as error:
        return [Finding("starcraft", "absent", str(error), "Run `pip install -e .`")]
    return [
        Finding(fact.name, "absent" if fact.remedy else "ok", fact.found, fact.remedy)
        for fact in facts
    ]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
