"""The reference is that of the code: committed pages are what the script would write today."""

import re
from collections import Counter

import pytest

from agent_gym.apps.cli.main import COMMANDS
from agent_gym.core.registry import Config, names
from agent_gym.pipeline.automation.readiness import MIN_GROUP_SIZE, MIN_TRAJECTORIES
from scripts.make_reference import FOLDER, outdated, pages
from scripts.reference_words import Fields, cell, plain

REMEDY = "run python -m scripts.make_reference and commit docs/reference"


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AGENT_GYM_HOME", MIN_TRAJECTORIES, MIN_GROUP_SIZE):
            patch.delenv(name, raising=False)  # they change defaults
        return pages()


def heads(text):
    return re.findall(r"^#{2,3} (.+)$", text, re.MULTILINE)


def test_the_pages_are_those_of_the_code(made):
    late = [name for name, text in made.items() if (FOLDER / name).read_text("utf-8") != text]
    assert late == [], REMEDY


def test_every_command_and_every_name_has_a_place(made):
    assert set(COMMANDS) <= set(heads(made["commands.md"]))
    named = set(heads(made["registered.md"]))
    shipped = {name for name in names("scenario") if "/" not in name} & named
    assert {"flash_crash", "signal_throughput"} <= shipped
    assert {"rules/sma-cross", "known/m1", "door/pipe", "umc/exact", "battle"} <= named


def test_every_variable_of_ours_is_described():
    package = FOLDER.parents[1] / "agent_gym"
    found = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r'"(AGENT_GYM_[A-Z_]+)"', path.read_text("utf-8"))
    } - {"AGENT_GYM_PROBE_SECRET"}  # what doctor lets a caged program look for
    page = (FOLDER / "environment.md").read_text("utf-8")
    assert found
    assert [name for name in {*found, MIN_TRAJECTORIES, MIN_GROUP_SIZE} if name not in page] == []


def test_no_two_sections_of_a_page_share_a_link(made):
    for text in made.values():
        twice = [head for head, times in Counter(heads(text)).items() if times > 1]
        assert twice == []


def test_a_page_that_differs_is_named(made, tmp_path, monkeypatch):
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("scripts.make_reference.pages", lambda: made)
    assert outdated(tmp_path) == []
    (tmp_path / "settings.md").write_text("old", encoding="utf-8")
    (tmp_path / "commands.md").unlink()
    assert outdated(tmp_path) == ["commands.md", "settings.md"]


class Inner(Config):
    """Inside."""

    share: float = 0.5


class Outer(Config):
    """Outside."""

    inner: Inner = Inner()
    words: tuple[str, ...] | None = None


def test_a_config_inside_another_gets_its_own_section():
    fields = Fields()
    rows = fields.table(Outer)
    assert rows[2] == "| `inner` | [Inner](#inner) | its defaults |  |"
    assert rows[3] == "| `words` | list of text or null | `null` |  |"
    assert "### Inner" in list(fields.parts())


def test_signs_of_tables_are_shown_as_they_are():
    assert cell("a|b <c> `d|e`") == r"a\|b &lt;c> `d\|e`"
    assert plain("x" * 100).endswith("...")
