"""What a stranger tries: wrong addresses, a page without its scripts, every click on a list."""

import logging
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Page, Visit, view_of
from agent_gym.apps.dashboard.words import Words
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.pipeline.nightly.history import RunHistory
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.rollouts.database import TrajectoryStore
from tests.apps.dashboard_samples import TRAJECTORIES
from tests.reporting.browsing import needs_browser

EARLY = """
    const text = await (await fetch(arguments[0])).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const said = (part) => part.textContent.replace(/\\s+/g, " ").trim();
    const rows = (root) => [...root.querySelectorAll("h1, tbody tr, .banner, .facts")].map(said);
    return [rows(page.querySelector("#early")), rows(document.querySelector("#app"))];
"""
TYPED = """
    const early = document.createElement("div");
    early.id = "early";
    early.append(document.querySelector("#app .frame").cloneNode(true));
    early.querySelector("#text").value = arguments[0];
    document.body.prepend(early);
"""
# The first view, put back, stays as long as the live page has no blocks.
HELD = """
    const early = document.createElement("div");
    early.id = "early";
    early.append(document.querySelector("#app .frame").cloneNode(true));
    document.querySelector("#app .blocks").classList.replace("blocks", "held");
    document.body.prepend(early);
    early.querySelector("#text").focus();
"""
LET_GO = """
    document.querySelector("#app .held").classList.replace("held", "blocks");
    document.body.append(document.createElement("i"));
"""
SEEN = """
    const seen = (each) => each.checkVisibility({ visibilityProperty: true });
    return [document.documentElement.scrollHeight, [...document.querySelectorAll("h1")].map(seen),
        document.querySelector("#app .content").offsetWidth];
"""

AGO = re.compile(r"\d+ \w+ ago")  # a minute may end between two looks


def query(reader):
    return parse_qs(urlsplit(reader.driver.current_url).query)


@pytest.fixture
def quiet(reader):
    """No page asks another host for anything, and none has anything to complain about."""
    yield
    assert reader.complaints() == []
    assert reader.hosts() <= {urlsplit(reader.site.url).netloc}


def test_what_nobody_foresaw_is_told_with_a_mark_that_the_log_has_too(caplog):
    def broken(_visit):
        raise ZeroDivisionError("<b>secret</b>")

    visit = Visit(None, Query.of("/dashboard/x", []), Words("en"), "read", "id", "name")
    with caplog.at_level(logging.ERROR):
        view = view_of(Page("/x", "runs", broken), visit)
    assert (view.status, view.found) == (500, False)
    said = view.blocks[0].html
    assert "Something unforeseen" in said
    assert "secret" not in said
    mark = said.partition("more about ")[2][:8]
    assert mark in caplog.text
    assert "ZeroDivisionError" in caplog.text


@needs_browser
def test_an_address_that_is_none_is_told_in_the_frame_of_all_pages(reader):
    for path in ("nothing", "runs/nothing", "%3Cimg%20src=x%20onerror=alert(1)%3E"):
        reader.driver.get(f"{reader.site.url}/dashboard/{path}")
        assert reader.text("h1") == "There is no such page"
        assert "404" in " ".join(reader.complaints())
        assert not reader.all("#main img")
    listed = [page for page in PAGES if page.listed]
    assert len(reader.all(".side nav a")) == len(listed)
    reader.one("#main a").click()
    reader.until(".banner")
    assert reader.complaints() == []
    assert reader.hosts() <= {urlsplit(reader.site.url).netloc}


@needs_browser
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("path", ["/", "/runs", "/scenarios", "/models", "/data"])
def test_the_first_view_says_what_the_live_page_says(reader, path):
    reader.open(f"/dashboard{path}")
    early, live = reader.script(
        f"return (async () => {{{EARLY}}})(...arguments)", f"/dashboard{path}"
    )
    assert len(live) > 1
    assert [AGO.sub("ago", each) for each in early] == [AGO.sub("ago", each) for each in live]


