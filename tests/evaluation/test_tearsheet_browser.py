"""The page in a real browser: it draws, its charts move together, and it asks nobody."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.tearsheet import Sheet, Versus, write_sheet
from tests.evaluation.sheet_samples import WILD, full_sheet, sheet
from tests.samples import random_bars

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="chromium and chromedriver are not installed: apt-get install chromium-driver",
)

CHARTS = ("equity", "candles", "monthly", "rolling", "costs", "versus")
LINKED = ("equity", "candles", "rolling")
EVIL = "<img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\"></script>"
# Shares of pixels that are neither transparent nor the most frequent colour.
INK = """
const place = document.getElementById(arguments[0]);
const canvas = place.querySelector("canvas");
if (!canvas) return 0;
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let seen = 0;
for (let at = 3; at < pixels.length; at += 4) if (pixels[at] > 40) seen += 1;
return seen / (pixels.length / 4);
"""
ZOOM = """
const { start, end } = echarts.getInstanceByDom(document.getElementById(arguments[0]))
  .getOption().dataZoom[0];
return [start, end];
"""
TO = """
echarts.getInstanceByDom(document.getElementById(arguments[0]))
  .dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: arguments[1], end: arguments[2] });
"""


class Browser:
    """A browser that remembers what it was asked to fetch."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        profile = folder / "profile"
        for word in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1200,1000",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.folder, self.pages = folder, 0

    def open(self, shown: Sheet) -> Path:
        """Write the sheet under a new name, open it and wait until it is drawn."""
        self.pages += 1
        path = self.folder / f"page-{self.pages}.html"
        write_sheet(path, shown)
        self.visit(path)
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(ready))
        return path

    def visit(self, path: Path) -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())

    def run(self, script: str, *words: Any) -> Any:
        return self.driver.execute_script(script, *words)

    def press(self, key: str, times: int = 1) -> None:
        webdriver.ActionChains(self.driver).send_keys(key * times).perform()

    def problems(self) -> list[str]:
        """Return what the console and failed fetches said since the page was opened."""
        return [line["message"] for line in self.driver.get_log("browser")]

    def hears(self, listen: Callable[[], list[str]], words: str) -> bool:
        """Wait for some words: a busy browser logs a little later than it acts."""
        waiting = WebDriverWait(self.driver, 15)
        return bool(waiting.until(lambda _: any(words in each for each in listen())))

    def requests(self) -> list[str]:
        """Return every address that was asked for, blocked ones included."""
        asked = []
        for line in self.driver.get_log("performance"):
            event = json.loads(line["message"])["message"]
            if event["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                found = event["params"]
                asked.append(found["request"]["url"] if "request" in found else found["url"])
        return asked


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def full() -> Sheet:
    return full_sheet()


def test_every_chart_is_drawn_without_a_word_of_complaint(browser, full):
    browser.open(full)
    drawn = {name: browser.run(INK, name) for name in CHARTS}
    assert {name: share for name, share in drawn.items() if share < 0.003} == {}
    assert browser.problems() == []


def test_an_undrawn_chart_would_be_seen(browser, full):
    browser.open(full)
    browser.run("echarts.getInstanceByDom(document.getElementById('rolling')).clear()")
    assert browser.run(INK, "rolling") < 0.003


def test_no_request_leaves_the_page(browser, full):
    path = browser.open(full)
    browser.run("document.getElementById('theme').click()")
    asked = [each for each in browser.requests() if not each.startswith("data:")]
    assert asked == [path.as_uri()]


def test_a_request_would_be_seen_and_is_refused(browser, full):
    path = browser.folder / "leaky.html"
    write_sheet(path, full)
    leak = '<img src="http://127.0.0.1:9/x.png"></body>'
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", leak), encoding="utf-8")
    browser.visit(path)
    assert browser.hears(browser.problems, "Content Security Policy")
    open_path = browser.folder / "open.html"
    open_path.write_text(leak)
    browser.visit(open_path)
    assert browser.hears(browser.requests, "127.0.0.1:9")


def test_zoom_is_linked_both_ways(browser, full):
    browser.open(full)
    for name, (low, high) in zip(LINKED, ((20, 60), (40, 50), (10, 90)), strict=True):
        browser.run(TO, name, low, high)
        assert [browser.run(ZOOM, each) for each in LINKED] == [[low, high]] * 3
    browser.run("document.getElementById('whole').click()")
    assert [browser.run(ZOOM, each) for each in LINKED] == [[0, 100]] * 3


def test_keys_move_and_zoom(browser, full):
    browser.open(full)
    browser.run("document.getElementById('equity').focus()")
    seen = []
    for key in ("+", "\ue014", "-", "0"):  # the second is the right arrow
        browser.press(key)
        seen.append(browser.run(ZOOM, "candles"))
    narrow, moved, wide, whole = seen
    assert narrow[1] - narrow[0] < 100
    assert moved[0] > narrow[0]
    assert wide[1] - wide[0] > moved[1] - moved[0]
    assert whole == [0, 100]


def test_zooming_in_shows_finer_candles_and_marks(browser):
    browser.open(sheet(random_bars(9_000, kind="spot"), WILD))
    note = "return document.getElementById('candles-note').textContent"
    rows = (
        "return echarts.getInstanceByDom(document.getElementById('candles')).getOption()"
        ".series.map((each) => each.data.length)"
    )
    far, (_, marks, _) = browser.run(note), browser.run(rows)
    assert "too many to mark" in far
    assert marks == 0
    browser.run(TO, "equity", 50, 51)
    near, (_, marks, _) = browser.run(note), browser.run(rows)
    assert near.startswith("1h candles")
    assert marks > 0
    assert browser.problems() == []


def test_the_log_scale_can_be_switched(browser, full):
    browser.open(full)
    kinds = (
        "return ['equity', 'candles'].map((id) => echarts"
        ".getInstanceByDom(document.getElementById(id)).getOption().yAxis[0].type)"
    )
    seen = [browser.run(kinds)]
    for _ in range(2):
        browser.run("document.getElementById('log').click()")
        seen.append(browser.run(kinds))
    linear, log = ["value"] * 2, ["log"] * 2
    assert seen in ([linear, log, linear], [log, linear, log])
    assert browser.run(INK, "equity") > 0.003
    assert browser.problems() == []


def test_steep_curves_start_on_a_log_scale(browser, full):
    pressed = "return document.getElementById('log')?.ariaPressed"
    found = []
    for last in (1.1, 9.0, 0.0):  # nothing left has no logarithm, and so no switch
        curve = np.linspace(1.0, last, full.ts.size)
        browser.open(replace(full, equity={full.subject: curve}))
        found.append(browser.run(pressed))
    assert found == ["false", "true", None]
    assert browser.problems() == []


def test_dark_and_light(browser, full):
    paper = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("dark", "light"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.open(full)
        seen.append(browser.run(paper))
        browser.run(TO, "equity", 20, 40)
        browser.run("document.getElementById('theme').click()")
        seen.append(browser.run(paper))
        assert browser.run(ZOOM, "rolling") == [20, 40]  # a change of looks keeps the view
    dark, light, again, back = seen
    assert dark == back != light == again
    assert browser.problems() == []


def test_round_trips_are_sorted_and_paged(browser, full):
    browser.open(full)
    net = (
        "return [...document.querySelectorAll('#trips tr')]"
        ".map((row) => Number(row.children[10].textContent.replace(/,/g, '')))"
    )
    first = browser.run(net)
    assert len(first) == 20
    browser.run("document.getElementById('next').click()")
    assert browser.run(net) != first
    head = "document.querySelectorAll('#trip-heads button')[10]"
    browser.run(f"{head}.click()")
    best = browser.run(net)
    assert best == sorted(best, reverse=True)
    assert best[0] == pytest.approx(full.trips["net_pnl"].max(), abs=0.01)
    browser.run(f"{head}.click()")
    assert browser.run(net)[0] == pytest.approx(full.trips["net_pnl"].min(), abs=0.01)
    order = f"return {head}.parentElement.getAttribute('aria-sort')"
    assert browser.run(order) == "ascending"


def test_names_explain_themselves_by_key(browser, full):
    browser.open(full)
    browser.press("\ue004", 2)  # Tab: past the button for the looks
    assert browser.run("return document.activeElement.className") == "tip"
    tip = "const tip = document.getElementById('tip');"
    assert browser.run(f"{tip} return tip.matches(':popover-open')")
    assert "opening cash" in browser.run(f"{tip} return tip.textContent")
    browser.press("\ue00c")  # Escape
    assert not browser.run(f"{tip} return tip.matches(':popover-open')")


def test_hostile_names_stay_text_in_charts_too(browser, full):
    arms = {EVIL + arm: curve for arm, curve in full.equity.items()}
    browser.open(
        replace(
            full,
            title=EVIL,
            subject=EVIL + full.subject,
            equity=arms,
            figures={EVIL + arm: known for arm, known in full.figures.items()},
            command=EVIL,
            versus=[Versus(EVIL, Interval(0.0, -1.0, 1.0, 0.95), EVIL)],
        )
    )
    for name, series in (("equity", 0), ("versus", 1)):
        browser.run(
            "echarts.getInstanceByDom(document.getElementById(arguments[0]))"
            ".dispatchAction({ type: 'showTip', seriesIndex: arguments[1], dataIndex: 0 })",
            name,
            series,
        )
        shown = browser.run("return document.getElementById(arguments[0]).textContent", name)
        assert "onerror" in shown  # the tooltip is there, and it is text
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.run("return document.title") == EVIL
    assert browser.problems() == []
    assert not [each for each in browser.requests() if each.startswith("http")]


def test_a_phone_shows_no_sideways_scroll(browser, full):
    phone = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.open(full)
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        assert browser.run(INK, "equity") > 0.003
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints_in_light_colours(browser, full):
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.open(full)
    browser.run(
        "addEventListener('beforeprint', () => (window.printed = root()));"
        "function root() { return document.documentElement.dataset.theme; }"
    )
    made = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    assert browser.run("return window.printed") == "light"
    assert browser.run("return document.documentElement.dataset.theme") is None  # the system's
    assert browser.run("return page.dark()")
