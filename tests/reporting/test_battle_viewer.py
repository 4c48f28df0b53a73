"""The viewer: a page that plays a battle in a real browser and asks nobody; GIF and MP4."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from agent_gym.core.errors import DataError
from agent_gym.evaluation.battle import film_of, shots_of
from agent_gym.reporting.battle import viewer_page
from agent_gym.reporting.battle.animation import gif_of
from agent_gym.reporting.battle.payload import payload, shown_box
from agent_gym.reporting.battle.pictures import Painter
from agent_gym.reporting.battle.videos import mp4_of
from tests.evaluation.battle_replay_samples import scripted, thought
from tests.reporting.browsing import chromium, needs_browser

EVIL = "</script><img src=http://127.0.0.1:9/x>"


def test_a_page_holds_the_battle_and_nothing_from_elsewhere():
    replay = thought()
    page = viewer_page(replay)
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*['\"]?(?:https?:)?//", page)
    for fact in (replay.seal, replay.header.map_hash, replay.header.checkpoint):
        assert fact in page
    assert viewer_page(replay) == page


def test_a_chart_that_has_nothing_to_show_is_a_line_that_says_why():
    told = thought()
    assert "No chart" not in viewer_page(told)
    script = viewer_page(scripted())
    assert script.count("<canvas data-chart") == 1
    assert "a script has no critic" in script
    rows = tuple(
        row.model_copy(update={"signals": {"entropy": row.signals["entropy"]}}) for row in told.rows
    )
    signals = {"entropy": told.header.signals["entropy"]}
    header = told.header.model_copy(update={"signals": signals})
    alone = viewer_page(replace(told, header=header, rows=rows).sealed())
    assert alone.count("<canvas data-chart") == 2
    assert "No chart of the value (no critic/ lay beside the policy), of the information" in alone


def test_a_page_does_not_give_the_end_away():
    replay = scripted()
    page = viewer_page(replay)
    assert 'data-light="same"' in page
    first = page[: page.index("<footer")]
    seen = re.sub(r"<noscript>.*?</noscript>", "", first, flags=re.DOTALL)
    assert not re.search(r"\b(won|lost) (in|after)\b", seen, flags=re.IGNORECASE)
    assert f"<noscript><p>Won in {replay.header.steps} steps. Return " in first  # without scripts


def test_a_changed_replay_has_no_page():
    replay = scripted()
    changed = replace(replay, rows=(replay.rows[1], *replay.rows[1:]))
    with pytest.raises(DataError, match=r"another way|not legal"):
        viewer_page(changed)


def test_a_name_cannot_break_out_of_the_page():
    replay = scripted()
    header = replay.header.model_copy(update={"player": EVIL})
    page = viewer_page(replace(replay, header=header).sealed())
    assert EVIL not in page
    assert "<img" not in page


def test_the_payload_is_the_film():
    film, replay = film_of(thought()), thought()
    told = json.loads(json.dumps(payload(film, replay)))
    assert len(told["x"]) == film.ticks + 1
    assert np.abs(np.array(told["x"]) - film.units["x"]).max() <= 0.005 + 1e-12
    assert [shot[:3] for shot in told["shots"]] == [list(shot[:3]) for shot in shots_of(film)]
    for u, death in enumerate(told["deaths"]):
        assert (death == -1) == bool(film.alive[-1, u])
        assert death == -1 or (film.alive[death - 1, u] and not film.alive[death, u])
    assert set(told["signals"]) == {"entropy", "value", "information_bonus"}
    box = shown_box(film)
    assert film.units["x"].min() > box.left
    assert film.units["x"].max() < box.left + box.width
    assert film.units["y"].min() > box.bottom
    assert film.units["y"].max() < box.bottom + box.height


def test_a_gif_moves_and_ends():
    film = film_of(scripted("1m_vs_1m", "nearest"))
    with Image.open(BytesIO(gif_of(film, "one"))) as clip:
        assert clip.format == "GIF"
        assert clip.n_frames > 20
        first = np.asarray(clip.convert("RGB")).copy()
        clip.seek(clip.n_frames - 1)
        assert (np.asarray(clip.convert("RGB")) != first).any(axis=-1).mean() > 0.005


def test_a_video_has_a_picture_a_tick(tmp_path):
    film = film_of(scripted("1m_vs_1m", "nearest"))
    path = tmp_path / "clip.mp4"
    path.write_bytes(mp4_of(film, "one"))
    with imageio.get_reader(path) as reader:
        known = reader.get_meta_data()
        assert known["codec"] == "h264"
        assert known["fps"] == pytest.approx(22.4)
        assert all(side % 16 == 0 for side in known["size"])
        assert sum(1 for _ in reader) >= film.ticks + 1


def test_the_dead_and_their_bars_are_drawn():
    film = film_of(scripted())
    painter = Painter(film, "x", 320)
    before, after = (np.asarray(painter.picture(tick)) for tick in (0, film.ticks))
    assert before.shape == after.shape == (painter.height, painter.width, 3)
    assert (before != after).any()
    assert (np.asarray(painter.picture(0)) == before).all()


WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
TICK = "return Number(document.getElementById('field').dataset.tick)"
PLAYING = "return document.getElementById('field').dataset.playing"
PIXELS = "return document.getElementById(arguments[0]).toDataURL()"
PRESSED = (
    "return [...document.querySelectorAll('.unit')].findIndex("
    "(u) => u.getAttribute('aria-pressed') === 'true')"
)


class Browser:
    """A browser that remembers what it was asked to fetch."""

    def __init__(self, folder: Path) -> None:
        self.driver = chromium(folder)

    def visit(self, path: Path) -> None:
        self.driver.get("about:blank")  # the page that a browser opens with asks for things
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        self.wait("return document.getElementById('field').dataset.tick !== undefined")

    def run(self, script: str, *words: Any) -> Any:
        return self.driver.execute_script(script, *words)

    def wait(self, script: str) -> None:
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(script))

    def click(self, name: str) -> None:
        self.driver.find_element("id", name).click()

    def press(self, *keys: str) -> None:
        self.driver.find_element("id", "field").send_keys(*keys)

    def to(self, tick: float) -> None:
        move = "const s = document.getElementById('scrub'); s.value = arguments[0];"
        self.run(move + "s.dispatchEvent(new Event('input'))", tick)

    def requests(self) -> list[str]:
        events = [
            json.loads(line["message"])["message"] for line in self.driver.get_log("performance")
        ]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "battle.html"
    path.write_text(viewer_page(thought()), encoding="utf-8")
    return path


@needs_browser
def test_play_moves_the_units_and_no_request_leaves(browser, page):
    browser.visit(page)
    before = browser.run(PIXELS, "field")
    assert (browser.run(TICK), browser.run(PLAYING)) == (0, "no")
    browser.click("play")
    browser.wait(TICK.replace("return ", "return 20 < "))
    browser.click("play")
    stopped = browser.run(TICK)
    assert browser.run(PLAYING) == "no"
    assert browser.run(PIXELS, "field") != before
    assert browser.run(TICK) == stopped  # a battle that is paused stands still
    asked = [each for each in browser.requests() if not each.startswith("data:")]
    assert asked == [page.as_uri()]
    assert browser.driver.get_log("browser") == []


@needs_browser
def test_steps_scrubbing_and_keys(browser, page):
    browser.visit(page)
    ticks = film_of(thought()).ticks
    browser.click("next")
    browser.click("next")
    assert browser.run(TICK) == 16
    browser.click("back")
    assert browser.run(TICK) == 8
    browser.to(21)
    assert browser.run(TICK) == 21
    browser.press(Keys.ARROW_RIGHT)
    assert browser.run(TICK) == 24
    browser.press(Keys.ARROW_LEFT, ".", ",")
    assert browser.run(TICK) == 16
    browser.press(Keys.END)
    assert browser.run(TICK) == ticks
    clock = browser.run("return document.getElementById('clock').textContent")
    steps = thought().header.steps
    assert f"step {steps} / {steps}" in clock
    browser.press("+")
    assert browser.run("return document.getElementById('speed').value") == "2"
    browser.press(Keys.HOME, Keys.SPACE)
    browser.wait(PLAYING + " === 'yes'")


@needs_browser
def test_a_unit_is_highlighted_by_click_and_by_key(browser, page):
    browser.visit(page)
    plain = browser.run(PIXELS, "field")
    browser.press("2")
    assert browser.run(PRESSED) == 1
    assert browser.run(PIXELS, "field") != plain
    browser.press(Keys.ESCAPE)
    assert browser.run(PRESSED) == -1
    assert browser.run(PIXELS, "field") == plain
    place = (
        "const f = document.getElementById('field'), b = f.getBoundingClientRect(),"
        " t = JSON.parse(document.getElementById('battle').textContent),"
        " s = b.width / t.box[2];"
        "f.dispatchEvent(new MouseEvent('click', {bubbles: true,"
        " clientX: b.left + (t.x[0][4] - t.box[0]) * s,"
        " clientY: b.bottom - (t.y[0][4] - t.box[1]) * s}))"
    )
    browser.run(place)
    assert browser.run(PRESSED) == 4


@needs_browser
def test_charts_show_what_was_recorded_and_follow_the_colours(browser, page):
    browser.visit(page)
    browser.to(40)
    read = (
        "const c = document.querySelector(`canvas[data-chart='${arguments[0]}']`);"
        "return c.parentElement.querySelector('output').innerText"
    )
    entropy = thought().signal("entropy")[5]
    shown = browser.run(read, "entropy")
    for each in entropy:
        assert f"{each:.2f}" in shown or "dead" in shown
    assert "0.25" in browser.run(read, "information_bonus")
    assert "agents" in browser.run(read, "points")
    light = browser.run(PIXELS, "field")
    browser.click("theme")
    assert browser.run(PIXELS, "field") != light
    label = browser.run("return document.getElementById('field').getAttribute('aria-label')")
    assert re.match(r"Step 5 of \d+: \d of 3 agents and \d of 3 enemies alive", label)


HEADLINE = "return document.querySelector('#verdict h1').textContent"
LIGHT = "return document.documentElement.dataset.light"


@needs_browser
def test_the_result_is_told_after_the_last_step_or_when_asked_for(browser, page):
    browser.visit(page)
    steps, ticks = thought().header.steps, film_of(thought()).ticks
    end = f"Lost after {steps} steps"
    assert (browser.run(HEADLINE), browser.run(LIGHT)) == ("policy on 3m", "same")
    browser.to(ticks - 1)
    assert browser.run(LIGHT) == "same"
    browser.to(ticks)
    assert (browser.run(HEADLINE), browser.run(LIGHT)) == (end, "bad")
    browser.to(0)
    assert browser.run(HEADLINE) == end  # who has seen it knows it
    chart = "return document.querySelector(\"canvas[data-chart='points']\").toDataURL()"
    whole = browser.run(chart)
    browser.click("reveal")
    assert (browser.run(HEADLINE), browser.run(LIGHT)) == ("policy on 3m", "same")
    assert browser.run(chart) != whole  # what is to come is part of the result
    browser.press("r")
    assert browser.run(HEADLINE) == end
    assert browser.run("return document.getElementById('reveal').innerText") == "Hide the result"


@needs_browser
def test_a_request_would_be_refused(browser, page, tmp_path):
    path = tmp_path / "leaky.html"
    leak = '<img src="http://127.0.0.1:9/x.png"></main>'
    path.write_text(page.read_text(encoding="utf-8").replace("</main>", leak), encoding="utf-8")
    browser.visit(path)
    assert "Content Security Policy" in " ".join(
        line["message"] for line in browser.driver.get_log("browser")
    )
