"""Any seed of a kept run can be played again, and two runs can be laid side by side."""

import json

import pytest
from nightly_samples import DirectCrew, night, stand_still, without_processes

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.pipeline.nightly import Workspace, compare_runs, comparison_code, replay, replay_seed


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    without_processes(monkeypatch.setattr)
    monkeypatch.setattr(replay, "LocalCrew", DirectCrew)
    monkeypatch.setattr(replay, "code_identity", stand_still)


@pytest.fixture
def home(tmp_path):
    night(tmp_path, approve="first")
    return tmp_path


def test_a_worst_seed_of_a_regression_is_reproduced(home):
    outcome = night(home, day=1, level=9.0)
    run = outcome.result.run.run_id
    finding = outcome.result.diff.of("regression")[0]
    for seed in finding.worst_seeds:
        found = replay_seed(Workspace(home), run, finding.scenario, seed)
        assert (found.same, found.same_code, found.exit_code) == (True, True, 0)
        figures = {name: (was, now, base) for name, was, now, base in found.rows()}
        was, now, base = figures[finding.metric]
        assert was == now
        assert base - now == pytest.approx(1.0)
        other = replay_seed(Workspace(home), run, finding.scenario, seed, side="baseline")
        assert other.same is True
        assert dict((row[0], row[2]) for row in other.rows())["gain"] == base


def test_a_planted_fault_is_planted_again(home, monkeypatch):
    monkeypatch.setattr("agent_gym.pipeline.nightly.prepare.PLANTS", {"half": None})
    outcome = night(home, day=1, plant="half")
    seed = outcome.result.diff.of("regression")[0].worst_seeds[0]
    found = replay_seed(Workspace(home), outcome.result.run.run_id, "alpha", seed)
    assert (found.plant, found.same) == ("half", True)


def test_a_seed_nobody_played_is_played_beside_the_baseline(home):
    run = night(home, day=1, level=9.0).result.run.run_id
    with pytest.raises(ConfigError, match="did not play this seed"):
        replay_seed(Workspace(home), run, "alpha", 12345)
    found = replay_seed(Workspace(home), run, "alpha", 12345, any_seed=True)
    assert (found.same, found.exit_code) == (None, 0)
    assert found.baseline.metrics["gain"] - found.played.metrics["gain"] == pytest.approx(1.0)


def test_what_differs_is_said(home, monkeypatch):
    run = night(home, day=1).result.run.run_id
    path = home / "reports/runs" / run / "samples.json"
    said = json.loads(path.read_text())
    seed = said["scenarios"][0]["samples"][0]["seed"]
    said["scenarios"][0]["samples"][0]["trajectory_hash"] = "other"
    path.write_text(json.dumps(said))
    assert replay_seed(Workspace(home), run, "alpha", seed).exit_code == 4
    monkeypatch.setattr(replay, "code_identity", lambda *_, **__: stand_still(code_hash="new"))
    found = replay_seed(Workspace(home), run, "alpha", seed)
    assert (found.same, found.same_code, found.exit_code) == (False, False, 3)


def test_a_baseline_can_be_replayed_by_its_id(home):
    samples = json.loads(next(home.glob("reports/baseline/2*/samples.json")).read_text())
    seed = samples["scenarios"][1]["samples"][3]["seed"]
    assert replay_seed(Workspace(home), "baseline", "beta", seed).same is True


@pytest.mark.parametrize(("run", "scenario"), [("latest", "alfa"), ("nobody", "alpha")])
def test_what_does_not_exist_is_named_with_what_does(home, run, scenario):
    with pytest.raises(ConfigError, match=r"alpha|last ones"):
        replay_seed(Workspace(home), run, scenario, 1)


def test_runs_baselines_and_files_can_be_compared(home):
    good, bad = night(home, day=1), night(home, day=2, level=9.0)
    workspace, policy = Workspace(home), GatePolicy()
    run = bad.result.run.run_id
    for first in ("baseline", good.result.run.run_id, good.result.baseline.id):
        for second in (run, "latest", str(home / "reports/runs" / run / "report.json")):
            diff = compare_runs(workspace, first, second, policy)
            assert {each.id for each in diff.of("regression")} == {"alpha/gain", "beta/gain"}
            assert comparison_code(diff, fail_on_regression=True) == 1
            assert comparison_code(diff, fail_on_regression=False) == 0
    same = compare_runs(workspace, "baseline", good.result.run.run_id, policy)
    assert same.verdict == "pass"
    swapped = compare_runs(workspace, run, "baseline", policy)
    assert len(swapped.of("improvement")) == 2


@pytest.mark.parametrize("text", ["[]", "{", '{"schema": "x"}', '{"schema": "agent_gym.report/1"}'])
def test_a_file_that_is_no_report_is_refused(home, tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DataError):
        compare_runs(Workspace(home), "baseline", str(path), GatePolicy())
