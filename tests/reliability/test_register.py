"""The register of cases is whole and true: tests and guards exist, and the page is that of it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from scripts.reliability_page import PAGE, RESULTS, page
from tests.reliability.mutation.planted_mutants import MUTANTS
from tests.reliability.registry import HERE, NUMBERS, ROOT, _case, key_of, load

CASES = load()
NODES = sorted({node for case in CASES.values() for node in (*case.tests, *case.planted)})
GUARDS = [mutant for case in CASES.values() for mutant in case.mutants]


def functions_of(path):
    """Return every test of a file, by its name inside the file, with its syntax."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found |= {f"{node.name}::{one.name}": one for one in methods_of(node, path)}
    return found


def methods_of(node, path):
    """Return the methods of a class, and of the classes beside it that it takes tests from."""
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    inner = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        names = {one.name for one in line.names} if isinstance(line, ast.ImportFrom) else set()
        beside = path.with_name(f"{getattr(line, 'module', '')}.py")
        if names & bases and beside.is_file():
            body = ast.parse(beside.read_text(encoding="utf-8")).body
            taken = [one for one in body if isinstance(one, ast.ClassDef) and one.name in bases]
            inner += [each for one in taken for each in methods_of(one, beside)]
    return inner


def is_there(node):
    """Return whether pytest would collect such a test."""
    path, _, name = node.partition("::")
    file = ROOT / path
    plain = name.partition("[")[0]
    right = file.name.startswith("test_") and plain.rpartition("::")[2].startswith("test_")
    return right and file.is_file() and plain in functions_of(file)


def test_there_are_fifty_cases_and_each_has_tests():
    assert sorted(CASES) == list(NUMBERS)
    for case in CASES.values():
        assert case.tests, case.number
        assert case.promise.endswith("."), case.number


def test_every_test_is_there():
    assert [node for node in NODES if not is_there(node)] == []
    assert [node for one in GUARDS for node in one.red if not is_there(node)] == []
    assert not is_there("tests/reliability/test_register.py::test_that_nobody_wrote")
    assert not is_there("tests/nothing.py::test_every_test_is_there")


def test_every_guard_is_there():
    for mutant in GUARDS:
        module, _, place = mutant.guard.partition(":")
        path = ROOT / f"{module.replace('.', '/')}.py"
        text = path.read_text(encoding="utf-8")
        name = place.rpartition(".")[2]
        assert re.search(rf"\b{re.escape(name)}\b", text), mutant.guard
        kind, _, rest = mutant.becomes.partition("(")
        assert kind in MUTANTS, mutant.becomes
        if kind == "source":
            old, _ = ast.literal_eval(rest.removesuffix(")"))
            assert old in text, f"{mutant.guard} does not say {old!r}"


def test_a_guard_has_one_way_of_being_missed():
    assert len({mutant.key for mutant in GUARDS}) == len(GUARDS)
    guarded = {mutant.case for mutant in GUARDS} | {
        case.number for case in CASES.values() if case.planted
    }
    assert len(guarded) >= 40


def marked(path):
    """Return which cases the tests of a file say they show."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    whole = [n for one in tree.body if isinstance(one, ast.Assign) for n in _numbers(one)]
    for name, node in functions_of(path).items():
        if name.startswith("test_"):
            own = [n for one in node.decorator_list for n in _numbers(one)]
            yield name, {*whole, *own}


def _numbers(node):
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.case":
            yield from (arg.value for arg in call.args)


def test_tests_of_this_folder_say_what_they_show():
    for path in sorted(HERE.glob("test_case_*.py")):
        for name, numbers in marked(path):
            node = f"{path.relative_to(ROOT).as_posix()}::{name}"
            named = {case.number for case in CASES.values() if node in (*case.tests, *case.planted)}
            assert numbers, f"{node} shows no case"
            assert numbers <= named, f"the register does not name {node} under {numbers}"


@pytest.mark.parametrize("said", [{"tset": []}, {"mutant": [{"gard": 1}]}])
def test_what_nobody_reads_is_refused(said):
    whole = {"title": "t", "promise": "p.", "tests": ["x"]}
    with pytest.raises((ValueError, KeyError)):
        _case(1, whole | said)


def test_the_page_is_that_of_the_register():
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(CASES, kept), "make reliability"
    known = {mutant.key for mutant in GUARDS}
    assert set(kept["mutants"]) <= known, "a guard was renamed: make reliability"
    assert set(kept["tests"]) <= {key_of(node) for node in NODES}


def test_a_few_guards_are_missed_when_they_are_gone():
    quick = [mutant for mutant in GUARDS if mutant.quick]
    assert len(quick) >= 3
    done = subprocess.run(
        [sys.executable, "-m", "scripts.reliability", "--quick", "--guards-only", "--dry-run"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.stdout.count(": caught\n") == len(quick), done.stdout + done.stderr


def test_a_test_that_would_not_notice_is_found_out():
    """Takes a guard away that the named test does not watch."""
    blind = (
        "from scripts.reliability_play import judged\n"
        "from tests.reliability.registry import Mutant\n"
        "print(judged(Mutant(9, 'agent_gym.markets.quality:_Search.bad_rows', 'returns(())',"
        " ('tests/markets/test_quality.py::test_a_clean_series_has_no_issue',), True, False)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", blind],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.stdout.startswith("missed by tests/markets"), done.stdout + done.stderr
