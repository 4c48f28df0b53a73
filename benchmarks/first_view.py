"""(g) How soon does the dashboard show something: 10,000 runs, a trajectory of 1,000,000 steps.

A real service over a seeded folder, a real browser with an empty cache. The browser's own clock
runs from the moment a page is asked for until the frame in which its headline and its figures are
painted, and on until it is live, with buttons and charts on their way; the median of all rounds
counts. The limit is the page of settings, which asks the stores for nothing.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.report import Row
from scripts.served import Served, served

RUNS, STEPS = 10_000, 1_000_000
LONGEST_S = 1.0
WATCH = """
    if (self === top) {
        window.painted = {};
        const watch = (name, selector) => {
            if (document.querySelector(selector) === null) {
                setTimeout(() => watch(name, selector), 2);
                return;
            }
            const paint = () => { window.painted[name] = performance.now() / 1000; };
            requestAnimationFrame(() => requestAnimationFrame(paint));  // the frame after it is out
        };
        watch("shown", ".content .block");
        watch("live", "body:not(:has(#early)) #app .content .block");
    }
"""
PAINTED = "return [window.painted?.shown, window.painted?.live]"


def first_views(scratch: Path, rounds: int) -> Iterator[Row]:
    """Measure the first view of the pages that have most to show."""
    folder = scratch / "dashboard"
    words = ["-m", "scripts.seed_dashboard", str(folder)]
    sizes = ["--runs", str(RUNS), "--steps", str(STEPS)]
    done = subprocess.run(
        [sys.executable, *words, *sizes], capture_output=True, text=True, check=True
    )
    names: dict[str, str] = json.loads(done.stdout)
    long = names["long_trajectory"]
    pages = {
        "home": "/dashboard/",
        "runs": "/dashboard/runs",
        "runs_last_page": f"/dashboard/runs?sort=light&page={RUNS // 50}",
        "history": "/dashboard/scenarios?suite=desk&metric=flash_crash/max_drawdown",
        "replay": f"/dashboard/replay?id={long}&step={STEPS // 2}",
        "backtest": "/dashboard/agents?name=rules-momentum",
    }
    with served(folder) as told:
        limit, _ = _times(told, "/dashboard/settings", rounds, scratch)
        for name, path in pages.items():
            seconds, live = _times(told, path, rounds, scratch)
            yield Row(
                work=f"first_view_{name}",
                unit="views/s",
                ours=1.0 / statistics.median(seconds),
                limit=1.0 / statistics.median(limit),
                goal=f"{RUNS:,} runs and {STEPS:,} steps: the first view under {LONGEST_S:g} s",
                met=statistics.median(seconds) < LONGEST_S,
                measured={"seconds": seconds, "live_seconds": live, "limit_seconds": limit},
                note=f"{_words(seconds)}, empty cache; live {_words(live)}; "
                f"a page without data {_words(limit)}",
            )


def _words(seconds: list[float]) -> str:
    return f"best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s"


def _times(told: Served, path: str, rounds: int, scratch: Path) -> tuple[list[float], list[float]]:
    pairs = [_seconds(told, path, scratch) for _ in range(rounds)]
    return [shown for shown, _ in pairs], [live for _, live in pairs]


def _seconds(told: Served, path: str, scratch: Path) -> tuple[float, float]:
    """Return how long a browser that has never seen the dashboard waits: to read, and to use it."""
    profile = scratch / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument(f"--user-data-dir={profile}")
    options.page_load_strategy = "none"  # else every question waits for the last script
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver") or "")
    driver = webdriver.Chrome(options=options, service=service)
    try:
        wait = WebDriverWait(driver, 60, ignored_exceptions=[WebDriverException])
        driver.get(f"{told.url}/dashboard/login")  # nothing of the pages is loaded for this one
        wait.until(lambda _: driver.find_element("id", "token")).send_keys(told.token)
        driver.execute_script("document.querySelector('[name=next]').value = arguments[0]", path)
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        driver.find_element("css selector", "button").click()
        wait.until(lambda _: None not in driver.execute_script(PAINTED))
        shown, live = driver.execute_script(PAINTED)
        return shown, live
    finally:
        driver.quit()
