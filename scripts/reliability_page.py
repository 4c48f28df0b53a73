"""The page docs/reliability.md: the register in words, and what came of the last run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.reliability.registry import ROOT, Case, key_of

PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "docs" / "results" / "reliability.json"
NOTE = "<!-- Made by scripts/reliability.py (make reliability): do not edit. -->\n\n"
HEAD = """# Fifty ways in which things go wrong

Each case below says what is promised, what is **not** promised, which tests show it and how they
came out when all was played last. A test that cannot fail shows nothing. So guards have mutants: a
guard is taken away, and the tests that watch it must fail. `make reliability` does all of that and
writes this page; the short form of the tests is in `make test`.

These promises are about the paths that the tests take. They do not establish that every path of the
program keeps them. What nothing stands in the way of is listed in the
[threat model](threat_model.md).

"""


def page(cases: Mapping[int, Case], kept: Mapping[str, Any]) -> str:
    """Return the whole page."""
    lines = [NOTE + HEAD, *_last(kept), *_table(cases, kept)]
    for case in cases.values():
        lines += _section(case, kept)
    return "\n".join(lines).rstrip() + "\n"


def result(case: Case, kept: Mapping[str, Any]) -> str:
    """Return how the tests of a case came out, in words."""
    tally: dict[str, int] = {}
    for node in (*case.tests, *case.planted):
        for kind, n in kept["tests"].get(key_of(node), {"not played": 1}).items():
            tally[kind] = tally.get(kind, 0) + n
    names = ("failure", "error", "passed", "skipped", "not played")
    words = {"failure": "failed", "error": "broken"}
    return ", ".join(f"{tally[kind]} {words.get(kind, kind)}" for kind in names if kind in tally)


def guards(case: Case, kept: Mapping[str, Any]) -> str:
    """Return how many of its guards were missed by the tests when they were gone."""
    found = [kept["mutants"].get(one.key, "not tried") for one in case.mutants]
    parts = [f"{found.count('caught')} of {len(found)}"] if found else []
    parts += [f"{len(case.planted)} planted in the test"] if case.planted else []
    return ", ".join(parts) or "none"


def _last(kept: Mapping[str, Any]) -> list[str]:
    if "date" not in kept:
        return ["Nothing has been played yet.\n"]
    words = (
        f"Last played {kept['date']} on {kept['system']}, in its {kept['form']} form; isolation of "
        f"programs: `{kept['isolation']}`. A skipped test needs what that machine did not have."
    )
    return [words + "\n"]


def _table(cases: Mapping[int, Case], kept: Mapping[str, Any]) -> Iterator[str]:
    yield "| # | case | tests | guards noticed when gone |"
    yield "|---|---|---|---|"
    for case in cases.values():
        link = f"[{case.title}](#case-{case.number})"
        yield f"| {case.number} | {link} | {result(case, kept)} | {guards(case, kept)} |"
    yield ""


def _section(case: Case, kept: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Case {case.number}\n"
    yield f"**{case.title[0].upper()}{case.title[1:]}.** {case.promise}\n"
    if case.limits:
        yield f"Not promised: {case.limits}\n"
    yield f"Tests: {result(case, kept)}.\n"
    yield from (f"- `{node}`" for node in (*case.tests, *case.planted))
    yield ""
    if case.mutants:
        yield "| guard | taken away by | result |"
        yield "|---|---|---|"
        for one in case.mutants:
            how = kept["mutants"].get(one.key, "not tried")
            yield f"| `{one.guard}` | `{_cell(one.becomes)}` | {_cell(how)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
