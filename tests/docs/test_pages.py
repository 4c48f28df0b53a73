"""Pages that repeat others say the same: the Russian README, files that are named, CI examples."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    ((?:agent-gym|make) .+?)(?:\s{2,}#.*)?$", re.MULTILINE)
CI = sorted((ROOT / "infrastructure" / "ci").glob("*.yml"))


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name, kinds):
    return [body for kind, body in FENCE.findall(text_of(name)) if kind in kinds]


def numbers(text, *, decimal, thousands):
    """Return the numbers of a text as values; code, names and versions are left out."""
    plain = re.sub(r"`[^`\n]+`|SMA\(24,120\)|Python 3\.11", "", FENCE.sub("", text))
    plain = re.sub(r"\]\([^)]*\)|^    .*$", "", plain, flags=re.MULTILINE)
    plain = re.sub(rf"(?<=\d)[{thousands}](?=\d{{3}}(?!\d))", "", plain)
    found = re.findall(rf"(?<![\w.])(?:\d+(?:{re.escape(decimal)}\d+)*|\.\d+)", plain)
    return {float(number.replace(decimal, ".")) for number in found if number.count(decimal) < 2}


def test_both_readmes_show_the_same_code():
    assert blocks("README.ru.md", {"console"}) == blocks("README.md", {"console"})
    assert blocks("README.ru.md", {"py"}) == blocks("README.md", {"python"})
    assert COMMAND.findall(text_of("README.ru.md")) == COMMAND.findall(text_of("README.md"))


def test_both_readmes_tell_the_same_figures():
    english = numbers(text_of("README.md"), decimal=".", thousands=",")
    russian = numbers(text_of("README.ru.md"), decimal=",", thousands=" \u00a0")
    assert len(english) > 100
    assert english - russian == set(), "README.ru.md misses figures of README.md"


def test_they_link_to_each_other():
    assert "(README.ru.md)" in text_of("README.md")[:200]
    assert "(README.md)" in text_of("README.ru.md")[:200]


def test_every_test_that_the_threat_model_names_exists():
    named = set(re.findall(r"`(test_\w+\.py)`", text_of("docs/threat_model.md")))
    assert len(named) > 30
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert named - there == set()


@pytest.mark.parametrize("path", CI, ids=lambda path: path.stem)
def test_an_example_for_ci_can_be_read_and_fails_on_a_regression(path):
    assert yaml.safe_load(path.read_text(encoding="utf-8"))
    assert "--fail-on-regression" in path.read_text(encoding="utf-8")
    assert path.name in text_of("docs/howto/nightly_in_ci.md")
