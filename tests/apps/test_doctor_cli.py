from __future__ import annotations

import json

import pytest

from agent_gym.agents.doors.probe import probe
from agent_gym.apps.cli import doctor
from tests.apps.cli_samples import Call, make_call


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return make_call("doctor", monkeypatch, capsys)


def test_a_sound_machine_is_ready(call):
    code, out, _ = call("--json")
    found = json.loads(out)
    assert code == 0
    assert found["ok"]
    rows = {each["name"]: each for each in found["findings"]}
    for name in ("python", "libraries", "compiler", "agents", "home"):
        assert rows[name]["required"]
        assert rows[name]["status"] == "ok"
    assert {"cores", "memory", "disk", "torch", "market data", "kernel cache"} <= set(rows)
    assert {each["status"] for each in found["findings"]} <= {"ok", "absent", "problem"}


def test_the_isolation_that_is_really_reached_is_told(call, monkeypatch):
    _, out, _ = call("--json")
    row = next(each for each in json.loads(out)["findings"] if each["name"] == "isolation")
    assert row["found"].split(":")[0] == (probe().level or "none")
    monkeypatch.setattr("agent_gym.agents.doors.probe.probe", lambda: probe(namespaces=False))
    code, out, _ = call("--json")
    row = next(each for each in json.loads(out)["findings"] if each["name"] == "isolation")
    assert code == 0
    assert row["status"] == "problem"
    assert row["found"].startswith("limits: ")
    assert "a server of this machine was reached" in row["found"]


def test_the_table_is_readable(call):
    code, out, _ = call()
    assert code == 0
    assert "ready to work" in out


def test_what_is_absent_names_its_remedy(call, monkeypatch):
    monkeypatch.setattr(doctor, "OPTIONAL", {"no-such-library": "rl"})
    monkeypatch.setattr(doctor, "PROGRAMS", {"browser": (("no-such-program",), "pictures")})
    monkeypatch.setattr(doctor, "DATA", doctor.PACKAGE / "nowhere")
    code, out, _ = call("--json")
    rows = {each["name"]: each for each in json.loads(out)["findings"]}
    assert code == 0
    for name in ("no-such-library", "browser", "market data"):
        assert rows[name]["status"] == "absent"
        assert rows[name]["remedy"]
    assert "agent-gym[rl]" in rows["no-such-library"]["remedy"]


def test_something_required_that_is_broken_exits_with_4(call, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "file" / "results"))
    code, out, _ = call("--json")
    found = json.loads(out)
    assert code == 4
    assert found["broken"] == ["home"]
    row = next(each for each in found["findings"] if each["name"] == "home")
    assert "AGENT_GYM_HOME" in row["remedy"]


def test_a_missing_library_is_found(call, monkeypatch):
    monkeypatch.setattr(doctor, "required_libraries", lambda: ["numpy", "no-such-library"])
    code, out, _ = call("--json")
    assert code == 4
    assert "no-such-library" in out
    assert json.loads(out)["broken"] == ["libraries"]


def test_a_compiler_that_miscounts_is_found(monkeypatch):
    monkeypatch.setattr(doctor, "import_module", lambda name: Wrong)
    assert doctor._compiler().broken


class Wrong:
    @staticmethod
    def inlined(function: object) -> object:
        return lambda value: value


def test_required_libraries_come_from_the_package():
    assert "numba" in doctor.required_libraries()
    assert "torch" not in doctor.required_libraries()


def test_a_cache_that_cannot_be_written_is_no_catastrophe(call, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    code, out, _ = call("--json")
    row = next(each for each in json.loads(out)["findings"] if each["name"] == "kernel cache")
    assert code == 0
    assert row["status"] == "problem"
    assert "NUMBA_CACHE_DIR" in row["remedy"]
