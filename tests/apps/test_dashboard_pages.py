"""Backtests, replays, trainings, models, battles, data and settings in a real browser."""

import json
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from agent_gym.apps.api.routes.common import ADMIN_REQUEST
from agent_gym.evaluation.battle import read_header, replays_in
from agent_gym.evaluation.figures import FIGURES
from agent_gym.reporting.rl.overview import experiment_progress
from agent_gym.reporting.text import number, percent
from agent_gym.rollouts.database import TrajectoryStore
from tests.apps.dashboard_samples import STEPS, TRAJECTORIES
from tests.reporting.browsing import needs_browser

pytestmark = needs_browser
KEYS = {"right": "\ue014", "left": "\ue012", "end": "\ue010", "home": "\ue011", "down": "\ue00f"}


@pytest.fixture(scope="module")
def store(site):
    with TrajectoryStore.open(folder=site.folder / "trajectories") as opened:
        yield opened


@pytest.fixture(autouse=True)
def quiet(reader):
    """No page asks another host for anything, and none has anything to complain about."""
    yield
    assert reader.complaints() == []
    assert reader.hosts() <= {urlsplit(reader.site.url).netloc}


def press(reader, name):
    reader.one("body").send_keys(KEYS[name])


def test_a_backtest_shows_candles_trades_and_curves_on_one_zoom(reader, site):
    folder = site.folder / "backtests" / "rules-momentum"
    results = json.loads((folder / "results.json").read_text())
    reader.open("/dashboard/agents")
    reader.one("a[href*='name=rules-momentum']").click()
    reader.until_text("h1", "Backtest of rules/momentum")
    option = reader.chart("linked")
    kept = json.loads((folder / "charts.json").read_text())["linked"]
    by_name = {each["name"]: each for each in option["series"]}
    for each in kept["series"]:
        assert len(by_name[each["name"]]["data"]) == len(each["data"])
    assert by_name["price"]["type"] == "candlestick"
    assert len(by_name["bought"]["data"]) + len(by_name["sold"]["data"]) == 226
    assert len(option["grid"]) == 4
    assert option["dataZoom"][0]["xAxisIndex"] == [0, 1, 2, 3]
    table = {row[0]: row[1:] for row in reader.cells(".wide")}
    sharpe = next(figure for figure in FIGURES if figure.name == "sharpe")
    assert table[sharpe.heading][0] == sharpe.format(results["metrics"]["sharpe"])
    assert results["equity_hash"] in reader.text(".facts")
    states = json.loads((folder / "regimes.json").read_text())["states"]
    for each in states:
        told = [percent(each["market"]), percent(each["arms"]["rules/momentum"])]
        assert table[each["name"]][:3] == [f"{100 * each['share']:.1f} %", *told]
    assert len(by_name["price"]["markArea"]["data"]) > len(states)
    assert "there is no such backtest" in reader.refused("/dashboard/agents?name=../..")


def test_names_in_heads_stay_as_they_are_and_formulas_need_no_mouse(reader):
    reader.open("/dashboard/agents?name=rules-momentum")
    shape = (
        "return [...document.querySelectorAll('thead th')].map((head) =>"
        " getComputedStyle(head, '::first-letter').textTransform)"
    )
    assert set(reader.script(shape)) == {"none"}
    assert "rules/momentum" in reader.texts("thead th")
    sharpe = next(figure for figure in FIGURES if figure.name == "sharpe")
    row = reader.driver.find_element("xpath", f"//details[summary='{sharpe.heading}']")
    formula = row.find_element("css selector", "p")
    assert not formula.is_displayed()
    row.find_element("css selector", "summary").send_keys("\ue007")
    reader.wait.until(lambda _: formula.is_displayed())
    assert formula.text == sharpe.formula


