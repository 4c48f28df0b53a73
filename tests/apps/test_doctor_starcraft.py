"""The doctor says what StarCraft II lacks, step by step, and never requires it."""

import json
import sys

import pytest

from agent_gym.apps.cli import doctor
from agent_gym.envs.starcraft.examination import GAME_VARIABLE, PYTHON_VARIABLE, examine
from tests.apps.cli_samples import make_call
from tests.envs.starcraft_samples import Machine, write_program

NAMES = ("starcraft game", "starcraft executable", "starcraft maps", "starcraft python")


@pytest.fixture
def call(monkeypatch, capsys):
    return make_call("doctor", monkeypatch, capsys)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path)
    monkeypatch.setenv(GAME_VARIABLE, str(made.game))
    monkeypatch.setenv(PYTHON_VARIABLE, str(made.python))
    return made


def facts():
    return {fact.name: fact for fact in examine()}


def missing():
    return [name for name, fact in facts().items() if fact.remedy]


def test_a_bare_machine_gets_every_step_and_is_not_broken(call, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(GAME_VARIABLE, raising=False)
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    code, out, _ = call("--json")
    rows = {each["name"]: each for each in json.loads(out)["findings"]}
    assert code == 0
    for name in NAMES:
        assert rows[name]["status"] == "absent"
        assert not rows[name]["required"]
    assert f"{tmp_path}/StarCraftII" in rows["starcraft game"]["found"]
    assert GAME_VARIABLE in rows["starcraft game"]["remedy"]
    assert "Versions/Base*/SC2_x64" in rows["starcraft executable"]["found"]
    assert "Maps/SMAC_Maps/3m.SC2Map" in rows["starcraft maps"]["remedy"]
    for word in ("venv", "protobuf<3.21", "oxwhirl/smac", PYTHON_VARIABLE):
        assert word in rows["starcraft python"]["remedy"]


def test_a_machine_that_has_all_is_ready(call, machine):
    code, out, _ = call("--json")
    rows = {each["name"]: each for each in json.loads(out)["findings"]}
    assert code == 0
    assert [rows[name]["status"] for name in NAMES] == ["ok"] * 4
    assert not any(rows[name]["remedy"] for name in NAMES)
    assert "smac 1.0.0, pysc2 4.0.0" in rows["starcraft python"]["found"]
    assert "Versions/Base75689/SC2_x64" in rows["starcraft executable"]["found"]


def test_each_missing_thing_is_found_alone(machine):
    assert missing() == []
    maps = machine.game / "Maps" / "SMAC_Maps"
    (maps / "8m.SC2Map").rename(maps / "away")
    assert missing() == ["starcraft maps"]
    assert facts()["starcraft maps"].found.endswith(": 8m")
    (maps / "away").rename(maps / "8m.SC2Map")
    binary = machine.game / "Versions" / "Base75689" / "SC2_x64"
    binary.chmod(0o644)
    assert missing() == ["starcraft executable"]
    assert facts()["starcraft executable"].remedy == f"`chmod +x {binary}`"
    binary.chmod(0o755)
    machine.python.chmod(0o644)
    assert missing() == ["starcraft python"]


@pytest.mark.parametrize("library", ["", "StarCraft2Env = None; raise ImportError('old')"])
def test_another_package_of_the_same_name_is_no_smac(machine, library):
    (machine.library / "smac" / "env" / "__init__.py").write_text(library)
    fact = facts()["starcraft python"]
    assert "StarCraft2Env of smac.env cannot be imported" in fact.found
    assert "another project" in fact.remedy


def test_an_interpreter_that_dies_is_told(machine):
    write_program(machine.python, "#!/bin/sh\necho no such library >&2; exit 7\n")
    assert "exit status 7; its last words: no such library" in facts()["starcraft python"].found


def test_a_package_that_cannot_be_imported_does_not_stop_the_doctor(monkeypatch):
    monkeypatch.setitem(sys.modules, "agent_gym.envs.starcraft.examination", None)
    (finding,) = doctor._starcraft()
    assert finding.status == "absent"
    assert not finding.broken
