"""Each fault is really done, and somebody meets it: here on a troupe of small processes."""

import json
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Thread

import pytest

from agent_gym.core.clock import SECOND_NS, SystemClock
from tests.soak.actors import ROOT, Actor
from tests.soak.faults import Faults
from tests.soak.launch import set_clock
from tests.soak.plan import KINDS, planned
from tests.soak.scene import Scene

CLOCK = SystemClock()


class Trouble:
    """A database and a disk whose only trouble is that they are in trouble."""

    def __init__(self):
        self.now, self.met = None, set()

    @contextmanager
    def _in(self, name):
        self.now = name
        yield
        self.now = None

    def full(self):
        return self._in("disk full")

    def locked(self):
        return self._in("database locked")


class Small:
    """A troupe that starts nothing by itself."""

    def __init__(self, desk, url):
        (desk / "acks").mkdir()
        self.desk, self.seed, self.clock, self.resting = desk, 1, desk / "clock", set()
        set_clock(self.clock, 0)
        self.scene = Scene(str(desk), None, "token", 0, url=url, points={"ann": 1})
        names = ("service", "harness", "nightly", "recorder")
        self.actors = {name: Actor(name, desk, {"PYTHONPATH": str(ROOT)}) for name in names}
        self.jobs = 0
        self.worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def tend(self, seconds):
        CLOCK.sleep_s(min(seconds, 1.0))
        for name, actor in self.actors.items():
            if not actor.alive and name not in self.resting:
                actor.start("http.server", "0", "--bind", "127.0.0.1")
        self.jobs += "service" in self.resting  # then the harness trains

    def until(self, name, _patience_s):
        self.tend(0.0)
        return self.actors[name].alive

    def jobs_begun(self):
        return self.jobs

    def workers(self):
        return [self.worker.pid]

    def close(self):
        for actor in self.actors.values():
            actor.end()
        self.worker.kill()
        self.worker.communicate()


@pytest.fixture
def trouble():
    return Trouble()


@pytest.fixture
def address(trouble):
    """Return the address of a service that is content with everything."""

    class Content(BaseHTTPRequestHandler):
        def do_POST(self):
            trouble.met.add(trouble.now)
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST

        def log_message(self, *_):
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_):
            """Callers hang up here."""

    server = Quiet(("127.0.0.1", 0), Content)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def troupe(tmp_path, address):
    made = Small(tmp_path, address)
    yield made
    made.close()


def fault_of(kind):
    return next(one for one in islice(planned(1, "sqlite"), 50) if one.kind == kind)


def test_every_kind_but_the_slow_one_is_done(troupe, trouble):
    faults = Faults(troupe, trouble, trouble, 60.0)
    kinds = [kind for kind in KINDS["sqlite"] if kind != "slow clients"]  # it takes its time
    assert [kind for kind in kinds if not faults.do(fault_of(kind))] == []
    for name in ("service", "harness", "nightly", "recorder"):
        assert troupe.actors[name].codes["signal 9"] >= 1
    assert troupe.actors["service"].codes["signal 15"] >= 1
    assert troupe.worker.wait(60) == -9
    assert {"disk full", "database locked"} <= trouble.met
    assert not troupe.resting
    jump_ns = int(fault_of("clock jump").jump_s * SECOND_NS)
    assert troupe.clock.read_bytes() == jump_ns.to_bytes(8, "little", signed=True)
    acks = (troupe.desk / "acks" / "driver.jsonl").read_text().splitlines()
    assert {json.loads(line)["kind"] for line in acks} >= {"answer"}


def test_what_could_not_be_done_is_not_said_to_be(troupe, trouble):
    faults = Faults(troupe, trouble, trouble, 0.0)
    troupe.resting.add("service")
    for kind in ("kill service", "stop service", "disk full", "hostile bodies"):
        assert not faults.do(fault_of(kind))
    assert trouble.met == set()
