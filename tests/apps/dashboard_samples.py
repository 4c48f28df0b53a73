"""A seeded folder, a service of its own over it, and a browser that has logged in."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent_gym.apps.api.tokens import FILE, TokenFile
from scripts.seed_dashboard import seed
from tests.reporting.browsing import chromium

waiting = pytest.importorskip("selenium.webdriver.support.ui", reason="selenium is absent")
acting = pytest.importorskip("selenium.webdriver.common.action_chains")
CSS = "css selector"
ROOT = Path(__file__).resolve().parents[2]
COMMAND = "from agent_gym.apps.cli.main import main; main()"
PATIENCE_S = 60
RUNS, STEPS, TRAJECTORIES = 300, 20_000, 60
# What Chromium does of its own accord when it starts and is no request of a page.
OWN = ("data:", "chrome:", "chrome-untrusted:", "about:")


MARK = "window.harmed=(window.harmed||0)+1"
PAYLOADS = (
    f"<script>{MARK}</script>",
    f"<img src=x onerror={MARK}>",
    f"'\"><svg/onload={MARK}>",
    f"</textarea></script><script>{MARK}</script>",
    f"javascript:{MARK}",
    "{{constructor.constructor('" + MARK + "')()}}",
    "${" + MARK + "}",
    "`+" + MARK + "+`",
    f":{MARK}",
)
# What each page reads from its address.
ADDRESSES = {
    "/runs": ("text", "suite", "light", "sort", "page"),
    "/scenarios": ("suite", "metric"),
    "/replay": ("id", "step"),
    "/models": ("model",),
    "/agents": ("name",),
    "/battles": ("name",),
    "/data": ("id",),
    "/training": ("name",),
    "/trajectories": ("agent", "after"),
}


class Site:
    """A served folder with much in it."""

    def __init__(self, folder: Path, runs: int = RUNS, steps: int = STEPS) -> None:
        self.folder = folder
        self.names = seed(folder, runs=runs, steps=steps, trajectories=TRAJECTORIES)
        file = TokenFile(folder / FILE)
        self.tokens = {role: file.add(f"{role} token", role)[1] for role in ("read", "admin")}
        self._log = (folder / "log.txt").open("a")
        words = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--json"]
        self._process = subprocess.Popen(
            [*words, "--folder", str(folder)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "AGENT_GYM_DATABASE": ""},
            text=True,
        )
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(self._process.stdout.readline())
            assert lines[-1], (folder / "log.txt").read_text()
        self.told = json.loads("".join(lines))
        self.url = self.told["url"]

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text()

    def close(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        self._process.stdout.close()
        self._log.close()
        return code


class Reader:
    """Somebody with a browser."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.driver = chromium(folder)
        self.wait = waiting.WebDriverWait(self.driver, PATIENCE_S)

    def login(self, role: str = "admin") -> None:
        self.driver.get(f"{self.site.url}/dashboard/login")
        self.one("#token").send_keys(self.site.tokens[role])
        self.one("button").click()
        self.until("h1")

    def forget(self) -> None:
        """Lose the session, as somebody has who was never here."""
        self.driver.delete_all_cookies()

    @contextmanager
    def somebody_else(self, role: str) -> Iterator[None]:
        """Be somebody of another role for a while, in the same browser."""
        self.forget()
        self.login(role)
        try:
            yield
        finally:
            self.forget()
            self.login()

    def open(self, path: str) -> None:
        self.driver.get(f"{self.site.url}{path}")
        self.until(".content h1")

    def refused(self, path: str) -> str:
        """What a page says of an address that names nothing; programs are told by the status."""
        assert self.complaints() == []
        self.open(path)
        (said,) = self.complaints()
        assert "status of 404" in said
        return self.text(".card.bad")

    def live(self) -> bool:
        """Whether the first view, which needs no script, has made way for the page itself."""
        return not self.all("#early")

    def one(self, selector: str):
        return self.driver.find_element(CSS, selector)

    def all(self, selector: str):
        return self.driver.find_elements(CSS, selector)

    def until(self, selector: str):
        return self.wait.until(lambda _: self.live() and self.all(selector))[0]

    def until_text(self, selector: str, text: str) -> None:
        self.wait.until(
            lambda _: self.live() and any(text in each for each in self.texts(selector))
        )

    def texts(self, selector: str) -> list[str]:
        """The texts of all that fits, in one go: a page may be drawn anew in between."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)",
            selector,
        )

    def cells(self, selector: str) -> list[list[str]]:
        """The rows of a table."""
        return self.script(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) =>"
            " [...row.cells].map((cell) => cell.innerText.trim()))",
            selector,
        )

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def script(self, code: str, *values):
        return self.driver.execute_script(code, *values)

    def hover(self, element, x: int, y: int) -> None:
        """Move the pointer over an element, counted from its middle."""
        moves = acting.ActionChains(self.driver)
        moves.move_to_element_with_offset(element, x, y).perform()

    def chart(self, key: str):
        """The options of a chart as the browser has them."""
        self.until(f"[data-chart={key}] canvas")
        return self.script(
            "const found = document.querySelector(arguments[0]);"
            "return getElement(Number(found.id.slice(1))).chart.getOption()",
            f"[data-chart={key}]",
        )

    def complaints(self) -> list[str]:
        """What the console says."""
        return [
            each["message"]
            for each in self.driver.get_log("browser")
            if each["level"] in ("SEVERE", "WARNING")
        ]

    def hosts(self) -> set[str]:
        """Every host that was asked for anything, by any page so far."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            params = message.get("params", {})
            url = params.get("request", {}).get("url") or params.get("url", "")
            sent = message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")
            if sent and not url.startswith(OWN):
                found.add(urlsplit(url).netloc)
        return found

    def close(self) -> None:
        self.driver.quit()
