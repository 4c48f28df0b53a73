"""Agents that really are elsewhere: a child process, a server on this machine."""

import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_gym.agents.desk import AgentRequest, RejectCode, Signal, SignalParams
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.flow import FlowManager, FlowPolicy, FlowState
from agent_gym.agents.desk.http_agent import HttpAgent
from agent_gym.agents.desk.process_agent import ProcessAgent
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from tests.agents.desk_flows import Context, decision, signal

C = RejectCode
SIGNAL = Signal("s1", "momentum", SignalParams(1.0), 0.0)

CHILD = """
import json, os, subprocess, sys, time
seen = {}
for line in sys.stdin:
    ask = json.loads(line)
    how = ask["request"]["signal"]["strategy"]
    name = ask["request"]["signal"]["signal_id"]
    def say(**more):
        sys.stdout.write(json.dumps(more) + "\\n"); sys.stdout.flush()
    if ask["ask"] == "state":
        say(**({"status": "ok", "payload": {"filled": seen[name]}} if name in seen
              else {"status": "unseen"}))
    elif ask["ask"] == "cancel":
        say(status="ok", payload={"filled": seen.get(name, 0.0), "rest": 0.0})
    elif how == "hang":
        time.sleep(600)
    elif how == "hang-with-child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open(os.environ["NOTE"], "w").write(str(child.pid))
        time.sleep(600)
    elif how == "crash":
        os._exit(3)
    elif how == "killed":
        os.kill(os.getpid(), 9)
    elif how == "garbage":
        sys.stdout.write("\\x00\\xff not json\\n"); sys.stdout.flush()
    elif how == "deep":
        sys.stdout.write("[" * 20000 + "\\n"); sys.stdout.flush()
    elif how == "list":
        sys.stdout.write("[1]\\n"); sys.stdout.flush()
    elif how == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif how == "flood-lines":
        while True:
            sys.stdout.write("{}\\n" * 1000)
    elif how == "flood-stderr":
        for _ in range(100):
            sys.stderr.write("x" * 65536)
        say(status="ok", payload={"size": 1.0})
    elif how == "mute":
        os.close(1); time.sleep(600)
    elif how == "environment":
        say(status="ok", payload={"names": sorted(os.environ)})
    elif how == "later":
        say(status="ok"); time.sleep(0.1); say(status="ok", payload={"size": 9.0})
    else:
        seen[name] = ask["request"]["size"]
        say(status="ok", payload={"filled": ask["request"]["size"]})
"""


def request(how, agent="risk", deadline_ms=10_000.0):
    wish = Signal("s1", how, SignalParams(1.0), 0.0)
    return AgentRequest("t1", agent, wish, 1.0, "", deadline_ms)


@pytest.fixture
def child(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(CHILD)
    agent = ProcessAgent([sys.executable, str(script)], env={"NOTE": str(tmp_path / "note")})
    yield agent
    agent.close()


def told(agent, how, **more):
    io = AgentIO()
    io.register("risk", agent)
    return io.send(request(how, **more), SystemClock())


def test_a_process_answers_and_stays(child):
    first, second = told(child, "plain"), told(child, "plain")
    assert (first.status, first.payload, second.status) == ("ok", {"filled": 1.0}, "ok")
    assert child.starts == 1


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ("crash", "error", C.AGENT_UNAVAILABLE),
        ("killed", "error", C.AGENT_UNAVAILABLE),
        ("mute", "error", C.AGENT_UNAVAILABLE),
        ("garbage", "error", C.AGENT_ERROR),
        ("deep", "error", C.AGENT_ERROR),
        ("list", "error", C.AGENT_ERROR),
        ("flood", "error", C.AGENT_ERROR),
        ("flood-lines", "error", C.AGENT_ERROR),
    ],
)
def test_a_bad_process_ends_in_a_status_and_the_next_question_in_a_new_one(
    child, how, status, code
):
    response = told(child, how)
    assert (response.status, response.code) == (status, code)
    assert told(child, "plain").status == "ok"
    assert child.starts == 2


def test_how_it_ended_is_told(child):
    assert "exit status 3" in told(child, "crash").payload["why"]
    assert "signal 9" in told(child, "killed").payload["why"]


def test_a_process_that_hangs_is_killed_at_its_deadline(child):
    told(child, "plain")
    process = child._process
    response = told(child, "hang", deadline_ms=200.0)
    assert (response.status, response.code) == ("timeout", C.AGENT_TIMEOUT)
    assert response.latency_ms >= 200.0
    assert process.returncode == -9
    assert told(child, "plain").status == "ok"


def test_what_a_process_began_is_killed_with_it(child, tmp_path):
    told(child, "hang-with-child", deadline_ms=2_000.0)
    pid = int((tmp_path / "note").read_text())
    for _ in range(100):
        status = Path(f"/proc/{pid}/stat")
        if not status.exists() or status.read_text().split()[2] == "Z":
            break
        time.sleep(0.05)  # noqa: TID251 - the kernel takes a moment
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_a_flood_of_complaints_harms_nobody(child):
    assert told(child, "flood-stderr").status == "ok"


def test_what_it_says_without_being_asked_is_never_an_answer(child):
    assert told(child, "later").status == "ok"
    time.sleep(0.5)  # noqa: TID251 - the child speaks out of turn meanwhile
    response = told(child, "plain")
    assert (response.status, response.code) == ("error", C.AGENT_ERROR)
    assert response.payload.get("size") is None