def test_trajectories_are_found_by_filter(reader, site, store):
    reader.open("/dashboard/trajectories?sort=n_steps")
    rows = reader.cells(".wide")
    assert rows[0][5] == f"{STEPS:,}"
    assert f"{len(rows)} of {TRAJECTORIES + 1}" in reader.text(".pager")
    reader.open("/dashboard/trajectories?agent=rules/breakout")
    (row,) = reader.cells(".wide")
    found = store.get(site.names["long_trajectory"])
    assert row[0] == found.trajectory_id[:12]
    assert row[6] == number(found.total_reward)
    reader.open("/dashboard/trajectories?agent=nobody")
    assert "No trajectory fits" in reader.text(".empty")


def test_a_trajectory_is_walked_through_with_keys_and_buttons(reader, site, store):
    name = site.names["trajectory"]
    steps = store.steps(name)
    reader.open(f"/dashboard/replay?id={name}&step=7")

    def shows(step):
        reader.until_text("#step", f"{step:,} / {len(steps) - 1:,}")
        assert reader.text("#rationale") == steps.rationale[step]
        assert reader.text("#seen") == steps.text[step]
        assert reader.text("#action") == number(float(steps.action[step, 0]), 6)
        assert reader.text("#reward") == number(float(steps.reward[step]), 6)
        assert parse_qs(urlsplit(reader.driver.current_url).query)["step"] == [str(step)]
        shown = reader.text(".steps")
        assert number(float(steps.signals["confidence"][step]), 6) in shown
        assert number(float(steps.observation[step, 2]), 6) in shown

    shows(7)
    for key, step in (("right", 8), ("right", 9), ("left", 8), ("end", 599), ("home", 0)):
        press(reader, key)
        shows(step)
    reader.one("[data-move=next]").click()
    shows(1)
    press(reader, "right")  # the button has the focus, the keys still work
    shows(2)
    reader.one("[data-move=far_next]").click()
    shows(102)
    reader.driver.refresh()
    reader.until(".content h1")
    shows(102)  # the address holds the state
    assert reader.text(".score") == "0.73"
    assert "cut its losses" in reader.text("#main")
    drawn = reader.chart("reward")["series"][0]["data"]
    assert drawn[-1][1] == pytest.approx(float(steps.reward.sum()))


