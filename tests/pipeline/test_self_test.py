"""The gate's self-tests on a small suite of real scenarios: faults are found, luck is not."""

import json
from pathlib import Path

import numpy as np
import pytest
from nightly_samples import stand_still, without_processes
from typer.testing import CliRunner

from agent_gym.apps.cli import gate as command
from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Nanos, Observation
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios.plants import PLANTS
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly import Workspace, same_code, self_test, self_test_jobs
from agent_gym.pipeline.nightly.luck import LuckConfig, LuckySmaCross, lucky_subject
from agent_gym.pipeline.nightly.same_code import LuckJob, RerunJob, same_code_study
from agent_gym.pipeline.nightly.self_test import PlantJob, fault_study, known_plants, scenarios_of
from agent_gym.pipeline.nightly.self_test_jobs import SelfTest, approved_baseline

POLICY = GatePolicy(n_confirm=8, max_confirm=8)
DATE = "2026-11-16"
SUITE = Suite(
    id="small",
    scenarios=(
        ScenarioConfig(
            name="signals",
            type="signal_throughput",
            hours=1,
            n_seeds=8,
            params={"rate_per_hour": 120, "floods": 0},
        ),
        ScenarioConfig(name="gap", type="price_gap", hours=36, n_seeds=8),
    ),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    without_processes(monkeypatch.setattr)


@pytest.fixture
def asked(tmp_path):
    workspace = Workspace(tmp_path / "home")
    approved_baseline(workspace, SUITE, workers=1)
    return SelfTest(workspace, SUITE, DATE, workers=1, policy=POLICY)


@pytest.fixture
def no_replay(monkeypatch):
    monkeypatch.setattr(self_test, "run_printed", lambda *_: {"reproduced": True})


def plant(asked, name):
    return PlantJob(**asked.of_a_job(), plant=name).run()


def test_a_fault_is_caught_blamed_and_shown_again_by_the_printed_command(asked, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # for the sources it asks after
    row = plant(asked, "signals_dropped")
    assert (row["caught"], row["blamed_right"], row["replayed"]) == (True, True, True)
    assert row["first"] == "signals/dropped_signals"
    assert row["control"] == "gap"
    assert row["false_blame"] == []
    replay = row["replay"]
    assert replay["command"].startswith(f"agent-gym replay {row['run_id']} signals ")
    assert replay["figure"]["replayed"] > replay["figure"]["baseline"] == 0.0
    assert row["says"] == "caught, blamed_right, replayed"


def test_a_fault_that_only_fresh_seeds_can_prove_is_caught(asked, no_replay):
    row = plant(asked, "latency_up")
    assert row["blamed"]["signals/latency_p50_ms"] == "regression"
    assert row["blamed_right"]
    assert row["fresh_seeds"] == {"signals": 16}  # confirmed, and confirmed again


def test_a_fault_that_no_scenario_shows_is_missed(asked, no_replay):
    row = plant(asked, "breaker_stuck")
    assert (row["caught"], row["blamed_right"], row["replayed"]) == (False, False, False)
    assert (row["verdict"], row["says"], row["first"]) == ("pass", "MISSED", None)
    document = fault_study(asked, ["breaker_stuck"], say=lambda _: None)
    assert document["meets_target"] is False
    assert document["all"] == {
        "planted": 1,
        "caught": 0,
        "blamed_right": 0,
        "replayed": 0,
        "right_first": 0,
        "false_blame": 0,
    }


def test_what_is_not_the_fault_of_the_plant_is_told_apart(asked, no_replay, monkeypatch):
    other = PLANTS["signals_dropped"].__class__("x", "x", "desk", ("signal_throughput/queue_max",))
    monkeypatch.setattr(self_test, "PLANTS", {"signals_dropped": other})
    row = plant(asked, "signals_dropped")
    assert (row["caught"], row["blamed_right"], row["right_first"]) == (True, False, False)
    assert "signals/dropped_signals" in row["also"]


def test_what_was_done_is_not_done_again(asked, no_replay, monkeypatch):
    first = plant(asked, "latency_up")
    monkeypatch.setattr(PlantJob, "work", None)
    said = []
    document = fault_study(asked, ["latency_up"], said.append)
    assert document["faults"]["latency_up"] == first
    assert said == ["1 of 1 were done before"]
    assert (document["meets_target"], document["date"]) == (True, DATE)
    assert document["code"]["code_hash"] == "c0de"
    json.dumps(document, allow_nan=False)


def test_code_that_changes_under_way_is_no_result(asked, monkeypatch):
    changed = lambda *_, **__: stand_still(code_hash="other")  # noqa: E731
    monkeypatch.setattr("agent_gym.pipeline.nightly.prepare.code_identity", changed)
    with pytest.raises(AgentGymError, match="changed while"):
        plant(asked, "latency_up")


def test_a_piece_that_fails_fails_the_study(asked, monkeypatch):
    class Executor:
        def __init__(self, *_, **__): ...

        def run(self, jobs, _):
            rows = [job.lost("error", {"what": "it broke"}) for job in jobs]
            return type("Batch", (), {"rows": rows, "status": "complete"})

    monkeypatch.setattr(self_test_jobs, "make_executor", Executor)
    with pytest.raises(AgentGymError, match="self-test failed"):
        fault_study(asked, ["latency_up"], say=lambda _: None)


def test_every_plant_has_scenarios_and_a_control_in_the_default_suite():
    suite = command.default_suite()
    for each in PLANTS.values():
        chosen, control = scenarios_of(each, suite)
        assert len(chosen) > 1
        blamed = {name.partition("/")[0] for name in each.blamed}
        assert control in {scenario.name for scenario in chosen if scenario.type not in blamed}


def test_unknown_faults_are_refused_before_anything_is_played():
    assert known_plants([]) == list(PLANTS)
    with pytest.raises(ConfigError, match="latency_up"):
        known_plants(["latency_upp"])


def test_luck_alone_is_flagged_and_never_a_regression(asked):
    fields = asked.of_a_job()
    rows = [LuckJob(**fields, number=number).run() for number in range(3)]
    assert [row["regressions"] + row["errors"] for row in rows] == [[], [], []]
    assert all(row["flagged"] > 0 for row in rows)
    assert all(row["fresh_seeds"] for row in rows)
    assert any(row["one_seed"] > 0 for row in rows)  # a naive gate would have cried
    assert sorted(salt for row in rows for salt in row["salts"]) == [1, 2, 3, 4, 5, 6]


def test_the_same_code_is_recognised_night_after_night(asked):
    nights = [RerunJob(**asked.of_a_job() | {"date": f"2026-11-1{day}"}) for day in (7, 8)]
    rows = [night.run() for night in nights]
    for row in rows:
        assert row["says"] == "quiet"
        assert set(row["night"]["words"]) == set(row["fresh"]["words"]) == {"unchanged"}
        assert all(len(seeds) == 2 for seeds in row["played_again"].values())
    assert rows[0]["fresh_seeds"] != rows[1]["fresh_seeds"]


def night_row(words="unchanged", regressions=()):
    said = {"words": {words: 3}, "regressions": list(regressions)}
    return {"name": "n", "night": said, "fresh": said}


def luck_row(flagged=3, regressions=()):
    counts = {"tested": 9, "flagged": flagged, "unconfirmed": 0, "one_seed": 1}
    lists = {"regressions": list(regressions), "errors": [], "improvements": []}
    return {"name": "l", **counts, **lists}


@pytest.mark.parametrize(
    ("night", "luck", "met"),
    [
        (night_row(), luck_row(), True),
        (night_row("regression", ["a/b"]), luck_row(), False),
        (night_row("no_difference_seen"), luck_row(), False),
        (night_row(), luck_row(regressions=["a/b"]), False),
        (night_row(), luck_row(flagged=0), False),
    ],
)
def test_an_alarm_or_a_test_that_cannot_fail_misses_the_target(
    asked, monkeypatch, night, luck, met
):
    monkeypatch.setattr(same_code, "do_all", lambda *_: [night, night, luck, luck])
    document = same_code_study(asked, 2, say=lambda _: None)
    assert document["meets_target"] is met
    assert document["luck"]["upper95"] == pytest.approx(
        0.7764 if not luck["regressions"] else 1.0, abs=1e-4
    )


def test_the_lucky_agent_decides_alike_at_once_and_step_by_step():
    close = 100.0 + np.cumsum(Seeds(3).rng().normal(size=400))
    start = EpisodeStart("trader", ("close",), ActionSpec(), Seeds(5), Nanos(1))

    def series(salt, n=400):
        return LuckySmaCross(LuckConfig(salt=salt)).targets(start, {"close": close[:n]})

    agent = LuckySmaCross(LuckConfig(salt=1))
    agent.reset(start)
    steps = [agent.act(Observation(Nanos(t), close[t : t + 1])).action for t in range(400)]
    assert steps == series(1).tolist()
    assert series(1)[:200].tolist() == series(1, 200).tolist()  # what comes later changes nothing
    assert series(1).tolist() != series(2).tolist()
    assert lucky_subject(1).agent.params == {"salt": 1}


def test_the_commands_print_write_and_tell_the_target(monkeypatch, tmp_path):
    row = {
        "caught": True,
        "blamed_right": False,
        "right_first": False,
        "first": "a/b",
        "replayed": True,
        "seconds": 1.5,
    }
    counts = {"planted": 1, "caught": 1, "blamed_right": 0, "replayed": 1}
    counts |= {"right_first": 0, "false_blame": 0}
    faults = {"faults": {"x": row}, "desk_and_venue": counts, "all": counts, "meets_target": False}
    same = {
        "reruns": {"n": 2, "with_regressions": 0},
        "luck": {
            "n": 2,
            "with_regressions": 0,
            "upper95": 0.78,
            "metrics_flagged": 5,
            "metrics_tested": 90,
        },
        "meets_target": True,
    }
    monkeypatch.setattr(command, "_self_test", lambda *_: None)
    monkeypatch.setattr(command, "fault_study", lambda *_: faults)
    monkeypatch.setattr(command, "same_code_study", lambda *_: same)
    runner, out = CliRunner(), tmp_path / "out.json"
    missed = runner.invoke(command.app, ["faults", "--out", str(out)])
    assert (missed.exit_code, "NO" in missed.stdout) == (1, True)
    assert json.loads(out.read_text())["command"].startswith("agent-gym")
    met = runner.invoke(command.app, ["same-code", "--json"])
    assert met.exit_code == 0
    assert json.loads(met.stdout)["luck"]["n"] == 2
    assert isinstance(
        runner.invoke(command.app, ["faults", "--only", "nosuch"]).exception, ConfigError
    )
