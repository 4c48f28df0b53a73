"""The audit of teams: nothing is found in what is shipped, and every defect that is planted is."""

import re
from pathlib import Path

import pytest

from agent_gym.training.marl import shipped_config
from agent_gym.training.marl.amal import AMALAgent
from agent_gym.training.marl.audit import CHECKS, TeamSubject, audit_team, check_named
from agent_gym.training.marl.learner import Learner
from tests.training.marl_defects import PLANTS

PAGE = Path(__file__).parents[2] / "docs" / "teams_defects.md"
OF_LEARNERS = {"credit", "correction", "living", "scales", "agent-id"}
OF_TRAININGS = {"fitness", "auxiliary-teams", "auxiliary-rows", "updates", "all-steps"}
"""Checks that must stay quiet where a learner, or anything else, is broken in another way."""


@pytest.mark.parametrize("algorithm", ["amal", "mappo"])
def test_nothing_is_found_in_what_is_shipped(algorithm):
    report = audit_team(TeamSubject(algorithm, shipped_config(algorithm)))
    assert [f.what for f in report.findings("error", "warning")] == []
    looked = {check.name for check in report.checks if check.verdict == "fine"}
    left_out = {check.name for check in CHECKS if check.of_amal} if algorithm == "mappo" else set()
    assert looked == {check.name for check in CHECKS} - left_out


def id_of(plant):
    return f"d{plant.number}_{plant.name}"


@pytest.mark.parametrize("plant", PLANTS, ids=id_of)
def test_a_planted_defect_is_found(plant):
    asked = {plant.check}
    if plant.seams.learner is not Learner:
        asked |= OF_LEARNERS
    elif plant.config or plant.seams.agent is not AMALAgent:
        asked |= OF_TRAININGS
    report = audit_team(plant.subject, sorted(asked))
    found = {check.name for check in report.checks if check.verdict == "error"}
    assert plant.check in found
    assert not [f.what for f in report.findings("error") if f.what.startswith("It stopped with")]
    assert found <= {plant.check, *plant.also}
    assert plant.number in check_named(plant.check).defects


def test_every_defect_has_a_check_and_a_plant():
    numbers = set(range(1, 22))
    assert {number for check in CHECKS for number in check.defects} == numbers
    assert {plant.number for plant in PLANTS} == numbers
    assert {plant.check for plant in PLANTS} == {check.name for check in CHECKS}


def test_the_page_of_defects_names_every_check_and_every_plant():
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    told = {(int(n), name) for n, _, plants in rows for name in re.findall(r"`(.+?)`", plants)}
    assert told == {(plant.number, id_of(plant)) for plant in PLANTS}
    for number, checks, _ in rows:
        guards = {check.name for check in CHECKS if int(number) in check.defects}
        assert set(re.findall(r"`(.+?)`", checks)) == guards
