"""The page of defects is true: every number has a test, every test's number is on the page."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "umc_defects.md"
ROW = re.compile(r"^\| D(\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"^\s*(?:async )?def (test_(?:d\d+_)+\w+)\(", re.MULTILINE)
NUMBERS = set(range(1, 51))


def numbers_of(name):
    """Return the defects that a test's name tells of.

    test_d23_d37_a_prefix tells of 23 and 37.
    """
    told = re.match(r"test_((?:d\d+_)+)", name)
    return {int(number) for number in re.findall(r"d(\d+)", told[1])} if told else set()


def page_rows(text):
    return {int(number): re.findall(r"`(\w+)`", tests) for number, _, tests in ROW.findall(text)}


def all_names(folder):
    files = sorted(folder.rglob("test_*.py"))
    return {name for file in files for name in NAME.findall(file.read_text(encoding="utf-8"))}


def problems(text, there):
    """Return what is wrong with a page, given the tests that are there."""
    rows = page_rows(text)
    found = [f"D{number} is not on the page" for number in sorted(NUMBERS - set(rows))]
    for number, names in rows.items():
        if not names:
            found.append(f"D{number} has no test")
        found += [f"{name} does not exist" for name in names if name not in there]
        found += [f"{name} is not of D{number}" for name in names if number not in numbers_of(name)]
    tested = {number for name in there for number in numbers_of(name)}
    return found + [
        f"D{number} is tested, not on the page" for number in sorted(tested - set(rows))
    ]


def test_every_defect_on_the_page_has_its_test_and_every_test_its_row():
    assert problems(PAGE.read_text(encoding="utf-8"), all_names(ROOT / "tests")) == []


def test_a_page_that_lies_is_found_out():
    text, there = PAGE.read_text(encoding="utf-8"), all_names(ROOT / "tests")
    name = page_rows(text)[43][0]
    assert problems(text, there - {name}) == [f"{name} does not exist"]
    assert problems(text, there | {"test_d51_a_new_one"}) == ["D51 is tested, not on the page"]
    assert problems(text.replace("| D43 |", "| D44 |", 1), there)[0] == "D43 is not on the page"
    assert problems(moved(text, name), there) == [f"{name} is not of D9"]


def moved(text, name):
    """Return the page with another number's test beside D9."""
    return re.sub(r"(\| D9 \| .+ \| )(.+)( \|)", rf"\1`{name}`\3", text)


def test_every_number_stands_once():
    listed = [int(number) for number, _, _ in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert listed == sorted(NUMBERS)
