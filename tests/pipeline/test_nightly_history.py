"""Past runs as the dashboard finds them: pages, filters, histories and comparisons."""

import msgspec
import pytest

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.evaluation.gate import GatePolicy, Night
from agent_gym.pipeline.nightly.compared import ComparedMetric
from agent_gym.pipeline.nightly.history import RunFilter, RunHistory
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.workspace import Workspace
from scripts.seed_nights import seed_runs

RUNS = 120
NOW_NS = 1_794_000_000_000_000_000
NAME = "flash_crash/max_drawdown"
ATTACKS = ("' OR 1=1 --", '"; DROP TABLE nightly_runs; --', "%", "_", "\\", "x' UNION SELECT 1,2")


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nights")
    seed_runs(folder, RUNS, NOW_NS)
    return RunHistory(Workspace(folder))


def test_an_empty_workspace_has_no_runs(tmp_path):
    history = RunHistory(Workspace(tmp_path))
    assert history.page() == ()
    assert history.count() == 0
    assert history.last() is None
    assert history.suites() == ()
    assert history.report() is None
    assert not list(tmp_path.iterdir())  # looking makes nothing


def test_pages_together_are_all_runs_once(history):
    found = [row.run_id for at in range(0, RUNS, 50) for row in history.page(first=at, limit=50)]
    assert len(found) == len(set(found)) == RUNS == history.count()
    times = [row.created_at for row in history.page(limit=RUNS)]
    assert times == sorted(times, reverse=True)
    up = [row.run_id for row in history.page(limit=RUNS, descending=False)]
    assert up == found[::-1]
    lights = [row.light for row in history.page(limit=RUNS, sort="light")]
    assert lights == sorted(lights, reverse=True)


def test_filters_find_what_they_say(history):
    every = history.page(limit=RUNS)
    for light in ("good", "bad", "unsure"):
        wanted = [row.run_id for row in every if row.light == light]
        assert [row.run_id for row in history.page(RunFilter(light=light), limit=RUNS)] == wanted
        assert history.count(RunFilter(light=light)) == len(wanted)
    one = every[17]
    for said in (one.commit[:12].upper(), one.run_id[3:]):
        assert [row.run_id for row in history.page(RunFilter(text=said))] == [one.run_id]
    assert history.count(RunFilter(suite="another")) == 0
    assert history.last(light="good").light == "good"


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_is_asked_becomes_sql(history, attack):
    for chosen in (RunFilter(text=attack), RunFilter(suite=attack), RunFilter(verdict=attack)):
        assert history.count(chosen) == 0
    with pytest.raises(ConfigError, match="no run has this id"):
        history.get([attack])
    with pytest.raises(ConfigError, match="no such page"):
        history.page(sort=attack)
    if '"' in attack or "\\" in attack:
        with pytest.raises(ConfigError, match="cannot be the name of a metric"):
            history.metric("desk", attack, GatePolicy())
    else:
        assert history.metric("desk", attack, GatePolicy()).points == ()
    assert history.count() == RUNS


def test_a_metric_has_its_levels_and_baselines_marked(history):
    found = history.metric("desk", NAME, GatePolicy())
    assert found.total == len(found.points) == RUNS
    by_run = {row.run_id: row for row in history.page(limit=RUNS)}
    for point in found.points:
        assert point.value == by_run[point.run_id].values[NAME]
    places = [at for at, point in enumerate(found.points) if point.change]
    assert any(abs(at - (RUNS - 39)) <= 2 for at in places)  # where the level was moved
    assert found.points[-1].new_baseline
    assert [at for at, point in enumerate(found.points) if point.first_baseline] == [0]
    last = history.metric("desk", NAME, GatePolicy(), nights=10)
    assert [point.run_id for point in last.points] == [p.run_id for p in found.points[-10:]]


