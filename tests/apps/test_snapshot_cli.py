from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli import benchmark, snapshot
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.benchmark.verify import Finding
from agent_gym.pipeline.automation.snapshot_set import seal

RUN = CliRunner()
SIZE = ["--set", "duration_minutes=600", "--set", "agents=4"]


def told(app, *words):
    result = RUN.invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    return json.loads(result.stdout), result.exit_code


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    made, code = told(snapshot.app, "generate", "--scenario", "all", "--out", folder, *SIZE)
    assert code == 0
    return made["snapshots"]


def test_all_scenarios_are_made_and_again_the_same(files, tmp_path):
    assert [row["scenario"] for row in files] == list(snapshot.SCENARIOS)
    again, _ = told(snapshot.app, "generate", "--scenario", "bear", "--out", tmp_path, *SIZE)
    assert again["snapshots"][0]["id"] == files[1]["id"]
    assert [row["seed"] for row in files] == [0] * 5


def test_seeds_are_counted_from_the_first(tmp_path):
    words = ["generate", "--seed", "3", "--count", "2", "--out", tmp_path, *SIZE]
    made, _ = told(snapshot.app, *words)
    assert [row["seed"] for row in made["snapshots"]] == [3, 4]


def test_a_snapshot_is_shown_and_its_truth_only_if_asked_for(files):
    shown, _ = told(snapshot.app, "show", files[0]["file"], "--posts", 3)
    assert shown["id"] == files[0]["id"]
    assert len(shown["posts"]) == 3
    assert "truth" not in shown
    opened, _ = told(snapshot.app, "show", files[0]["file"], "--sealed")
    assert set(opened["truth"]["outcomes"]) == {"pm-1", "pm-2", "pm-3"}


def test_a_good_snapshot_is_proven(files):
    proof, code = told(snapshot.app, "verify", files[0]["file"], "--proofs", 0)
    assert (proof["passed"], code) == (True, 0)
    assert {row["check"] for row in proof["findings"]} >= {"determinism", "sealed", "flat is 0"}


def test_a_folder_of_snapshots_is_proven_whole(files):
    proof, code = told(snapshot.app, "verify", Path(files[0]["file"]).parent, "--proofs", 0)
    assert (proof["passed"], code) == (True, 0)
    assert {row["subject"] for row in proof["findings"]} == {one["id"][:12] for one in files}


def test_a_finding_that_fails_fails_the_command(files, monkeypatch):
    bad = Finding("determinism", False, "another id")
    monkeypatch.setattr(snapshot, "verify_snapshot", lambda path: [bad])
    proof, code = told(snapshot.app, "verify", files[0]["file"], "--proofs", 0)
    assert (proof["passed"], code) == (False, 4)


def test_players_are_run_and_compared(files):
    found, code = told(
        benchmark.app, "run", files[0]["file"], "--agent", "benchmark/flat", "--workers", 1
    )
    assert code == 0
    assert [line["player"] for line in found["summary"]] == ["benchmark/flat", "optimum"]
    assert found["summary"][0]["share_of_optimum"] == 0.0


def test_a_failed_player_fails_the_command(files):
    words = ("run", files[0]["file"], "--workers", 1, "--agent")
    found, code = told(benchmark.app, *words, "neural/market")  # without its model
    assert code == 4
    assert found["summary"][0]["failed"] == 1
    with pytest.raises(ConfigError, match="no agent is named 'benchmark/flt'") as caught:
        told(benchmark.app, *words, "benchmark/flt")
    assert "benchmark/flat" in caught.value.remedy


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["generate", "--scenario", "bul"], ConfigError),
        (["generate", "--set", "agents"], ConfigError),
        (["generate", "--set", "agents=many"], ConfigError),
        (["show", "/nowhere.snapshot.xz"], DataError),
    ],
)
def test_what_cannot_be_done_is_said(words, error, tmp_path):
    with pytest.raises(error):
        RUN.invoke(snapshot.app, [*words, "--json"], catch_exceptions=False)


def test_the_sealed_set_is_not_played_by_hand(files, tmp_path):
    folder = Path(shutil.copytree(Path(files[0]["file"]).parent, tmp_path / "sealed"))
    seal(folder)
    with pytest.raises(DataError, match="only-for-the-gate"):
        RUN.invoke(benchmark.app, ["run", str(folder)], catch_exceptions=False)


@pytest.mark.parametrize(("app", "command"), [(benchmark.app, "run"), (snapshot.app, "verify")])
def test_a_folder_without_snapshots_is_named(app, command, tmp_path):
    with pytest.raises(ConfigError, match="no snapshot"):
        RUN.invoke(app, [command, str(tmp_path)], catch_exceptions=False)


def test_people_see_tables(files):
    shown = RUN.invoke(snapshot.app, ["show", files[0]["file"]], catch_exceptions=False)
    assert "right" in shown.stdout
