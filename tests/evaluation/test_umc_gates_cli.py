import json

import pytest
import typer
from typer.testing import CliRunner

from agent_gym.apps.cli.umc_ablation import ablation
from agent_gym.apps.cli.umc_gates import gates
from agent_gym.core.errors import ConfigError

app = typer.Typer()
app.command("gates")(gates)
app.command("ablation")(ablation)
PLANTED = "rules/random:hold_bars=2"


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_missed_bound_ends_with_4_and_leaves_the_files(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    words = ("--agent", PLANTED, "--only", "B", "--seeds", 2, "--bars", 1_000)
    done = call("gates", *words, "--out", tmp_path, "--json")
    assert done.exit_code == 4
    said = json.loads(done.stdout)
    assert said == json.loads((tmp_path / "umc_gates.json").read_text())
    assert said["passed"] is False
    assert "B.n1.net" in said["failed"]
    assert "--only B --seeds 2" in said["manifest"]["command"]
    assert "**missed**" in (tmp_path / "umc_gates.md").read_text()
    assert not (tmp_path / "home").exists()


def test_gates_that_hold_end_with_0(tmp_path):
    words = ("--agent", "rules/flat", "--only", "b", "--seeds", 2, "--bars", 1_000)
    done = call("gates", *words)
    assert done.exit_code == 0
    assert "All gates passed" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("gates", "--only", "X"),
        ("gates", "--agent", "rules/*"),
        ("gates", "--data", "nowhere.parquet"),
        ("ablation", "--arms", "nothing"),
        ("ablation", "--markets", "m9"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_command(words):
    assert isinstance(call(*words).exception, ConfigError)


def test_the_ablation_is_written(tmp_path):
    words = ("--markets", "n1", "--arms", "lambda_0", "--seeds", 2, "--bars", 1_000)
    done = call("ablation", *words, "--out", tmp_path)
    assert done.exit_code == 0
    found = json.loads((tmp_path / "umc_ablation.json").read_text())
    assert found["optional"] == ["lambda"]
    assert {one["arm"] for one in found["comparisons"]} == {"lambda_0"}
    assert "optional therefore: lambda." in (tmp_path / "umc_ablation.md").read_text()