@needs_browser
def test_a_page_can_be_read_and_filtered_without_its_library(reader):
    reader.driver.execute_cdp_cmd("Network.enable", {})
    reader.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/static/nicegui.js"]})
    try:
        wanted = RunHistory(Workspace(reader.site.folder)).page(limit=1, first=7)[0]
        reader.driver.get(f"{reader.site.url}/dashboard/runs")
        assert reader.one("#early h1").is_displayed()
        reader.one("#text").send_keys(wanted.commit[:9])
        reader.one(".filters button").click()
        reader.wait.until(lambda _: query(reader).get("text") == [wanted.commit[:9]])
        assert [row[0] for row in reader.cells("#early")] == [wanted.run_id]
    finally:
        reader.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        reader.open("/dashboard/")
        reader.complaints()  # of the file that was kept away


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_what_was_typed_before_a_page_was_live_stays(reader):
    reader.open("/dashboard/runs")
    reader.script(TYPED, "half a word")
    reader.wait.until(lambda _: reader.live())
    assert reader.one("#text").get_attribute("value") == "half a word"


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_a_page_that_becomes_live_is_there_once(reader):
    reader.open("/dashboard/runs")
    height, shown, width = reader.script(SEEN)
    assert shown == [True]
    reader.script(HELD)
    assert reader.script(SEEN) == [height, [True, False], width]  # charts have their width already
    reader.script(LET_GO)
    reader.wait.until(lambda _: reader.live())
    assert reader.script(SEEN) == [height, [True], width]
    assert reader.script("return document.activeElement.id") == "text"


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_lists_are_sorted_turned_and_paged_by_clicks(reader):
    history = RunHistory(Workspace(reader.site.folder))
    reader.open("/dashboard/runs")
    reader.one("thead a[href*='sort=run_id']").click()
    reader.wait.until(lambda _: query(reader).get("sort") == ["run_id"])
    reader.until("#runs")
    reader.one("thead a[href*='sort=run_id']").click()
    reader.wait.until(lambda _: query(reader).get("order") == ["up"])
    reader.until("th[aria-sort=ascending]")
    wanted = history.page(sort="run_id", descending=False, limit=50)
    assert [row[0] for row in reader.cells("#runs")] == [row.run_id for row in wanted]
    reader.open("/dashboard/trajectories")
    first = [row[0] for row in reader.cells(".wide")]
    reader.one(".pager a[href*=after]").click()
    reader.wait.until(lambda _: "after" in query(reader))
    reader.until(".wide")
    rest = [row[0] for row in reader.cells(".wide")]
    assert len(first) + len(rest) == TRAJECTORIES + 1
    assert not set(first) & set(rest)


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_the_nights_of_a_metric_and_a_step_are_chosen_by_a_click(reader, site):
    reader.open("/dashboard/scenarios?suite=desk&metric=flash_crash/max_drawdown")
    reader.script(
        "const box = document.querySelector('#choose-nights'); box.value = '90';"
        "box.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    reader.wait.until(lambda _: query(reader).get("nights") == ["90"])
    assert len(reader.chart("history")["series"][0]["data"]) == 90
    name = site.names["trajectory"]
    reader.open(f"/dashboard/replay?id={name}&step=7")
    reader.one(".wide a[href*='step=9']").click()
    reader.until_text("#step", "9 / 599")
    with TrajectoryStore.open(folder=site.folder / "trajectories") as store:
        assert reader.text("#rationale") == store.steps(name).rationale[9]


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_runs_are_compared_by_name_if_asked(reader):
    ids = [row.run_id for row in RunHistory(Workspace(reader.site.folder)).page(limit=2)]
    reader.open(f"/dashboard/compare?run={ids[0]}&run={ids[1]}&sort=name")
    names = [row[0].split()[0] for row in reader.cells(".wide")]
    assert names == sorted(names)
    assert len(names) == 30


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_data_sets_are_those_of_the_folder(reader, site):
    reader.open("/dashboard/data")
    kept = {}
    for path in (site.folder / "snapshots" / "train").glob("*.snapshot.xz"):
        found = load_snapshot(path)
        sizes = (found.predictions, found.perpetuals, found.posts)
        kept[found.id[:12]] = [str(found.ticks), *(str(len(each)) for each in sizes)]
    assert len(kept) == 3
    assert {row[0]: row[2:6] for row in reader.cells(".wide")} == kept


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_where_there_is_no_way_back_no_button_promises_one(reader, site):
    reader.open(f"/dashboard/models?model={site.names['champion']}")
    assert not reader.all("#rollback")
    reader.open("/dashboard/models?model=v1.0.2")
    assert reader.all("#why-not")  # the gate has refused it
    assert not reader.all("#deploy")
    assert not reader.all("#rollback")  # it never served, so nothing can return to it
    reader.open("/dashboard/models")
    assert reader.text("#champion") == "v1.0.0"


@needs_browser
@pytest.mark.usefixtures("quiet")
def test_who_cannot_see_is_told_where_he_is(reader):
    reader.open("/dashboard/runs")
    assert reader.one("[role=main]").get_attribute("id") == "main"
    regions = reader.script(
        "return [...document.querySelectorAll('[role=region]')].map((r) => r.ariaLabel)"
    )
    assert regions == ["Runs"]
    reader.open("/dashboard/login")  # who is in already need not come in again
    assert reader.text("h1") == "Home"
