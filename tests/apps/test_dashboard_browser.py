"""Pages in a real browser: what they show is what the stores say, and nothing leaves the host."""

from urllib.parse import parse_qs, urlsplit

import pytest

from agent_gym.apps.dashboard.parts import SIGNS
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.pipeline.nightly.history import RunFilter, RunHistory
from agent_gym.pipeline.nightly.trends import trends
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.text import number
from tests.apps.dashboard_samples import RUNS, TRAJECTORIES
from tests.reporting.browsing import needs_browser

pytestmark = needs_browser


@pytest.fixture(scope="module")
def history(site):
    return RunHistory(Workspace(site.folder))


@pytest.fixture(autouse=True)
def quiet(request):
    """No page asks another host for anything, and none has anything to complain about."""
    yield
    if "reader" in request.fixturenames:
        reader = request.getfixturevalue("reader")
        assert reader.complaints() == []
        assert reader.hosts() <= {urlsplit(reader.site.url).netloc}


def query(reader):
    return parse_qs(urlsplit(reader.driver.current_url).query)


def test_who_has_no_token_sees_a_form_and_who_has_one_comes_in(reader, site):
    reader.forget()
    reader.driver.get(f"{site.url}/dashboard/runs?light=bad")
    assert "needs a token" in reader.text("main")
    reader.one("#token").send_keys("agym_00000000_" + "x" * 43)
    reader.one("button").click()
    reader.until(".wrong")
    reader.one("#token").send_keys(site.tokens["read"])
    reader.one("button").click()
    reader.until("#runs")
    assert query(reader) == {"light": ["bad"]}  # where one wanted to go in the first place
    reader.one("form[action$=logout] button").click()
    reader.until("#token")
    assert urlsplit(reader.driver.current_url).path == "/dashboard/login"
    reader.driver.get(f"{site.url}/dashboard/runs")
    reader.until("#token")
    said = reader.complaints()  # a page was refused, a token was wrong, a page was refused
    assert ["status of 401" in each for each in said] == [True] * 3
    reader.login()


def test_home_answers_whether_the_night_was_good(reader, site, history):
    reader.open("/dashboard/")
    last, diff = history.last(), history.diff()
    assert last.run_id == site.names["run"]
    banner = reader.text(".banner")
    assert "bad" in reader.one(".banner").get_attribute("class")
    assert diff["headline"] in banner
    assert diff["why"] in banner
    assert last.run_id in banner
    assert history.last(light="good").run_id in reader.text("#last-success")
    assert reader.text("#champion") == "v1.0.0"
    assert reader.text("#readiness") == "1 of 4"
    assert reader.text("#trajectories") == str(TRAJECTORIES + 1)
    attention = reader.text("#attention")
    for finding in diff["regressions"]:
        assert finding["id"] in attention
    lights = [each.get_attribute("class") for each in reader.all(".strip a")]
    nights = history.page(limit=60)[::-1]
    assert lights == [row.light for row in nights]
    assert reader.texts(".strip a") == [SIGNS[row.light] for row in nights]
    moved = trends(nights, history.directions())
    assert moved[0].name == "flash_crash/max_drawdown"
    assert reader.texts("#trends li a") == [each.name for each in moved]
    assert f"last {number(moved[0].values[-1])}" in reader.text("#trends li")


