import json
from io import StringIO

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from agent_gym.apps.cli.umc_ablation import _view as ablation_view
from agent_gym.apps.cli.umc_ablation import ablation
from agent_gym.apps.cli.umc_gates import _view as gates_view
from agent_gym.apps.cli.umc_gates import gates, letters_of
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
    said = " ".join(done.stdout.split())
    assert "too few seeds to call anything optional: 10 are needed" in said
    found = json.loads((tmp_path / "umc_ablation.json").read_text())
    assert found["optional"] == []
    assert {one["arm"] for one in found["comparisons"]} == {"lambda_0"}
    page = (tmp_path / "umc_ablation.md").read_text()
    assert "too few seeds to call anything optional" in page
    assert "1 row more must be 0 by construction, and all are." in page


def test_no_name_of_an_arm_is_broken_at_80_columns():
    long = "recurrent_one_head"
    gap = {"estimate": -2.9e-05, "low": -0.00012, "high": -5.1e-05, "p_holm": 6.1e-05}
    wished = {"sign": "about 0", "by_construction": False, "added_after_the_first_run": True}
    row = {"market": "market", "arm": long, "metric": "max_drawdown", "part": "heads", **gap}
    row |= {"expected": wished, "verdict": "not contradicted"}
    document = {"comparisons": [row], "optional": [], "arms": {}}
    document |= {"too_few_seeds_for_optional": [], "fewest_seeds_for_optional": 10}
    screen = Console(width=80, file=StringIO())
    screen.print(ablation_view(document))
    told = screen.file.getvalue()
    assert all(word in told for word in (long, "drawdown", "contradicted", "-0.00012"))
    assert max(map(len, told.splitlines())) <= 80
    assert "* added after the first run" in told


@pytest.mark.parametrize(
    ("words", "letters"), [("AB", ("A", "B")), ("a,b", ("A", "B")), (" G, A,G", ("G", "A"))]
)
def test_gates_are_named_with_or_without_commas(words, letters):
    assert letters_of(words) == letters


@pytest.mark.parametrize("words", ["", ",", "A;B", "A,X"])
def test_a_gate_that_is_not_there_is_refused_with_a_remedy(words):
    with pytest.raises(ConfigError) as refused:
        letters_of(words)
    assert refused.value.where == "--only"
    assert "--only A,B" in refused.value.remedy


def test_one_bound_is_one_and_the_bars_of_time_reversal_are_named():
    figure = {"value": 0.4, "low": None, "high": None, "rule": "at least", "bound": 0.01}
    figure |= {"unit": "p", "passed": True, "words": "on generated bars synthetic/btc-1h: net 0"}
    missed = figure | {"passed": False, "words": ""}
    document = {"gates": {"E.time_reversal": figure, "B.n1.net": missed}, "failed": ["B.n1.net"]}
    screen = Console(width=120, file=StringIO())
    screen.print(gates_view(document | {"seeds": [0]}))
    told = screen.file.getvalue()
    assert "1 bound missed" in told
    assert "E.time_reversal: on generated bars synthetic/btc-1h" in told
