"""How each kind of fault is done; each returns whether it really was."""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from threading import Thread

import httpx
import numpy as np

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.seeds import Seeds
from tests.soak.acks import Acks
from tests.soak.callers import Callers
from tests.soak.databases import Place, Postgres
from tests.soak.disk import Disk
from tests.soak.launch import set_clock
from tests.soak.plan import Fault
from tests.soak.troupe import Troupe

LONGEST_S = 15
Calling = Callable[[Callers, np.random.Generator], None]
REQUESTS = {"hostile bodies": 24, "broken clients": 12, "slow clients": 6}


class Faults:
    """Everything that can be done to a troupe, its database and its disk."""

    def __init__(self, troupe: Troupe, database: Place, disk: Disk, patience_s: float) -> None:
        self._troupe, self._database, self._disk = troupe, database, disk
        self._patience_s = patience_s
        self._acks = Acks(troupe.desk / "acks" / "driver.jsonl")

    def do(self, fault: Fault) -> bool:
        """Do it; everybody plays on meanwhile."""
        first, _, rest = fault.kind.partition(" ")
        if fault.kind == "kill worker":
            return self._kill_worker(fault)
        if first == "kill":
            return self._kill(rest, fault)
        if fault.kind in REQUESTS:
            return self._call(fault)
        ways: dict[str, Callable[[Fault], bool]] = {
            "stop service": self._stop,
            "harness trains": self._hand_over,
            "clock jump": self._jump,
        }
        if fault.kind in ways:
            return ways[fault.kind](fault)
        return self._during(self._lasting(fault.kind), fault)

    def _lasting(self, kind: str) -> AbstractContextManager[None]:
        if kind == "disk full":
            return self._disk.full()
        if kind == "database locked":
            return self._database.locked()
        assert isinstance(self._database, Postgres)
        return self._database.away() if kind == "database restart" else self._database.read_only()

    def _during(self, trouble: AbstractContextManager[None], fault: Fault) -> bool:
        """Let it last, and until somebody has called meanwhile and was answered, if that is soon.

        On a slow machine nobody would meet a trouble of a second.
        """
        if not self._troupe.until("service", self._patience_s):
            return False
        agents = list(self._troupe.scene.points)
        with trouble:
            calls, _ = self._calling(fault, lambda callers, rng: callers.usual(rng, agents, 3))
            self._troupe.tend(fault.lasts_s)
            for _ in range(LONGEST_S):
                if calls.is_alive():
                    self._troupe.tend(1.0)
        self._ended(calls)
        return True

    def _kill(self, name: str, fault: Fault) -> bool:
        """Kill at some moment, also while it starts."""
        if not self._troupe.until(name, self._patience_s):
            return False
        self._troupe.tend(fault.lasts_s * fault.pick)
        self._troupe.until(name, self._patience_s)
        return self._troupe.actors[name].end(signal.SIGKILL)

    def _kill_worker(self, fault: Fault) -> bool:
        if not self._troupe.until("service", self._patience_s):
            return False
        for _ in range(int(self._patience_s)):
            if found := self._troupe.workers():
                with suppress(ProcessLookupError):
                    os.kill(found[int(fault.pick * len(found))], signal.SIGKILL)
                    return True
            self._troupe.tend(1.0)
        return False

    def _stop(self, _: Fault) -> bool:
        if not self._troupe.until("service", self._patience_s):
            return False
        return self._troupe.actors["service"].end(signal.SIGTERM, self._patience_s)

    def _hand_over(self, fault: Fault) -> bool:
        """Let the harness train while the service rests, and kill it in the midst of that.

        Whoever opens the folder next has to take up what it began.
        """
        troupe = self._troupe
        troupe.actors["service"].end(signal.SIGTERM, self._patience_s)
        troupe.actors["harness"].end(signal.SIGKILL)
        troupe.resting.add("service")
        troupe.training = True
        try:
            if not troupe.until("harness", self._patience_s):
                return False
            jobs = troupe.jobs_begun()
            for _ in range(int(self._patience_s)):
                troupe.tend(1.0)
                if troupe.jobs_begun() > jobs or not troupe.actors["harness"].alive:
                    break
            troupe.tend(fault.lasts_s * fault.pick)
            troupe.actors["harness"].end(signal.SIGKILL)
            return troupe.jobs_begun() > jobs
        finally:
            troupe.training = False
            troupe.resting.discard("service")

    def _jump(self, fault: Fault) -> bool:
        set_clock(self._troupe.clock, int(fault.jump_s * SECOND_NS))
        self._troupe.tend(fault.lasts_s)
        return self._troupe.actors["service"].alive

    def _call(self, fault: Fault) -> bool:
        if not self._troupe.until("service", self._patience_s):
            return False
        n = REQUESTS[fault.kind]
        ways: dict[str, Calling] = {
            "slow clients": lambda callers, _: callers.slow(n),
            "broken clients": lambda callers, rng: callers.broken(rng, n),
            "hostile bodies": lambda callers, rng: callers.hostile(rng, n),
        }
        calls, done = self._calling(fault, ways[fault.kind])
        self._ended(calls)
        return bool(done)

    def _calling(self, fault: Fault, call: Calling) -> tuple[Thread, list[bool]]:
        """Call the service in a thread; the list says in the end whether it could be called."""
        scene, done = self._troupe.scene, list[bool]()
        assert scene.url is not None
        callers = Callers(scene.url, scene.token, self._acks)
        rng = Seeds(self._troupe.seed).child("soak calls", fault.number).rng()

        def work() -> None:
            with suppress(httpx.HTTPError, OSError):
                call(callers, rng)
                done.append(True)

        thread = Thread(target=work)
        thread.start()
        return thread, done

    def _ended(self, calls: Thread) -> None:
        while calls.is_alive():
            self._troupe.tend(0.5)