def test_runs_are_paged_filtered_and_sorted(reader, history):
    reader.open("/dashboard/runs")
    assert [row[0] for row in reader.cells("#runs")] == [
        row.run_id for row in history.page(limit=50)
    ]
    assert f"1 to 50 of {RUNS}" in reader.text(".pager")
    reader.one("[aria-label='Next page']").click()
    reader.until_text(".pager", "51 to 100")
    assert query(reader)["page"] == ["2"]
    bad = RunFilter(light="bad")
    reader.open("/dashboard/runs?light=bad&sort=created_at&order=up")
    assert [row[0] for row in reader.cells("#runs")] == [
        row.run_id for row in history.page(bad, descending=False, limit=50)
    ]
    assert f"of {history.count(bad)}" in reader.text(".pager")
    wanted = history.page(limit=1, first=7)[0]
    reader.one("#text").clear()
    reader.one("#text").send_keys(wanted.commit[:9])
    reader.script("document.querySelector('#choose-light').value = ''")
    reader.one(".filters button").click()
    reader.until_text(".pager", "1 to 1 of 1")
    assert query(reader)["text"] == [wanted.commit[:9]]
    assert "light" not in query(reader)
    reader.open("/dashboard/runs?text=nothing-is-called-so")
    assert "No run fits this filter" in reader.text(".empty")


def test_marked_runs_are_compared_worst_first_and_only_changed(reader, history):
    reader.open("/dashboard/runs")
    ids = [row.run_id for row in history.page(limit=3)]
    for run_id in ids:
        reader.one(f"[id='run-{run_id}']").click()
    reader.one("#compare").click()
    reader.until_text("h1", "Compare runs")
    assert query(reader)["run"] == ids
    compared = history.compare(history.get(ids[::-1]))  # the oldest is the reference
    worst = sorted(compared, key=lambda each: -each.worst)
    rows = reader.cells(".wide")
    assert [row[0].split()[0] for row in rows] == [each.name for each in worst]
    assert rows[0][1] == number(worst[0].values[0])
    assert rows[0][2].splitlines()[0] == number(worst[0].values[1])
    painted = reader.all("#compared tbody .worse, #compared tbody .better")
    beyond = [each.beyond(change) for each in compared for change in each.changes]
    assert 0 < len(painted) == sum(beyond) < len(beyond)
    assert reader.text("nav [aria-current=page]") == "Runs"
    reader.one("thead a[href*=reference]").click()
    reader.wait.until(lambda _: query(reader).get("reference") == [ids[1]])
    reader.until(".content h1")
    turned = history.compare(history.get([ids[1], ids[2], ids[0]]))
    first = max(turned, key=lambda each: each.worst)
    top = reader.cells(".wide")[0]
    assert (top[0].split()[0], top[1]) == (first.name, number(first.values[0]))
    same = ids[0]
    reader.open(f"/dashboard/compare?run={same}&run={ids[1]}")
    reader.one("#changed").click()
    reader.wait.until(lambda _: query(reader).get("changed") == ["1"])
    reader.until(".content h1")
    changed = [each.name for each in history.compare(history.get(ids[:2])) if each.changed]
    assert {row[0].split()[0] for row in reader.cells(".wide")} == set(changed)
    assert "several runs" in reader.refused(f"/dashboard/compare?run={same}")


def test_a_metric_is_shown_over_time_with_its_marks(reader, history):
    name = "flash_crash/max_drawdown"
    found = history.metric("desk", name, GatePolicy())
    reader.open(f"/dashboard/scenarios?suite=desk&metric={name}")
    option = reader.chart("history")
    drawn = option["series"][0]["data"]
    assert [value for _, value in drawn] == pytest.approx([point.value for point in found.points])
    changes = [point for point in found.points if point.change]
    assert changes
    lines = option["series"][0]["markLine"]["data"]
    assert sorted(each["xAxis"] for each in lines if each["name"] == "new level") == [
        point.created_at for point in changes
    ]
    marked = {row[0]: row[4] for row in reader.cells(".wide")}
    for point in changes:
        assert "new level" in marked[point.run_id]


def test_one_run_is_shown_with_what_the_gate_found(reader, site, history):
    run_id = site.names["run"]
    reader.open(f"/dashboard/run?id={run_id}")
    diff = history.run_diff(run_id)
    assert diff["headline"] in reader.text(".facts")
    shown = reader.text("#main")
    for finding in diff["regressions"]:
        assert finding["id"] in shown
    assert "no run has this id" in reader.refused("/dashboard/run?id=../../etc/passwd")
