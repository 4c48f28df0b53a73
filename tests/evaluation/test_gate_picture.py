"""The picture of the power study and the command that makes it."""

import json
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli.gate import app
from agent_gym.core.clock import ManualClock
from agent_gym.evaluation.gate.power import power_study
from agent_gym.evaluation.gate.power_picture import STYLES, draw, power_svg
from agent_gym.evaluation.gate.shapes import SHAPES


@pytest.fixture(scope="module")
def document():
    return power_study(2, 1, clock=ManualClock())


def test_the_picture_shows_every_shape_and_is_the_same_for_the_same_study(document):
    assert {name for name, *_ in STYLES} == set(SHAPES)
    panel = draw(document).axes[0]
    assert len(panel.get_legend().get_texts()) == len(SHAPES)
    drawn = power_svg(document)
    assert drawn == power_svg(document)
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    changed = json.loads(json.dumps(document))
    changed["curve"]["normal"][3]["power"] = 0.123
    assert power_svg(changed) != drawn


def test_the_command_prints_one_document_and_says_when_the_target_is_missed(tmp_path):
    words = ["power", "--suites", "1", "--json"]
    out, picture = tmp_path / "power.json", tmp_path / "power.svg"
    result = CliRunner().invoke(app, [*words, "--out", str(out), "--picture", str(picture)])
    assert result.exit_code == 1
    printed = json.loads(result.stdout)
    assert printed == json.loads(out.read_text(encoding="utf-8"))
    assert not printed["meets_target"]
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