def test_the_long_trajectory_is_thinned_and_opened_anywhere(reader, site, store):
    name = site.names["long_trajectory"]
    reader.open(f"/dashboard/replay?id={name}&step={STEPS // 2}")
    part = store.steps_part(name, STEPS // 2, 1)
    assert reader.text("#reward") == number(float(part.reward[0]), 6)
    assert len(reader.chart("reward")["series"][0]["data"]) < 2_500
    assert "there is no such trajectory" in reader.refused("/dashboard/replay?id=nothing")


def test_a_training_shows_every_seed(reader, site):
    reader.open("/dashboard/training")
    seeds = experiment_progress(site.folder, "lander")
    rows = reader.cells(".wide")
    assert [row[:3] for row in rows] == [[s.arm, str(s.seed), s.status] for s in seeds]
    assert [row[4] for row in rows] == [number(s.score) for s in seeds]
    assert f"{seeds[2].steps:,} / {seeds[2].total:,}" in rows[2][3]
    series = reader.chart("curves")["series"]
    assert len(series) == len(seeds)
    for line, seed in zip(series, seeds, strict=True):
        assert np.array(line["data"]) == pytest.approx(np.array(seed.curve))


def test_a_video_is_played(reader):
    reader.open("/dashboard/training")
    reader.script("const film = document.querySelector('video'); film.muted = true; film.play()")
    state = "const film = document.querySelector('video');"
    reader.wait.until(lambda _: reader.script(f"{state} return film.currentTime") > 0.2)
    assert reader.script(f"{state} return [film.videoWidth, film.videoHeight]") == [160, 96]
    assert reader.script(f"{state} return film.error") is None
    assert "lander-ppo.mp4" in reader.text("video + figcaption")


def test_a_model_is_deployed_and_rolled_back(reader, site, store):
    champion, challenger = site.names["champion"], site.names["challenger"]
    reader.open("/dashboard/models")
    assert reader.text("#champion") == "v1.0.0"
    assert champion[:12] in reader.text(".wide")
    versions = [row[0] for row in reader.cells(".wide")][:3]
    assert versions == ["v1.0.2", "v1.0.1", "v1.0.0"]
    reader.open(f"/dashboard/models?model={challenger}")
    assert reader.text("#verdict").startswith("promoted: yes")
    assert "v1.0.0" in reader.text(".lineage")
    reader.one("#deploy").click()
    reader.until("#confirm-deploy")
    reader.wait.until(lambda _: reader.one("#confirm-deploy").is_displayed())
    reader.until_text("#deploy-title", "Take v1.0.1 to the stage shadow?")
    reader.one("#confirm-deploy").click()
    reader.until_text("#main", "shadow, open")
    reader.wait.until(lambda _: reader.texts("#confirm-deploy") == [])
    reader.until_text("#why-not", "v1.0.1 cannot be taken to canary now: too little was seen")
    reader.wait.until(lambda _: not reader.all("#deploy"))
    reader.open("/dashboard/models")
    reader.one("#rollback").click()
    reader.until_text(".q-dialog", "v1.0.1, now in shadow, is taken back, and v1.0.0 serves")
    reader.wait.until(lambda _: reader.one("#confirm-rollback").is_displayed())
    reader.one("#confirm-rollback").click()  # without a reason
    reader.until_text("body", "a rollback has a reason")
    reader.one(".reason").send_keys("<b>drill</b>")
    reader.one("#confirm-rollback").click()
    reader.until_text("#main", "rolled back")
    reader.wait.until(lambda _: not reader.all("#rollback"))
    assert "<b>drill</b>" in reader.text("#main")
    events = store.events.after(kind=ADMIN_REQUEST)
    asked = [(each.data["method"], each.data["name"]) for each in events]
    assert ("deploy", "admin token") in asked
    assert ("rollback", "admin token") in asked
    reader.open(f"/dashboard/models?model={site.names['champion']}")
    assert not reader.all("#deploy")


def test_a_model_that_the_gate_has_refused_is_not_offered(reader, site):
    reader.open("/dashboard/models?model=v1.0.2")
    assert reader.text("#verdict").startswith("promoted: no")
    reader.until_text("#why-not", "v1.0.2 cannot be taken to shadow now: ")
    assert not reader.all("#deploy")


def test_who_only_reads_cannot_change_who_serves(reader):
    with reader.somebody_else("read"):
        reader.open("/dashboard/models")
        assert "needs the role admin" in reader.text("#only-admin")
        assert not reader.all("#rollback")
        reader.open("/dashboard/settings")
        assert "Tokens" not in reader.text("#main")


def test_a_battle_is_played_again(reader, site):
    replays = replays_in(site.folder / "replays")
    reader.open("/dashboard/battles")
    assert [row[0] for row in reader.cells(".wide")] == list(replays)
    name, path = next(iter(replays.items()))
    reader.one(f"a[href*='{name}']").click()
    reader.until("iframe.viewer")
    reader.driver.switch_to.frame(reader.one("iframe.viewer"))
    told = read_header(path)
    reader.until_text("#clock", f"step 0 / {told.steps}")
    reader.one("#next").click()
    reader.until_text("#clock", f"step 1 / {told.steps}")
    reader.driver.switch_to.default_content()


def test_data_sets_and_settings(reader, site):
    reader.open("/dashboard/data")
    assert len(reader.cells(".wide")) == 3
    reader.one(".wide a").click()
    reader.until_text("h1", "Snapshot ")
    assert "Prediction markets" in reader.text(".facts")
    reader.open("/dashboard/settings")
    assert "healthy" in reader.text(".facts")
    assert str(site.folder) in reader.text(".facts")
    assert ["admin token", "admin"] in [[row[0], row[2]] for row in reader.cells(".wide")]
    reader.one("#doctor").click()
    reader.until_text("caption", "Doctor")
    assert "python" in [row[0] for row in reader.cells(".wide")]
