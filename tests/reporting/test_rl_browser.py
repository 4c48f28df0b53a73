"""The page of a training in a real browser: it draws, plays, turns dark, and asks nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_gym.reporting.rl import html_page, read_arms
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.sections import Shown
from agent_gym.reporting.rl.videos import Frame, encode, frame_of
from tests.reporting.browsing import chromium, needs_browser
from tests.reporting.run_samples import write_arm, write_run

WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
pytestmark = needs_browser
SIZES = (
    "return [...document.querySelectorAll('svg.plot')].filter((s) => s.getClientRects().length)"
    ".map((s) => [s.getBoundingClientRect().width, s.querySelectorAll('path').length])"
)


class Browser:
    """A browser that remembers what it was asked to fetch."""

    def __init__(self, folder: Path) -> None:
        self.driver = chromium(folder)

    def visit(self, path: Path) -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path.as_uri())
        ready = "return document.documentElement.dataset.ready === 'yes'"
        WebDriverWait(self.driver, 60).until(lambda driver: driver.execute_script(ready))

    def run(self, script: str, *words: Any) -> Any:
        return self.driver.execute_script(script, *words)

    def problems(self) -> list[str]:
        return [line["message"] for line in self.driver.get_log("browser")]

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


def video() -> bytes:
    picture = np.full((400, 600, 3), 60, dtype=np.uint8)
    frames = [
        frame_of(Frame(picture, at, "main engine", 1.0, float(at)), "Best") for at in range(20)
    ]
    return encode(iter(frames), 20)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    write_arm(folder / "one" / "lander-ppo", 3)
    for name in ("low", "high"):
        write_arm(folder / "two" / name, 2, 190.0 if name == "low" else 250.0)
    write_run(folder / "two" / ("wide" * 20), 1, status="error", error={"what": "x" * 300})
    shown = [Shown(Clip(video(), "Best (seed 1)", 1, 250.0, 19), "videos/best.mp4")]
    made = {}
    for name, clips in (("one", shown), ("two", [])):
        made[name] = folder / f"{name}.html"
        made[name].write_text(html_page(read_arms(folder / name), clips), encoding="utf-8")
    return made


@pytest.mark.parametrize("name", ["one", "two"])
def test_it_draws_and_no_request_leaves_it(browser, pages, name):
    browser.visit(pages[name])
    seen = browser.run(SIZES)
    assert len(seen) == (3 if name == "one" else 6)
    assert all(width > 500 and paths > 10 for width, paths in seen)
    browser.run("document.getElementById('theme').click()")
    asked = [each for each in browser.requests() if not each.startswith("data:")]
    assert asked == [pages[name].as_uri()]
    assert browser.problems() == []


def test_a_request_would_be_refused(browser, pages, tmp_path):
    path = tmp_path / "leaky.html"
    leak = '<img src="http://127.0.0.1:9/x.png"></main>'
    path.write_text(pages["one"].read_text().replace("</main>", leak), encoding="utf-8")
    browser.visit(path)
    WebDriverWait(browser.driver, 15).until(
        lambda _: any("Content Security Policy" in each for each in browser.problems())
    )


def test_the_video_plays(browser, pages):
    browser.visit(pages["one"])
    script = """
    const done = arguments[0], video = document.querySelector("video");
    video.addEventListener("timeupdate", () => {
      if (video.currentTime > 0.1) done([video.videoWidth, video.videoHeight, video.error]);
    });
    video.play().catch((error) => done(String(error)));
    """
    browser.driver.set_script_timeout(60)
    assert browser.driver.execute_async_script(script) == [608, 464, None]
    assert browser.problems() == []


def test_plots_follow_the_looks(browser, pages):
    browser.visit(pages["one"])
    tones = []
    for _ in range(2):
        tones.append(
            browser.run(
                "const t = document.querySelector('svg.plot text');"
                "return [getComputedStyle(document.body).backgroundColor, getComputedStyle(t).fill]"
            )
        )
        browser.run("document.getElementById('theme').click()")
    assert tones[0][0] != tones[1][0]
    assert tones[0][1] != tones[1][1]


@pytest.mark.parametrize("width", [320, 390, 800])
def test_no_width_scrolls_sideways(browser, pages, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in pages.values():
            browser.visit(path)
            assert browser.run("return document.documentElement.scrollWidth") <= width
            small = (
                "return [...document.querySelectorAll('svg.plot text')]"
                ".filter((t) => t.getClientRects().length)"
                ".map((t) => t.getBoundingClientRect().height)"
            )
            assert min(browser.run(small)) > 8.0
            boxes = (
                "return [...document.querySelectorAll('table')].map((t) => {"
                "const box = t.closest('.wide'), edge = box.getBoundingClientRect();"
                "box.scrollLeft = box.scrollWidth;"
                "const last = [...t.rows].map((r) => r.lastElementChild.getBoundingClientRect());"
                "return [edge.left, edge.right, Math.max(...last.map((c) => c.right)),"
                "getComputedStyle(box).overflowX, t.querySelector('thead') ? box.tabIndex : 0]; })"
            )
            for left, right, cells, overflow, reached in browser.run(boxes):
                assert 0 <= left < right <= width
                assert cells <= right + 1.0  # whoever scrolls sees the last column
                assert (overflow, reached) == ("auto", 0)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_without_scripts_everything_can_be_read(browser, pages):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.driver.get(pages["one"].as_uri())
        assert browser.driver.find_element("css selector", "h1").is_displayed()
        assert browser.driver.find_element("css selector", "svg.large").is_displayed()
        assert not browser.driver.find_element("id", "theme").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
