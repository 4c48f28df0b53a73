"""A project from ``agent-gym init``: its agent and scenario are found, played and guarded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_gym.apps.cli.init import FILES
from agent_gym.core import project
from agent_gym.pipeline.nightly.sources import found_places
from tests.apps.cli_samples import Call, make_call

MAIN = "from agent_gym.apps.cli.main import main; main()"
ROOT = Path(__file__).parents[2]
NIGHT = ("nightly", "--scenarios", "suite.yaml", "--seeds", "24", "--workers", "2", "--json")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return make_call("init", monkeypatch, capsys)


def stranger(folder: Path, *words: str) -> tuple[int, str]:
    """Run agent-gym as a user would who stands in a folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AGENT_GYM")}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout or done.stderr


def test_a_project_is_written_once_and_over_nothing(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "my-desk"
    code, out, _ = call(folder, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["package"] == "my_desk"
    on_disk = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert on_disk == set(said["files"])
    assert {name.format(package="my_desk") for name in FILES} <= on_disk
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (folder / "README.md").write_text("mine")
    code, _, err = call(folder)
    assert code == 2
    assert "not empty" in err
    assert (folder / "README.md").read_text() == "mine"
    assert len(before) == len(on_disk)


def test_a_dry_run_writes_nothing(call: Call, tmp_path: Path) -> None:
    code, out, _ = call(tmp_path / "desk_x", "--dry-run", "--json")
    assert code == 0
    assert json.loads(out)["written"] is False
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["rules", "json", "class", "agent_gym", "1st", "a-b"])
def test_a_name_that_is_taken_or_no_name_is_refused(call: Call, tmp_path: Path, name: str) -> None:
    code, _, err = call(tmp_path / "new", "--name", name)
    assert code == 2
    assert "--name my_desk" in err
    assert not list(tmp_path.iterdir())


def test_only_a_marked_project_is_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[project.entry-points."agent_gym.agent"]\n"evil/one" = "evil"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "evil.py").write_text("raise SystemExit(77)")
    code, out = stranger(tmp_path, "agents", "show", "evil/one")
    assert (code, "no agent is named" in out) == (2, True)
    monkeypatch.setenv(project.PROJECT_VARIABLE, str(tmp_path))
    assert project.announced_by_project("agent") == {}
    (tmp_path / "pyproject.toml").write_text("[tool.agent-gym\n")
    project.read_project.cache_clear()
    with pytest.raises(project.ConfigError, match="cannot be read"):
        project.announced_by_project("agent")


def test_sources_of_a_project_are_found_before_any_name_was_asked_for(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay asks for the code of today first; it knows no name of the project then."""
    folder = tmp_path / "desk_y"
    assert call(folder)[0] == 0
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert found_places("desk_y") == ()
    monkeypatch.setenv(project.PROJECT_VARIABLE, str(folder))
    assert found_places("desk_y") == (folder / "desk_y",)


@pytest.mark.timeout(1_200)
def test_from_an_empty_folder_to_a_red_night(tmp_path: Path) -> None:
    code, out = stranger(tmp_path, "init", "my_desk")
    assert code == 0, out
    folder = tmp_path / "my_desk"
    words = ("--agent", "my_desk/trend", "--market", "synthetic/btc-1h", "--bars", "600", "--json")
    code, out = stranger(folder, "backtest", *words)
    assert code == 0, out
    assert json.loads(out)["agent"] == "my_desk/trend"
    code, out = stranger(folder, "backtest", "--agent", "my_desk/tren", *words[2:])
    assert (code, "my_desk/trend" in json.loads(out)["remedy"]) == (2, True)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout
    suite = folder / "suite.yaml"
    suite.write_text(suite.read_text().partition("  # One that ships")[0])  # half the time
    code, out = stranger(folder, *NIGHT, "--update-baseline", "--reason", "first baseline")
    assert code == 0, out
    code, out = stranger(folder, *NIGHT, "--fail-on-regression")
    assert code == 0, out
    agent = folder / "my_desk" / "agent.py"
    sound = agent.read_text()
    agent.write_text(sound.replace("close > mean", "close < mean"))  # the planted bug
    assert agent.read_text() != sound
    code, out = stranger(folder, *NIGHT, "--fail-on-regression")
    assert code == 1, out
    agent.write_text(sound)
    code, out = stranger(folder, *NIGHT, "--fail-on-regression")
    assert code == 0, out