def noted(number, baseline):
    """A night as the ledger keeps it."""
    run_id, created = f"n{number}", f"2026-01-0{number + 1}T00:00:00Z"
    night = Night(run_id=run_id, created_at=created, values={NAME: 0.1})
    said = {"status": "complete", "light": "good", "baseline_id": baseline}
    return run_id, "desk", created, said | {"night": msgspec.to_builtins(night)}


def test_the_first_baseline_is_marked_once_and_only_where_it_is_first(tmp_path):
    with Ledger(tmp_path / "gym.db") as ledger:
        for night, baseline in enumerate((None, "one", "one", None, "one", "two")):
            ledger.record(*noted(night, baseline))
    history = RunHistory(Workspace(tmp_path))
    points = history.metric("desk", NAME, GatePolicy()).points
    assert [point.new_baseline for point in points] == [False, True, False, False, False, True]
    assert [point.first_baseline for point in points] == [False, True, *[False] * 4]
    late = history.metric("desk", NAME, GatePolicy(), nights=2).points
    assert [point.new_baseline for point in late] == [False, True]  # it was there before these
    assert not any(point.first_baseline for point in late)


def test_a_long_history_is_thinned_and_keeps_its_marks(history):
    whole, few = (
        history.metric("desk", NAME, GatePolicy(), points=points) for points in (1_000, 30)
    )
    assert few.total == RUNS
    assert len(few.points) < 50
    marked = {point.run_id for point in whole.points if point.change or point.new_baseline}
    assert marked <= {point.run_id for point in few.points}


def test_runs_are_compared_with_the_first(history):
    runs = history.page(limit=3)
    compared = {each.name: each for each in history.compare(runs)}
    assert set(compared) == set(runs[0].values)
    one = compared[NAME]
    assert one.direction == "down"
    assert one.values == tuple(row.values[NAME] for row in runs)
    assert one.changes[0] == 0.0
    assert one.changes[1] == one.values[1] - one.values[0]
    assert one.worst == max(one.changes[1:]) / one.values[0]
    up = compared["flash_crash/fill_rate"]
    assert up.worst == max(-change for change in up.changes[1:]) / up.values[0]
    same = history.compare((runs[0], runs[0]))
    assert not any(each.changed for each in same)
    assert one.tolerated == pytest.approx(0.05 * abs(one.values[0]))  # as the seeded report says


def test_what_is_tolerated_is_no_change():
    def metric(*values, tolerated=0.5):
        changes = tuple(None if each is None else each - values[0] for each in values)
        return ComparedMetric("s/m", "up", values, changes, None, tolerated)

    assert not metric(10.0, 10.5, 9.5).changed
    assert metric(10.0, 10.4, 9.4).changed
    assert metric(10.0, None).changed
    assert metric(10.0, 10.1, tolerated=None).changed  # it differs,
    assert not metric(10.0, 99.0, tolerated=None).beyond(89.0)  # but nobody calls it good or bad
    assert [metric(10.0).beyond(each) for each in (None, 0.5, -0.6)] == [False, False, True]


def test_what_cannot_be_read_is_said(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.ledger.write_text("this is no database" * 100)
    with pytest.raises(StoreError, match="cannot be read"):
        RunHistory(workspace).page()
    report = workspace.outputs(planted=False)["report"]
    report.parent.mkdir(parents=True)
    report.write_text("{")
    with pytest.raises(DataError, match="a report cannot be read"):
        RunHistory(workspace).report()


def test_looking_goes_on_while_a_run_writes(tmp_path):
    workspace = Workspace(tmp_path)
    seed_runs(tmp_path, 5, NOW_NS)
    history = RunHistory(workspace)
    with Ledger(workspace.ledger) as ledger:
        (last,) = ledger.nights("desk", 1)
        for number in range(3):
            body = last | {
                "run_id": f"later-{number}",
                "created_at": f"2030-01-0{number + 1}T00:00:00Z",
            }
            ledger.record(body["run_id"], "desk", body["created_at"], body)
            assert history.last().run_id == f"later-{number}"
