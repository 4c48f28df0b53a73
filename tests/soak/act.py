"""One act of the soak: everything on one database, under faults, then time to recover."""

import json
import os
import signal
import tempfile
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from agent_gym.core.clock import SystemClock
from tests.soak import reading
from tests.soak.actors import descendants
from tests.soak.databases import opened
from tests.soak.disk import Disk
from tests.soak.faults import Faults
from tests.soak.launch import set_clock
from tests.soak.plan import KINDS, planned
from tests.soak.scene import Scene
from tests.soak.troupe import Troupe
from tests.soak.workspace import AGENTS, HARNESS_AGENTS, prepare

CLOCK = SystemClock()


class Act:
    """One database from beginning to end.

    Args:
        database: "sqlite" or "postgres".
        seconds: How long faults go on; each kind is done once in any case.
        seed: Decides all faults.
        patience_s: How long to wait for what has to happen in the end.
        desk: Folder for logs; a temporary one is made if it is not given.
    """

    def __init__(
        self, database: str, seconds: float, seed: int, patience_s: float, desk: Path | None = None
    ) -> None:
        self._name, self._seconds, self._seed = database, seconds, seed
        self._patience_s = patience_s
        self._desk = desk or Path(tempfile.mkdtemp(prefix="soak-"))
        self._done: Counter[str] = Counter()
        self._tried: list[dict[str, Any]] = []
        self._problems: list[str] = []

    def play(self) -> dict[str, Any]:
        """Play it and return what was done and found."""
        began_s = CLOCK.monotonic_s()
        with ExitStack() as stack:
            disk = Disk(self._desk / "disk", lambda: self._troupe.everybody())
            stack.callback(disk.close)
            home = disk.place / "home"
            database = opened(self._name, home)
            stack.callback(database.close)
            scene = Scene(str(home), database.url, prepare(home, database.url), os.getpid())
            scene.points = AGENTS | HARNESS_AGENTS
            self._troupe = Troupe(self._desk, scene, self._seed, database.pids)
            stack.callback(self._end_all)
            self._begin()
            faults = Faults(self._troupe, database, disk, self._patience_s)
            self._run(faults)
            self._recover()
            self._close()
        told = self._told() | {"disk": disk.kind}
        return told | {"seconds": round(CLOCK.monotonic_s() - began_s, 1)}

    def _begin(self) -> None:
        """Wait for the first baseline; without one there is nothing that could break."""
        troupe = self._troupe
        troupe.resting |= {"service", "harness", "recorder", "clients", "observer"}
        if not self._wait(lambda: troupe.actors["nightly"].lives > 1):
            self._problems.append("the first baseline was not made")
        troupe.resting -= {"service", "harness", "recorder", "clients", "observer"}
        if not troupe.until("service", self._patience_s):
            self._problems.append("the service did not start")

    def _run(self, faults: Faults) -> None:
        kinds, began_s = set(KINDS[self._name]), CLOCK.monotonic_s()
        for fault in planned(self._seed, self._name):
            spent_s = CLOCK.monotonic_s() - began_s
            missing = kinds - set(self._done)
            if spent_s > self._seconds and (not missing or spent_s > self._cap_s):
                return
            if spent_s > self._seconds and fault.kind not in missing:
                continue  # time is over; only what was not done yet is still done
            self._troupe.tend(fault.pause_s)
            done = faults.do(fault)
            self._done[fault.kind] += done
            self._done += Counter()  # forget zeros
            at_s = round(CLOCK.monotonic_s() - began_s, 1)
            self._tried.append(fault.as_dict() | {"at_s": at_s, "done": done})

    @property
    def _cap_s(self) -> float:
        return self._seconds + self._patience_s

    def _recover(self) -> None:
        """Let everything come to rest, and see that it does."""
        troupe = self._troupe
        set_clock(troupe.clock, 0)
        troupe.resting |= {"clients", "harness", "recorder", "nightly"}
        troupe.actors["clients"].end(signal.SIGTERM)
        nights = troupe.actors["nightly"]
        if not self._wait(lambda: not nights.alive and not troupe.actors["harness"].alive):
            self._problems.append("nightly or harness did not end")
        troupe.actors["recorder"].end(signal.SIGKILL)
        troupe.start("recorder")  # for one last time
        if not self._wait(lambda: not troupe.actors["recorder"].alive):
            self._problems.append("what waits in the outbox was not delivered")
        if not troupe.until("service", self._patience_s):
            self._problems.append("the service did not come back")
        if not self._wait(self._jobs_ended):
            self._problems.append("trainings did not end")
        self._last_night()
        self._verify()
        self._phase("recovered")

    def _jobs_ended(self) -> bool:
        """Say whether all trainings have ended; one that failed is asked for again."""
        try:
            waiting = reading.jobs(Path(self._troupe.scene.home))
        except reading.AWAY:
            return False
        for name, status in waiting.items():
            if status not in ("PENDING", "ENQUEUED"):
                self._ask("/api/admin/training/trigger", {"job_id": name, "force": True})
                break
        return not waiting

    def _last_night(self) -> None:
        troupe = self._troupe
        troupe.start("nightly")
        if not self._wait(lambda: not troupe.actors["nightly"].alive):
            self._problems.append("the last nightly did not end")
        elif "exit 0" not in troupe.actors["nightly"].codes:
            self._problems.append(f"no nightly ended well: {troupe.actors['nightly'].codes}")

    def _verify(self) -> None:
        """Ask the product itself."""
        verify = self._troupe.actors["verify"]
        self._troupe.start("verify")
        if not self._wait(lambda: not verify.alive):
            self._problems.append("verify did not end")
            return
        said = verify.said() or {"ok": False, "findings": [{"state": "bad", "words": "nothing"}]}
        if not said["ok"]:
            bad = [one["words"] for one in said["findings"] if one["state"] == "bad"]
            self._problems.append(f"verify: {'; '.join(bad)}")

    def _close(self) -> None:
        """End the service politely; nobody may be left then."""
        troupe = self._troupe
        troupe.resting.add("service")
        if not troupe.actors["service"].end(signal.SIGTERM, self._patience_s):
            self._problems.append("the service did not end")
        self._wait(lambda: not self._left())
        self._problems += [f"process {pid} is left" for pid in self._left()]
        troupe.resting.add("observer")
        self._phase("ended")
        self._wait(lambda: not troupe.actors["observer"].alive)

    def _left(self) -> list[int]:
        """Return who lives below us and does not belong to a process that we look after."""
        known = self._troupe.scene.known
        kept = {*known, *(pid for one in known for pid in descendants(one))}
        return [pid for pid in descendants(os.getpid()) if pid not in kept]

    def _phase(self, name: str) -> None:
        self._troupe.scene.phase = name
        self._troupe.scene.write(self._troupe.scene_path)
        if not self._wait(lambda: any(line["phase"] == name for line in self._lines())):
            self._problems.append(f"the observer did not look at the phase {name}")

    def _wait(self, happened: Any) -> bool:
        until_s = CLOCK.monotonic_s() + self._patience_s
        while not happened():
            if CLOCK.monotonic_s() > until_s:
                return False
            self._troupe.tend(0.5)
        return True

    def _ask(self, path: str, wish: dict[str, Any]) -> None:
        scene = self._troupe.scene
        headers = {"authorization": f"Bearer {scene.token}"}
        with suppress(httpx.HTTPError):
            httpx.post(f"{scene.url}{path}", json=wish, headers=headers, timeout=60.0)

    def _end_all(self) -> None:
        for actor in self._troupe.actors.values():
            actor.end(signal.SIGKILL)

    def _lines(self) -> list[dict[str, Any]]:
        path = self._desk / "observed.jsonl"
        if not path.exists():
            return []
        whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def _told(self) -> dict[str, Any]:
        lines = self._lines()
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for line in lines:
            for one in line["violations"]:
                key = (one["invariant"], one["words"])
                found.setdefault(key, one | {"look": line["look"], "looks": 0})["looks"] += 1
        figures: dict[str, Any] = {}
        for line in lines:
            figures |= line["figures"]
        rss = [line["figures"]["rss_mb"] for line in lines if "rss_mb" in line["figures"]]
        actors = self._troupe.actors
        return {
            "database": self._name,
            "faults": dict(sorted(self._done.items())),
            "not_done": sorted(set(KINDS[self._name]) - set(self._done)),
            "plan": self._tried,
            "starts": {name: actor.lives for name, actor in actors.items()},
            "endings": {name: actor.codes for name, actor in actors.items()},
            "looks": len(lines),
            "looks_at_database": sum("rows" in line["saw"] for line in lines),
            "looks_at_service": sum("service" in line["saw"] for line in lines),
            "figures": figures,
            "rss_mb_most": max(rss, default=None),
            "violations": list(found.values()),
            "problems": self._problems,
            "desk": str(self._desk),
        }
