"""Whatever a player does, it costs its own episode and not a digit of anybody else's."""

import pytest

from agent_gym.core.registry import Ref
from agent_gym.evaluation.benchmark.runner import BenchmarkJob, BenchmarkRunner, RunnerConfig
from tests.envs.benchmark_samples import made
from tests.evaluation import nuisance_samples

TICKS = 40


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return made(0).save(tmp_path_factory.mktemp("snapshots"))


def alone(name, path, **given):
    """Play one episode here, without other processes."""
    return BenchmarkJob(player=name, snapshot=path, agent=Ref(use=name), **given).run()


def told(row):
    return {name: value for name, value in row.items() if name != "timing"}


def test_a_flood_and_an_early_end_leave_the_rows_of_others_as_they_are(path):
    config = RunnerConfig(
        workers=2,
        timeout_s=20.0,
        imports=(nuisance_samples.__name__,),
        optimum=False,
        max_calls=100,
    )
    good, bad = ("benchmark/random", "benchmark/sentiment"), ("nuisance/flood", "nuisance/quits")
    agents = {name: Ref(use=name) for name in (*bad, *good)}
    rows = {row["player"]: row for row in BenchmarkRunner(config).run([path], agents).rows}
    assert [rows[name]["status"] for name in bad] == ["timeout", "crashed"]
    assert all(rows[name]["return"] is None and rows[name]["error"] for name in bad)
    for name in good:
        assert told(rows[name]) == told(alone(name, path, max_calls=100))
        assert rows[name]["return"] != 0.0


@pytest.mark.parametrize("name", ["nan", "huge", "nested"])
def test_garbage_is_counted_and_trades_nothing(path, name):
    row = alone(f"nuisance/{name}", path)
    assert (row["status"], row["steps"], row["return"]) == ("ok", TICKS, 0.0)
    assert row["metrics"]["invalidCalls"] == TICKS
    assert row["problems"] == []


@pytest.mark.parametrize("name", ["trap", "no-decision"])
def test_what_is_no_decision_is_a_failed_row(path, name):
    row = alone(f"nuisance/{name}", path)
    assert row["status"] == "error"
    assert row["error"]["what"]
    assert "metrics" not in row
