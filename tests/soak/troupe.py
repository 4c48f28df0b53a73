"""All processes of one act, and the words they are started with."""

import os
from collections.abc import Callable
from pathlib import Path

from agent_gym.core.clock import SystemClock
from tests.soak.actors import ROOT, Actor, descendants, reap
from tests.soak.launch import set_clock
from tests.soak.scene import Scene

REST_S = {"harness": 2.0, "nightly": 2.0}
LOOK_S = 0.5
CLOCK = SystemClock()


class Troupe:
    """Keeps everybody playing until they are told to rest.

    Args:
        desk: Folder of the soak: scene, acknowledgements, logs, clock.
        scene: What the others are told.
        seed: For those who draw.
        others: Returns further processes that are looked after: that of the database.
    """

    def __init__(
        self, desk: Path, scene: Scene, seed: int, others: Callable[[], list[int]]
    ) -> None:
        self.desk, self.scene, self.seed, self._others = desk, scene, seed, others
        for name in ("logs", "acks"):
            (desk / name).mkdir(parents=True, exist_ok=True)
        self.clock = desk / "clock"
        set_clock(self.clock, 0)
        environment = {
            "AGENT_GYM_HOME": scene.home,
            "AGENT_GYM_DATABASE": scene.database or "",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "TRAINING_MIN_TRAJECTORIES": "8",
        }
        names = ("service", "harness", "nightly", "recorder", "clients", "observer", "verify")
        self.actors = {name: Actor(name, desk / "logs", environment) for name in names}
        self.resting: set[str] = {"verify"}
        self.training = False
        self._idle_since: dict[str, float] = {}
        self.scene_path = desk / "scene.json"
        self.tell()

    def tend(self, seconds: float) -> None:
        """Let everybody play for a while: start who has ended, and tell where everything is."""
        until_s = CLOCK.monotonic_s() + seconds
        while True:
            self.look_after()
            left_s = until_s - CLOCK.monotonic_s()
            if left_s <= 0:
                return
            CLOCK.sleep_s(min(LOOK_S, left_s))

    def look_after(self) -> None:
        """Start who is to play and does not."""
        for name, actor in self.actors.items():
            if actor.alive or name in self.resting:
                self._idle_since.pop(name, None)
                continue
            since = self._idle_since.setdefault(name, CLOCK.monotonic_s())
            if not actor.lives or CLOCK.monotonic_s() - since >= REST_S.get(name, 0.0):
                self.start(name)
        reap(set(self.scene.known))
        self.tell()

    def start(self, name: str) -> None:
        """Start one of them."""
        self.actors[name].start(*self._words(name))
        if name == "service":
            self.scene.life, self.scene.url = self.actors[name].lives, None
        self.tell()

    def tell(self) -> None:
        """Tell the observer and the clients where everything is, if that has changed."""
        service, scene = self.actors["service"], self.scene
        before = (scene.known[:], scene.service, scene.url, scene.life, scene.phase)
        own = [actor.pid for actor in self.actors.values() if actor.pid is not None]
        scene.known = sorted([*own, *self._others()])
        scene.service = service.pid if service.alive else None
        said = service.said() if scene.service is not None else None
        scene.url = None if said is None else str(said["url"])
        if before != (scene.known, scene.service, scene.url, scene.life, scene.phase) or not (
            self.scene_path.exists()
        ):
            scene.write(self.scene_path)

    def until(self, seen: str, patience_s: float) -> bool:
        """Wait until the service answers, or somebody else runs."""
        until_s = CLOCK.monotonic_s() + patience_s
        while CLOCK.monotonic_s() < until_s:
            self.tend(LOOK_S)
            if seen == "service" and self.scene.url is not None:
                return True
            if seen != "service" and self.actors[seen].alive:
                return True
        return False

    def workers(self) -> list[int]:
        """Return the processes that service, harness and nightly have started."""
        found = []
        for name in ("service", "harness", "nightly"):
            pid = self.actors[name].pid
            found += [] if pid is None else descendants(pid)
        return found

    def everybody(self) -> list[int]:
        """Return all processes that write."""
        mains = [self.actors[name].pid for name in ("service", "harness", "nightly", "recorder")]
        return [*(pid for pid in mains if pid is not None), *self.workers()]

    def _words(self, name: str) -> tuple[str, ...]:
        home, url, lives = self.scene.home, self.scene.database, self.actors[name].lives + 1
        launch = ("tests.soak.launch", str(self.clock))
        acks = str(self.desk / "acks" / f"{name}.jsonl")
        database = () if url is None else ("--database", url)
        if name == "service":
            every = ("--tick-every", "0.5", "--check-every", "2", "--train-every", "10")
            return (*launch, "serve", "--port", "0", "--json", "--folder", home, *every, *database)
        if name == "harness":
            size = ("--agents", "2", "--snapshots", "1", "--repeats", "2", "--workers", "1")
            how = ("--force", "--rounds", "1") if self.training else ("--no-train",)
            return (*launch, "harness", *size, *how, "--folder", home, "--json", *database)
        if name == "nightly":
            suite = ("--scenarios", f"{home}/suite.json", "--workers", "1")
            return (*launch, "nightly", *suite, *self._approval())
        if name == "recorder":
            last = ("last",) if "recorder" in self.resting else ()
            place = f"{home}/trajectories"
            return ("tests.soak.recorder", place, url or "-", acks, str(lives), *last)
        if name == "clients":
            return ("tests.soak.clients", str(self.desk), acks, str(self.seed + lives))
        if name == "verify":
            return (*launch, "verify", "--folder", home, "--json", *database)
        return ("tests.soak.observer", str(self.desk))

    def _approval(self) -> tuple[str, ...]:
        if (Path(self.scene.home) / "reports" / "baseline" / "current.json").exists():
            return ()
        return ("--update-baseline", "--reason", "the soak begins")

    def jobs_begun(self) -> int:
        """Return how many trainings have left something behind."""
        return sum(1 for path in (Path(self.scene.home) / "jobs").glob("train-*") if path.is_dir())
