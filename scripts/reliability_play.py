"""Plays tests as they are, and with one guard taken away."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.reliability.mutation.planted_mutants import plant
from tests.reliability.registry import ROOT, Mutant, key_of

MUTATION = ROOT / "tests" / "reliability" / "mutation"
LONGEST_S, LONGEST_MUTANT_S = 290, 120
GREEN, RED = 0, 1
Outcomes = dict[str, dict[str, int]]


def pytest_run(
    nodes: Iterable[str], *, mutant: str | None = None, full: bool = False, jobs: int = 0
) -> tuple[int, Outcomes, str]:
    """Play tests in a process of their own.

    Returns:
        The exit code, how many cases of each test passed, failed, broke or were skipped, and what
        was said.
    """
    with tempfile.TemporaryDirectory(prefix="agent-gym-reliability-") as folder:
        report = Path(folder) / "junit.xml"
        limit_s = LONGEST_S if mutant is None else LONGEST_MUTANT_S
        words = [sys.executable, "-m", "pytest", *_words(report, limit_s, jobs), *nodes]
        env = _environment(folder, mutant) | ({"AGENT_GYM_RELIABILITY": "full"} if full else {})
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        found = outcomes(report) if report.is_file() else {}
    return done.returncode, found, done.stdout[-4_000:] + done.stderr[-2_000:]


def outcomes(junit: Path) -> Outcomes:
    """Return how often each test passed, failed, broke (in its setting up) or was skipped."""
    found: Outcomes = {}
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        key = key_of(f"{case.get('classname')}::{case.get('name')}")
        kinds = {part.tag for part in case}
        kind = next((one for one in ("failure", "error", "skipped") if one in kinds), "passed")
        tally = found.setdefault(key, {})
        tally[kind] = tally.get(kind, 0) + 1
    return found


def judged(mutant: Mutant) -> str:
    """Take a guard away and return whether its tests noticed: ``caught``, or what happened."""
    run = _fresh if mutant.fresh else _forked
    code, found, said = run(mutant)
    blind = [node for node in mutant.red if "failure" not in found.get(key_of(node), {})]
    if code == RED and not blind:
        return "caught"
    if code not in (GREEN, RED) or not found:
        return f"broken: pytest ended with {code}: {' '.join(said.split()[-40:])}"
    return f"missed by {', '.join(blind)}"


def warm_up(mutants: Iterable[Mutant]) -> None:
    """Import what the forks need, once: guards, plug-ins and tests."""
    asked = [mutant for mutant in mutants if not mutant.fresh]
    for mutant in asked:
        import_module(mutant.guard.partition(":")[0])
    nodes = sorted({node for mutant in asked for node in mutant.red})
    if nodes:
        with redirect_stdout(StringIO()):
            pytest.main(["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider", *nodes])


def _fresh(mutant: Mutant) -> tuple[int, Outcomes, str]:
    return pytest_run(mutant.red, mutant=mutant.name)


def _forked(mutant: Mutant) -> tuple[int, Outcomes, str]:
    """Play in a fork, so that what has been imported once need not be imported again."""
    module, _, place = mutant.guard.partition(":")
    import_module(module)
    with tempfile.TemporaryDirectory(prefix="agent-gym-reliability-") as folder:
        report, said = Path(folder) / "junit.xml", Path(folder) / "said"
        child = os.fork()
        if child == 0:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 1)
            os.dup2(1, 2)
            os.environ |= _environment(folder, mutant.name)
            sys.path.insert(0, str(MUTATION))  # tests hand their own path on, too
            os.chdir(ROOT)
            code = 70
            try:
                plant(sys.modules[module], place, mutant.becomes)
                code = int(pytest.main([*_words(report, LONGEST_MUTANT_S, 0), *mutant.red]))
            finally:
                sys.stdout.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = outcomes(report) if report.is_file() else {}
        return code, found, said.read_text("utf-8", "replace")[-4_000:]


def _words(report: Path, limit_s: int, jobs: int) -> list[str]:
    words = ["-q", "-n", str(jobs), "-p", "no:cacheprovider", "--durations", "0", "-rN"]
    return [*words, "--tb", "line", "--timeout", str(limit_s), f"--junitxml={report}"]


def _environment(folder: str, mutant: str | None) -> dict[str, str]:
    """Return the environment of a run; with a mutant every process it starts has it too."""
    env = dict(os.environ) | {"HYPOTHESIS_STORAGE_DIRECTORY": folder, "CI": "true"}
    path = [str(ROOT)] if mutant is None else [str(MUTATION), str(ROOT)]
    env["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [env.get("PYTHONPATH")])])
    return env | ({"AGENT_GYM_MUTANT": mutant} if mutant else {})
