"""Play the fifty cases of docs/reliability.md, with and without each guard, and write the page.

``python -m scripts.reliability`` plays every test that the register names (tests/reliability/cases)
in full: they must pass. Then each guard is taken away, one at a time, and the tests that watch it
must fail. ``--cases 5,7`` plays some of them, ``--quick`` plays the short form and leaves the long
tests out, ``--check`` plays nothing and says whether the page is that of the register.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from agent_gym.agents.doors.probe import probe
from agent_gym.core.clock import SECOND_NS, SystemClock
from agent_gym.core.files import write_json, write_text
from scripts.reliability_page import PAGE, RESULTS, page
from scripts.reliability_play import GREEN, RED, Outcomes, judged, pytest_run, warm_up
from tests.reliability.registry import ROOT, Case, key_of, load

HEAVY = frozenset((ROOT / "tests" / "heavy.txt").read_text(encoding="utf-8").split())


def played(cases: Iterable[Case], *, full: bool, jobs: int) -> Outcomes:
    """Play the tests of the cases as they are."""
    nodes = sorted({node for case in cases for node in (*case.tests, *case.planted)})
    if not full:
        nodes = [node for node in nodes if key_of(node) not in HEAVY]
    code, found, said = pytest_run(nodes, full=full, jobs=jobs)
    if code not in (GREEN, RED):
        sys.exit(f"pytest ended with {code}:\n{said}")
    lost = [node for node in nodes if key_of(node) not in found]
    if lost:
        sys.exit(f"the register names tests that were not played: {lost}")
    return found


def main() -> int:
    """Play, keep what came of it, write the page; 1 if a promise does not hold."""
    asked = _asked()
    cases, kept = load(), _kept()
    if asked.check:
        right = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page(cases, kept)
        sys.stdout.write(f"{PAGE.name} is {'' if right else 'not '}that of the register\n")
        return 0 if right else 1
    chosen = [
        one for one in cases.values() if asked.cases in (None, []) or one.number in asked.cases
    ]
    if not asked.page_only:
        _play(chosen, asked, kept)
    if not asked.dry_run:
        write_json(RESULTS, kept)
        write_text(PAGE, page(cases, kept))
    bad = [key for key, tally in kept["tests"].items() if {"failure", "error"} & set(tally)]
    missed = [f"{name}: {how}" for name, how in kept["mutants"].items() if how != "caught"]
    for line in (*bad, *missed):
        sys.stdout.write(f"does not hold: {line}\n")
    sys.stdout.write(f"{len(chosen)} cases, {len(bad)} tests fail, {len(missed)} guards missed\n")
    return 1 if bad or missed else 0


def _play(chosen: list[Case], asked: argparse.Namespace, kept: dict[str, Any]) -> None:
    if not asked.guards_only:
        kept["tests"] |= played(chosen, full=not asked.quick, jobs=asked.jobs)
    mutants = [one for case in chosen for one in case.mutants if one.quick or not asked.quick]
    warm_up(mutants)
    for mutant in mutants:
        how = kept["mutants"][mutant.key] = judged(mutant)
        sys.stdout.write(f"case {mutant.case:2d}  {mutant.name}: {how}\n")
        sys.stdout.flush()
        if not asked.dry_run:  # what was found so far outlives a run that is cut short
            write_json(RESULTS, kept)
    known = load().values()
    tests = {key_of(node) for case in known for node in (*case.tests, *case.planted)}
    guards = {one.key for case in known for one in case.mutants}
    kept["tests"] = {key: kept["tests"][key] for key in sorted(tests & set(kept["tests"]))}
    kept["mutants"] = {key: kept["mutants"][key] for key in sorted(guards & set(kept["mutants"]))}
    now_s = SystemClock().now_ns() // SECOND_NS
    kept["date"] = datetime.fromtimestamp(now_s, UTC).date().isoformat()
    kept["form"] = "quick" if asked.quick else "full"
    kept["system"] = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    kept["isolation"] = probe().level or "none"


def _kept() -> dict[str, Any]:
    if not RESULTS.is_file():
        return {"format": "agent_gym.reliability/1", "tests": {}, "mutants": {}}
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _asked() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m scripts.reliability", description=__doc__)
    words.add_argument("--cases", type=lambda text: [int(one) for one in text.split(",")])
    words.add_argument("--quick", action="store_true", help="short forms, quick guards alone")
    words.add_argument("--check", action="store_true", help="only compare page and register")
    words.add_argument("--page-only", action="store_true", help="only write the page again")
    words.add_argument("--guards-only", action="store_true", help="only take guards away")
    words.add_argument("--dry-run", action="store_true", help="write nothing")
    words.add_argument("--jobs", type=int, default=2, help="processes for the tests")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
