from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from agent_gym.apps.api import ServiceSettings
from agent_gym.apps.api.service import opened
from agent_gym.apps.cli import demo as module
from agent_gym.apps.cli.main import main
from agent_gym.apps.dashboard.figures.trajectories import replay_figures, trajectory_page
from agent_gym.core.errors import VenueError
from agent_gym.core.registry import names
from agent_gym.evaluation.saved import read_backtest, saved_backtests
from agent_gym.rollouts.store import StepStore
from tests.apps.cli_samples import Call, make_call, name_walk

WORDS = ("--market", "test/walk", "--bars", 300)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    name_walk(monkeypatch)
    return make_call("demo", monkeypatch, capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        name_walk(patch)
        patch.setattr("sys.argv", ["agent-gym", "demo", *map(str, WORDS), "--out", str(folder)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(copytree(made, tmp_path / "demo"))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_everything_is_there(made):
    found = {path.name for path in made.iterdir()}
    assert found == {
        "chart.png",
        "charts.json",
        "equity.parquet",
        "fills.parquet",
        "manifest.json",
        "regimes.json",
        "report.html",
        "results.json",
        "steps",
    }
    assert [path.name for path in made.parent.iterdir()] == ["demo"]


def test_all_rules_are_compared(folder):
    results = json.loads((folder / "results.json").read_text())
    rules = {name for name in names("agent") if name.startswith("rules/")}
    assert set(results["baselines"]) | {results["agent"]} == rules
    assert results["quality"]["ok"]
    assert results["manifest"] == json.loads((folder / "manifest.json").read_text())


def test_the_recorded_episode_is_the_backtest(folder):
    results = json.loads((folder / "results.json").read_text())
    store = StepStore.open(folder / "steps")
    assert store.manifest.status == "complete"
    assert store.manifest.rows == 299 == results["episode"]["steps"]
    growth = float(np.sum(store.columns(["reward"])["reward"]))
    assert growth == pytest.approx(np.log(results["final_equity"] / 10_000.0), abs=1e-9)


def test_the_same_seed_writes_the_same_bytes(call, folder, tmp_path):
    call(*WORDS, "--out", tmp_path / "again")
    call(*WORDS, "--out", tmp_path / "other", "--seed", 1)
    assert contents(tmp_path / "again") == contents(folder)
    assert contents(tmp_path / "other")["results.json"] != contents(folder)["results.json"]


def test_a_second_run_replaces_the_first(call, folder):
    before = contents(folder)
    code, _, _ = call(*WORDS, "--out", folder, "--seed", 1)
    after = contents(folder)
    assert code == 0
    assert after["results.json"] != before["results.json"]
    assert len(after) == len(before)  # no step file of the first run is left
    StepStore.open(folder / "steps")


def test_it_goes_home_and_says_where(call, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    code, out, _ = call(*WORDS)
    assert code == 0
    assert (tmp_path / "demo" / "report.html").is_file()
    assert "report.html" in "".join(out.split())
    assert "rules/buy-hold" in out


def test_the_dashboard_replays_its_episode(call, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    code, out, _ = call(*WORDS, "--no-pause")
    assert code == 0
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    with opened(ServiceSettings(folder=tmp_path)) as service:
        (row,) = trajectory_page(service, {}, "id", None).rows
        assert row.trajectory_id in out
        assert (row.agent, row.n_steps) == ("rules/sma-cross", results["episode"]["steps"])
        assert row.final_balance == results["final_equity"]
        assert not row.trainable
        replay = replay_figures(service, row.trajectory_id, 10)
        assert "close" in replay.names
        grown = float(np.sum(service.stages.store.steps(row.trajectory_id).reward))
        assert grown == pytest.approx(np.log(results["final_equity"] / 10_000.0), abs=1e-9)
    call(*WORDS, "--no-pause")  # the same again is the same trajectory
    with opened(ServiceSettings(folder=tmp_path)) as service:
        assert len(trajectory_page(service, {}, "id", None).rows) == 1


def test_a_folder_of_its_own_holds_everything(call, monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    assert call(*WORDS, "--out", tmp_path / "own")[0] == 0
    assert not (tmp_path / "home").exists()


def test_the_dashboard_finds_it(made):
    (listed,) = saved_backtests(made.parent)
    assert listed.name == "demo"
    assert listed.results["agent"] == "rules/sma-cross"
    assert read_backtest(made.parent, "demo").charts["linked"]["series"]


def test_json_is_one_document(call, tmp_path):
    code, out, _ = call(*WORDS, "--out", tmp_path / "x", "--json")
    assert code == 0
    found = json.loads(out)
    stored = json.loads((tmp_path / "x" / "results.json").read_text())
    assert {key: value for key, value in found.items() if key != "out"} == stored


def test_a_failure_leaves_nothing_and_keeps_the_old(call, folder, monkeypatch):
    before = contents(folder)

    def fail(*args: object, **kwargs: object) -> None:
        raise VenueError("the venue burned down")

    monkeypatch.setattr(module, "write_sheet", fail)
    code, _, _ = call(*WORDS, "--out", folder, "--seed", 2)
    assert code == 4
    assert contents(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["demo"]


def test_a_market_with_faults_is_refused(call, monkeypatch, tmp_path):
    honest = module.open_market

    def holed(ref: object, seeds: object) -> object:
        bars = honest(ref, seeds)
        ts = bars.ts.copy()
        ts[100:] += 5 * bars.period_ns
        return module.Bars(
            bars.instrument,
            bars.period_ns,
            ts,
            bars.open,
            bars.high,
            bars.low,
            bars.close,
            bars.volume,
        )

    monkeypatch.setattr(module, "open_market", holed)
    code, _, err = call(*WORDS, "--out", tmp_path / "x")
    assert code == 3
    assert "gap" in err
    assert not list(tmp_path.iterdir())


def test_a_bad_folder_is_a_usage_error(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, _ = call(*WORDS, "--out", tmp_path / "file" / "x")
    assert code == 2


def test_the_tour_says_what_why_and_how(call, tmp_path):
    code, out, _ = call(*WORDS, "--out", tmp_path / "x", "--no-pause")
    assert code == 0
    assert [f"{n}/6" in out for n in range(1, 7)] == [True] * 6
    for command in ("market generate", "data check", "backtest --agent", "report", "init my_desk"):
        assert f"$ agent-gym {command}" in out