def test_it_inherits_no_secrets(child, monkeypatch):
    monkeypatch.setenv("EXCHANGE_SECRET", "hunter22")
    names = told(child, "environment").payload["names"]
    assert "EXCHANGE_SECRET" not in names
    assert set(names) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "NOTE"}


def test_a_program_that_is_not_there_is_unavailable():
    response = told(ProcessAgent(["/nowhere/agent"]), "plain")
    assert (response.status, response.code) == ("error", C.AGENT_UNAVAILABLE)
    with pytest.raises(ConfigError):
        ProcessAgent([])


def test_closing_leaves_no_process_behind(child):
    told(child, "plain")
    pid = child._process.pid
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_flow_asks_a_process_what_became_of_an_order(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(CHILD)
    io = AgentIO()
    for name in ("strategy", "risk"):
        io.register(name, lambda request: {"status": "ok"})
    agent = ProcessAgent([sys.executable, str(script)], has_state=True)
    io.register("execution", agent)
    assert io.can("execution", "cancel")
    flow = FlowManager(io, FlowPolicy(deadline_ms=60_000, execution_ms=10_000))
    result = flow.run(signal(), decision(), Context(), SystemClock())
    assert (result.state, result.filled) == (FlowState.FILLED, 1.0)
    crash = Signal("s2", "crash", SignalParams(1.0), 0.0)
    result = flow.run(crash, decision("s2"), Context(), SystemClock())
    agent.close()
    # each new process never saw the order, so it is sent again, and each time it dies
    assert (result.state, result.code, result.uncertain) == (
        FlowState.FAILED,
        C.AGENT_UNAVAILABLE,
        False,
    )
    assert result.retries == 2


# a server


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.headers_seen.append(dict(self.headers))
        self.rfile.read(int(self.headers["Content-Length"]))
        getattr(self, "say_" + self.path.strip("/"))()

    def say_plain(self):
        self._send(200, b'{"status": "ok", "payload": {"size": 0.5}}')

    def say_slow(self):
        self.server.wake.wait(20)
        self._send(200, b'{"status": "ok"}')

    def say_drip(self):
        """One byte at a time, each well within the timeout of a socket."""
        self.send_response(200)
        self.end_headers()
        while not self.server.wake.wait(0.02):
            self.wfile.write(b" ")

    def say_drip_headers(self):
        while not self.server.wake.wait(0.02):
            self.wfile.write(b"H")

    def say_redirect(self):
        self.send_response(302)
        self.send_header("Location", "/plain")
        self.end_headers()

    def say_oversize(self):
        self._send(200, b'{"status": "ok", "payload": {"x": "' + b"x" * 300_000 + b'"}}')

    def say_failing(self):
        self._send(500, b"oops")

    def say_busy(self):
        self._send(503, b"later")

    def say_garbage(self):
        self._send(200, b"<html>")

    def say_packed(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(b"\x1f\x8b")

    def say_gone(self):
        self.connection.close()

    def _send(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        pass


@pytest.fixture(scope="module")
def server():
    with Quiet(("127.0.0.1", 0), Server) as running:
        running.headers_seen = []
        running.wake = threading.Event()
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.wake.set()
        running.shutdown()
        thread.join()


def http(server, path, **more):
    return HttpAgent(f"http://127.0.0.1:{server.server_port}/{path}", **more)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("plain", "ok", None),
        ("redirect", "error", C.AGENT_ERROR),
        ("oversize", "error", C.AGENT_ERROR),
        ("failing", "error", C.AGENT_ERROR),
        ("busy", "error", C.AGENT_UNAVAILABLE),
        ("garbage", "error", C.AGENT_ERROR),
        ("packed", "error", C.AGENT_ERROR),
        ("gone", "error", C.AGENT_UNAVAILABLE),
    ],
)
def test_every_answer_of_a_server_ends_in_a_status(server, path, status, code):
    response = told(http(server, path), "plain")
    assert (response.status, response.code) == (status, code), response


@pytest.mark.parametrize("path", ["slow", "drip", "drip_headers"])
def test_a_slow_server_is_not_waited_for(server, path):
    response = told(http(server, path), "plain", deadline_ms=300.0)
    assert (response.status, response.code) == ("timeout", C.AGENT_TIMEOUT)


def test_a_server_that_is_not_there_is_unavailable():
    response = told(HttpAgent("http://127.0.0.1:9/"), "plain")
    assert (response.status, response.code) == ("error", C.AGENT_UNAVAILABLE)


def test_the_token_is_sent_and_never_shown(server):
    agent = http(server, "plain", token="hunter22")
    told(agent, "plain")
    assert server.headers_seen[-1]["Authorization"] == "Bearer hunter22"
    assert "hunter22" not in repr(agent)
    assert "hunter22" not in str(told(http(server, "failing", token="hunter22"), "plain"))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "http://169.254.169.254/latest",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://example.com/",
        "http://127.0.0.1.example.com/",
        "http://user:pw@127.0.0.1/",
        "http://[::ffff:169.254.169.254]/",
        "//127.0.0.1/",
        "",
    ],
)
def test_other_hosts_and_schemes_are_refused(url):
    with pytest.raises(ConfigError) as error:
        HttpAgent(url)
    assert "pw" not in str(error.value)


def test_a_host_may_be_named():
    url = "https://agents.example.com/x"
    with pytest.raises(ConfigError):
        HttpAgent(url)
    assert HttpAgent(url, hosts=["agents.example.com"]) is not None
