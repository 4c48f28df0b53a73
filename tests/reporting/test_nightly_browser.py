"""The page of a night in a real browser: it answers, filters, sorts, and asks nobody."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_gym.reporting.nightly import NightlyResult, html_page
from tests.reporting.browsing import chromium, needs_browser
from tests.reporting.hostile_samples import hostile
from tests.reporting.result_samples import bad_night, finding_like, good_night, like

WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
pytestmark = needs_browser
SHOWN = (
    "return [...document.querySelectorAll('#metrics tbody')].filter((b) => b.offsetParent)"
    ".map((b) => b.querySelector('.metric').textContent)"
)
EVIL = "<img src=http://127.0.0.1:9/x onerror=\"document.title='owned'\"></script>"


class Browser:
    """A browser that remembers what it was asked to fetch."""

    def __init__(self, folder: Path) -> None:
        self.driver = chromium(folder)
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.folder, self.pages = folder, 0

    def open(self, night: NightlyResult, anchor: str = "") -> Path:
        """Write the page under a new name, open it and wait until its script has run."""
        self.pages += 1
        path = self.folder / f"night-{self.pages}.html"
        path.write_text(html_page(night), encoding="utf-8")
        self.visit(path, anchor)
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(ready))
        return path

    def visit(self, path: Path, anchor: str = "") -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri() + anchor)

    def run(self, script: str, *words: Any) -> Any:
        return self.driver.execute_script(script, *words)

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def media(self, **features: str) -> None:
        named = [{"name": name.replace("_", "-"), "value": v} for name, v in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})

    def problems(self) -> list[str]:
        return [line["message"] for line in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
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


def test_the_first_screen_answers(browser):
    for night, word, answer in (
        (bad_night(), "Bad tonight", "4 regressions"),
        (good_night(), "Good tonight", "Nothing got worse"),
        (
            like(good_night(), diff=None, baseline=None),
            "Not sure tonight",
            "Nothing to compare with",
        ),
    ):
        browser.open(night)
        script = "return document.querySelector(arguments[0]).textContent"
        assert browser.run(script, ".word") == word
        assert browser.run(script, "h1") == answer
        place = "const b = document.querySelector('.banner').getBoundingClientRect();"
        assert browser.run(f"{place} return b.bottom < innerHeight && b.top >= 0")
        assert browser.problems() == []


def test_no_request_leaves_the_page(browser):
    path = browser.open(bad_night())
    browser.click("#theme")
    browser.click("#m0 .more")
    assert [each for each in browser.requests() if not each.startswith("data:")] == [path.as_uri()]
    assert browser.problems() == []


def test_a_request_would_be_refused(browser):
    path = browser.folder / "leaky.html"
    leak = '<img src="http://127.0.0.1:9/x.png"><p style="color:red"></main>'
    path.write_text(html_page(bad_night()).replace("</main>", leak), encoding="utf-8")
    browser.visit(path)
    waiting = WebDriverWait(browser.driver, 15)
    assert waiting.until(
        lambda _: any("Content Security Policy" in each for each in browser.problems())
    )


def test_only_changed_shows_what_changed(browser):
    browser.open(bad_night())
    assert len(browser.run(SHOWN)) == 42
    browser.click("[data-view=changed]")
    shown = browser.run(SHOWN)
    assert len(shown) == 7
    assert "latency_p95_ms" in shown
    assert "latency_p50_ms" not in shown
    assert browser.run("return document.getElementById('shown').textContent") == "7 of 42"
    browser.click("[data-view=unsure]")
    assert len(browser.run(SHOWN)) == 4
    assert browser.problems() == []


def test_search_and_scenario_narrow_the_table(browser):
    browser.open(bad_night())
    box = browser.driver.find_element("id", "search")
    box.send_keys("NET return")
    assert set(browser.run(SHOWN)) == {"net_return"}
    n_returns = len(browser.run(SHOWN))
    assert n_returns == 4
    browser.run(
        "const s = document.getElementById('scenario'); s.value = 'price_gap';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert len(browser.run(SHOWN)) == 1
    box.send_keys("zzz")
    assert browser.run(SHOWN) == []
    assert browser.run("return document.getElementById('none').offsetParent !== null")
    browser.click("#reset")
    assert len(browser.run(SHOWN)) == 42


def test_the_table_can_be_sorted(browser):
    browser.open(bad_night())
    first = browser.run(SHOWN)
    for key, attribute in (("base", "base"), ("change", "change"), ("p", "p")):
        values = (
            "return [...document.querySelectorAll('#metrics tbody')]"
            f".map((b) => b.dataset.{attribute}).filter((v) => v !== undefined).map(Number)"
        )
        browser.click(f"[data-sort={key}]")
        one = browser.run(values)
        browser.click(f"[data-sort={key}]")
        other = browser.run(values)
        assert one == sorted(one, reverse=key != "p")
        assert other == sorted(other, reverse=key == "p")
    assert browser.run(SHOWN) != first
    browser.click("[data-sort=rank]")
    assert browser.run(SHOWN) == first
    browser.click("[data-sort=name]")
    names = browser.run(
        "return [...document.querySelectorAll('#metrics tbody')].map(b => b.dataset.name)"
    )
    assert names == sorted(names)


def test_the_address_holds_the_view(browser):
    path = browser.open(bad_night())
    browser.click("[data-view=changed]")
    browser.click("[data-sort=base]")
    shown, address = browser.run(SHOWN), browser.run("return location.hash")
    browser.driver.get("about:blank")
    browser.visit(path, address)
    assert browser.run(SHOWN) == shown


def test_details_open_and_links_lead_to_them(browser):
    browser.open(bad_night())
    seen = "return document.querySelector('#m4 .detail').offsetParent !== null"
    assert not browser.run(seen)
    browser.click("#m4 .more")
    assert browser.run(seen)
    assert browser.run("return document.querySelector('#m4 .more').ariaExpanded") == "true"
    assert browser.run("return document.querySelectorAll('#m4 .detail svg').length") == 2
    browser.click("[data-view=unsure]")
    browser.click(".charts a")  # of a regression, which is hidden now
    waiting = WebDriverWait(browser.driver, 15)
    waiting.until(
        lambda _: browser.run("return document.querySelector('#m0').offsetParent !== null")
    )
    assert browser.run("return document.querySelector('#m0 .more').ariaExpanded") == "true"
    assert browser.problems() == []


def test_a_command_can_be_copied(browser):
    browser.open(bad_night())
    browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    button = browser.driver.find_element("css selector", "#broke .copy")
    button.click()
    WebDriverWait(browser.driver, 15).until(lambda _: button.text == "Copied")
    expected = browser.run("return document.querySelector('#broke .command code').textContent")
    script = (
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done('' + e))"
    )
    assert browser.driver.execute_async_script(script) == expected
    assert expected.startswith("agent-gym replay ")


def test_dark_and_light(browser):
    paper = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("dark", "light"):
        browser.media(prefers_color_scheme=scheme)
        browser.open(bad_night())
        seen.append(browser.run(paper))
        browser.click("#theme")
        seen.append(browser.run(paper))
    dark, light, again, back = seen
    assert dark == back != light == again


def test_it_prints_on_white_in_any_looks(browser):
    browser.media(prefers_color_scheme="dark")
    browser.open(bad_night())
    made = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        paper = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
        assert browser.run("return document.querySelector('.tools').offsetParent === null")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("width", [320, 390, 800])
def test_no_width_scrolls_sideways(browser, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for night in (bad_night(), hostile("x" * 90)):
            browser.open(night)
            browser.click("#m0 .more")
            assert browser.run("return document.documentElement.scrollWidth") <= width
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_hostile_names_stay_text(browser):
    path = browser.open(hostile(EVIL))
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.run("return document.title") != "owned"
    assert EVIL in browser.run("return document.querySelector('.card h3').textContent")
    assert browser.problems() == []
    assert [e for e in browser.requests() if not e.startswith("data:")] == [path.as_uri()]


def test_two_thousand_metrics_stay_quick_to_filter(browser):
    night = bad_night()
    found = tuple(
        finding_like(night.diff.findings[at % 42], id=f"s/{at}", metric=f"m{at}")
        for at in range(2_000)
    )
    browser.open(like(night, diff=like(night.diff, findings=found)))
    assert len(browser.run(SHOWN)) == 1_000
    browser.driver.find_element("id", "search").send_keys("m19")
    assert all("m19" in each for each in browser.run(SHOWN))
    assert browser.problems() == []


def test_without_scripts_everything_can_be_read(browser):
    path = browser.folder / "plain.html"
    path.write_text(html_page(bad_night()), encoding="utf-8")
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.visit(path)
        details = browser.driver.find_elements("css selector", "#metrics .detail")
        assert len(details) == 42
        assert all(each.is_displayed() for each in details[:3])
        assert not browser.driver.find_element("id", "search").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
