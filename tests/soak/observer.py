"""The observer: a process of its own that reads what anybody can read, and says what is wrong.

Usage: python -m tests.soak.observer DESK. DESK is the folder of the soak: ``scene.json`` says where
everything is, ``acks`` what was acknowledged, ``logs`` what the commands wrote; findings go to
``observed.jsonl``. It ends when it has looked at the phase "ended".
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from agent_gym.core.clock import SystemClock
from tests.soak import files, reading
from tests.soak.acks import Heard
from tests.soak.actors import parents
from tests.soak.invariants import Memory, violations
from tests.soak.look import Look, Service
from tests.soak.scene import Scene

EVERY_S = 1.0
SELDOM = 10
CLOCK = SystemClock()


class Observer:
    """Looks again and again."""

    def __init__(self, desk: Path) -> None:
        self._desk = desk
        scene = self._scene()
        self._files = files.Files(Path(scene.home))
        self._heard, self._memory = Heard(desk / "acks"), Memory(points=scene.points)
        self._alone: dict[str, float] = {}
        self._logs: dict[Path, int] = {}
        self._number = 0

    def run(self) -> None:
        """Look until the end."""
        with (self._desk / "observed.jsonl").open("a", encoding="utf-8") as out:
            phase = "run"
            while phase != "ended":
                scene = self._scene()
                phase = scene.phase
                out.write(json.dumps(self._line(scene)) + "\n")
                out.flush()
                CLOCK.sleep_s(EVERY_S)

    def _line(self, scene: Scene) -> dict[str, Any]:
        look, self._number = self.look(scene), self._number + 1
        return {
            "look": self._number,
            "phase": scene.phase,
            "saw": [name for name in ("rows", "service") if getattr(look, name) is not None],
            "violations": violations(look, self._memory),
            "figures": _figures(look, Path(scene.home)),
        }

    def look(self, scene: Scene) -> Look:
        """Return what is to be seen now; what was acknowledged is read first, then the outbox."""
        home, final = Path(scene.home), scene.phase != "run"
        seldom = final or self._number % SELDOM == 0
        look = Look(acknowledged=replace(self._heard.catch_up()), final=final)
        self._heard.acknowledged.wrong = []  # each is told once
        look.acknowledged.wrong += files.traces(self._desk / "logs", self._logs)
        look.waiting = reading.waiting(home)
        try:
            with reading.reading(scene.database, home) as reader:
                look.rows = reading.rows(reader, look.acknowledged.ticks)
        except reading.AWAY:
            look.rows = None
        if final:
            look.jobs = reading.jobs(home)
        look.broken = self._files.broken()
        if seldom:
            look.broken += self._files.broken_baseline()
            models = [] if look.rows is None else list(look.rows.models)
            look.unsigned = self._files.unsigned(models)
        if final:
            look.broken += self._files.broken_databases()
        look.service = self._service(scene, seldom=seldom)
        look.orphans = self._orphans(scene)
        return look

    def _service(self, scene: Scene, *, seldom: bool) -> Service | None:
        if scene.url is None or scene.service is None:
            return None
        headers = {"authorization": f"Bearer {scene.token}"}
        found = Service(life=scene.life)
        try:
            with httpx.Client(base_url=scene.url, headers=headers, timeout=30.0) as client:
                said = client.get("/metrics")
                found.counters = _counters(said.text) if said.status_code == 200 else {}
                if seldom:
                    answers = client.get("/api/verify")
                    found.answers = answers.json() if answers.status_code == 200 else None
            found.rss_mb, found.files = _size(scene.service)
        except (httpx.HTTPError, OSError):
            return None
        return found if self._scene().life == scene.life and found.counters else None

    def _orphans(self, scene: Scene) -> dict[str, float]:
        """Return the processes that came to the driver when their parents died, and since when."""
        now = CLOCK.monotonic_s()
        alone = {
            f"{pid} {_words(pid)}"
            for pid, parent in parents().items()
            if parent == scene.driver and pid not in scene.known
        }
        self._alone = {name: self._alone.get(name, now) for name in alone}
        return {name: now - since for name, since in self._alone.items()}

    def _scene(self) -> Scene:
        return Scene.read(self._desk / "scene.json")


def _counters(text: str) -> dict[str, float]:
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in text_string_to_metric_families(text)
        if family.type == "counter"
        for sample in family.samples
        if sample.name.endswith("_total")
    } or {"none yet": 0.0}


def _size(pid: int) -> tuple[float, int]:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    rss = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(rss.split()[1]) / 1024.0, len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208


def _words(pid: int) -> str:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return " ".join(said.split("\0"))[:120].strip()


def _figures(look: Look, home: Path) -> dict[str, Any]:
    heard, rows = look.acknowledged, look.rows
    told: dict[str, Any] = {
        "answers": heard.answers,
        "acknowledged_trajectories": len(heard.trajectories),
        "acknowledged_steps": sum(heard.trajectories.values()),
        "acknowledged_ticks": len(heard.ticks),
        "waiting": len(look.waiting),
        "half_written": files.half_written(home),
    }
    if look.service is not None:
        told |= {"rss_mb": round(look.service.rss_mb, 1), "open_files": look.service.files}
    if rows is not None:
        told |= {
            "ticks": sum(agent["tick"] for agent in rows.agents.values()),
            "trajectories": len(rows.trajectories),
            "steps": sum(row["n_steps"] for row in rows.trajectories),
            "models": len(rows.models),
            "history": len(rows.history),
            "champion": rows.pointers[0]["champion"] if rows.pointers else None,
        }
    return told


if __name__ == "__main__":
    Observer(Path(sys.argv[1])).run()
