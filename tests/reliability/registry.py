"""The register of cases: what is promised, which tests show it, and which guard each test watches.

It is kept in ``cases/*.toml``. A test is named as pytest names it, without parameters. A mutant
takes one guard away (``module:attribute`` becomes something harmless, see ``mutation``); the tests
in ``red`` must fail then. ``planted`` names tests that plant the fault themselves.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NUMBERS = range(1, 51)


@dataclass(frozen=True)
class Mutant:
    """A guard that is taken away, and the tests that must notice."""

    case: int
    guard: str
    becomes: str
    red: tuple[str, ...]
    quick: bool
    fresh: bool  # it acts while modules are imported, so they must be imported anew

    @property
    def name(self) -> str:
        """Return what is planted, in the words of ``mutation``."""
        return f"{self.guard}={self.becomes}"

    @property
    def key(self) -> str:
        """Return what its result is kept under."""
        return f"{self.case}: {self.name}"


@dataclass(frozen=True)
class Case:
    """One way in which things go wrong, and what is promised about it."""

    number: int
    title: str
    promise: str
    limits: str
    tests: tuple[str, ...]
    planted: tuple[str, ...]
    mutants: tuple[Mutant, ...]


def load() -> dict[int, Case]:
    """Return all cases by number."""
    found: dict[int, Case] = {}
    for path in sorted((HERE / "cases").glob("*.toml")):
        for name, said in tomllib.loads(path.read_text(encoding="utf-8"))["case"].items():
            case = _case(int(name), said)
            if case.number in found:
                raise ValueError(f"case {case.number} is there twice: {path}")
            found[case.number] = case
    return dict(sorted(found.items()))


def _case(number: int, said: dict) -> Case:
    mutants = tuple(_mutant(number, one) for one in said.pop("mutant", []))
    case = Case(
        number,
        said.pop("title"),
        " ".join(said.pop("promise").split()),
        " ".join(said.pop("limits", "").split()),
        tuple(said.pop("tests")),
        tuple(said.pop("planted", ())),
        mutants,
    )
    if said:
        _unknown(number, said)
    return case


def _mutant(number: int, said: dict) -> Mutant:
    mutant = Mutant(
        number,
        said.pop("guard"),
        said.pop("becomes"),
        tuple(said.pop("red")),
        said.pop("quick", False),
        said.pop("fresh", False),
    )
    if said:
        _unknown(number, said)
    return mutant


def _unknown(number: int, said: dict) -> NoReturn:
    raise ValueError(f"case {number} says what nobody reads: {sorted(said)}")


def key_of(node: str) -> str:
    """Return the name of a test as pytest's XML report and ``heavy.txt`` have it.

    Example:
        >>> key_of("tests/doors/test_visits.py::test_messages_that_are_none[x]")
        'tests.doors.test_visits::test_messages_that_are_none'
    """
    path, *inside, name = node.split("::")
    place = ".".join([path.removesuffix(".py").replace("/", "."), *inside])
    return f"{place}::{name.partition('[')[0]}"


def numbers_of_tests() -> dict[str, tuple[int, ...]]:
    """Return which cases each test is named by."""
    found: dict[str, set[int]] = {}
    for case in load().values():
        for node in (*case.tests, *case.planted):
            found.setdefault(key_of(node), set()).add(case.number)
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}
