"""The doors let agents in: every example, in both languages, plays as the same agent in process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from agent_gym.agents.doors.words import DoorError
from agent_gym.core import Ref, make
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import Decision, Nanos, Observation
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, play_seed
from agent_gym.rollouts import MemorySink, check_agent
from tests.doors.door_samples import (
    EXAMPLES,
    alive,
    hostile,
    needs_node,
    pipe_ref,
    played,
    start,
    world,
)
from tests.envs.benchmark_samples import made
from tests.samples import random_bars

LANGUAGES = [
    pytest.param((sys.executable, "py"), id="python"),
    pytest.param(("node", "js"), id="javascript", marks=needs_node),
]


class Average:
    """The agent of all examples, in process."""

    name = "average"

    def reset(self, start):
        self._column, self._closes, self._actions = start.column("close"), [], start.actions

    def act(self, obs):
        self._closes = [*self._closes, float(obs.features[self._column])][-20:]
        above = self._closes[-1] > sum(self._closes) / len(self._closes)
        return Decision(self._actions.encode(1.0 if above else 0.0))

    def observe(self, step):
        """Nothing to learn."""


def bars():
    return random_bars(300, 5, kind="spot")


@pytest.fixture(scope="module")
def expected():
    return BacktestEngine().run(bars(), Average(), 3).equity_hash


@contextmanager
def serving(language, name):
    """Start an example on a free port and end it again."""
    program, ending = language
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = EXAMPLES / f"{name}.{ending}"
    child = subprocess.Popen([program, str(script), str(port)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            assert child.poll() is None
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            SystemClock().sleep_s(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_trades_as_the_same_agent_in_process(language, expected):
    program, ending = language
    word = "python" if ending == "py" else program
    ref = Ref(use="door/pipe", params={"command": f"{word} {EXAMPLES / 'pipe_agent'}.{ending}"})
    assert BacktestEngine().run(bars(), ref, 3).equity_hash == expected
    assert alive(EXAMPLES / f"pipe_agent.{ending}") == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("door", ["http", "a2a"])
def test_a_server_trades_as_the_same_agent_in_process(door, language, expected):
    with serving(language, f"{door}_agent") as url:
        ref = Ref(use=f"door/{door}", params={"url": url})
        assert BacktestEngine().run(bars(), ref, 3).equity_hash == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_behind_an_endpoint_trades(language):
    with serving(language, "openai_agent") as url:
        params = {"model": "average", "url": f"{url}/v1"}
        run = BacktestEngine().run(bars(), Ref(use="door/openai", params=params), 3)
        again = BacktestEngine().run(bars(), Ref(use="door/openai", params=params), 3)
    assert run.equity_hash == again.equity_hash
    assert set(run.target.tolist()) == {0.0, 1.0}
    inside = BacktestEngine().run(bars(), Average(), 3)
    assert (run.target == inside.target).mean() > 0.95  # prices are shown with six digits


def test_the_contract_of_agents_is_kept():
    ref = pipe_ref(EXAMPLES / "pipe_agent.py")
    check_agent(lambda: make("agent", ref), lambda: world(40))


def test_a_scenario_is_played_by_a_program():
    params = {"hours": 12.0, "warmup_hours": 1.0, "shocks": 1}
    config = ScenarioConfig(name="crash", type="flash_crash", params=params)
    subject = Subject(agent=pipe_ref(EXAMPLES / "pipe_agent.py"))
    own = play_seed(config, subject, 1)
    again = play_seed(config, subject, 1)
    assert (own.metrics, own.trajectory_hash) == (again.metrics, again.trajectory_hash)
    flat = play_seed(config, Subject(agent=Ref(use="rules/flat")), 1)
    assert own.trajectory_hash != flat.trajectory_hash


def test_one_process_serves_a_worker(tmp_path):
    deed = "answer(question, target=0.0, signals={'pid': os.getpid(), 'n': len(sys.argv)})"
    script = hostile(tmp_path, f"{deed}")
    for process, starts in (("episode", 2), ("worker", 1)):
        agent = make("agent", pipe_ref(script, process=process))
        for _ in range(2):
            agent.reset(start())
            agent.act(observed(1.0))
        assert agent._channel.starts == starts
        agent.close()
    assert alive(script) == []


def test_a_lost_process_is_started_anew(tmp_path):
    deed = "if question['features'][0] < 0: sys.exit(3)"
    script = hostile(tmp_path, deed, answers=True)
    agent = make("agent", pipe_ref(script, restarts=2))
    agent.reset(start())
    assert agent.act(observed(1.0)).signals is None
    with pytest.raises(DoorError, match="process ended"):
        agent.act(observed(-1.0))
    assert agent.used_restarts == 2
    agent.reset(start())
    assert agent.used_restarts == 0
    agent.close()


def test_a_restart_is_recorded(tmp_path):
    deed = "if question['id'] == 4: sys.exit(3)"
    script = hostile(tmp_path, deed, answers=True)
    sink = MemorySink()
    assert played(pipe_ref(script, restarts=20), 10, (sink,)).status == "ok"
    assert sink.steps[-1].decision.signals["restarts"] > 1
    assert played(pipe_ref(script), 10).status == "error"


def test_it_is_told_what_came_of_it(tmp_path):
    script = tmp_path / "agent.py"
    script.write_text(
        "import json, sys\nseen = 0.0\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    a = {'id': q['id'], 'protocol': 1, 'observe': True}\n"
        "    if q['ask'] == 'observe': seen += q['reward']\n"
        "    if q['ask'] == 'act': a |= {'target': 1.0, 'signals': {'seen': seen}}\n"
        "    print(json.dumps(a), flush=True)\n"
    )
    sink = MemorySink()
    assert played(pipe_ref(script), 10, (sink,)).status == "ok"
    rewards = [step.after.reward for step in sink.steps]
    assert sink.steps[-1].decision.signals["seen"] == sum(rewards[:-1])
    assert any(rewards)


@pytest.mark.parametrize("said", ["2", "null", '"1"', "[1]"])
def test_another_protocol_is_refused(tmp_path, said):
    script = tmp_path / "agent.py"
    script.write_text(f'input(); print(\'{{"id": 1, "protocol": {said}}}\', flush=True); input()')
    result = played(pipe_ref(script))
    assert "another protocol" in str(result.error["what"])


@pytest.mark.parametrize(("said", "action"), [({"action": 2}, 2), ({"target": 0.8}, 2)])
def test_counted_actions(tmp_path, said, action):
    script = hostile(tmp_path, f"answer(question, **{said})")
    agent = make("agent", pipe_ref(script))
    agent.reset(start(3))
    assert agent.act(observed(1.0)).action == action
    agent.close()


@pytest.mark.parametrize("action", [3, -1, 1.5])
def test_actions_that_do_not_exist(tmp_path, action):
    agent = make("agent", pipe_ref(hostile(tmp_path, f"answer(question, action={action})")))
    agent.reset(start(3))
    with pytest.raises(DoorError, match="no such action"):
        agent.act(observed(1.0))


REPLIES = {
    "redirect": (302, b"", "points elsewhere"),
    "failure": (500, b"{}", "failed"),
    "nonsense": (200, b"hello", "JSON"),
    "too long": (200, b'"' + b"x" * 100_000 + b'"', "too long"),
    "no card": (200, b'{"id": 7}', ""),
}


@contextmanager
def answering(status, body, wait_s=0.0):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            SystemClock().sleep_s(wait_s)
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_):
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("door", ["http", "a2a"])
@pytest.mark.parametrize("name", REPLIES)
def test_a_server_that_misbehaves_is_a_recorded_failure(door, name):
    status, body, said = REPLIES[name]
    with answering(status, body) as url:
        result = played(Ref(use=f"door/{door}", params={"url": url}))
    assert result.status == "error"
    assert result.error["error"] == "DoorError"
    assert said in str(result.error["what"])


def test_a_server_that_hangs_or_is_gone():
    with answering(200, b"{}", wait_s=5.0) as url:
        late = played(Ref(use="door/http", params={"url": url, "answer_s": 0.3}))
    assert "in time" in str(late.error["what"])
    gone = played(Ref(use="door/http", params={"url": "http://127.0.0.1:9"}))
    assert "no connection" in str(gone.error["what"])


def test_a_card_may_not_send_us_elsewhere():
    way = {"url": "http://example.org/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    with answering(200, json.dumps({"supportedInterfaces": [way]}).encode()) as url:
        result = played(Ref(use="door/a2a", params={"url": url}))
    assert "may not be spoken to" in str(result.error["what"])


@pytest.mark.parametrize("door", ["http", "a2a"])
@pytest.mark.parametrize(
    "url", ["http://example.org/", "file:///etc/passwd", "http://a:b@127.0.0.1/"]
)
def test_only_hosts_that_are_named_are_spoken_to(door, url):
    with pytest.raises(ConfigError):
        make("agent", Ref(use=f"door/{door}", params={"url": url}))


def test_a_model_that_fails_ends_the_episode_or_holds():
    with answering(500, b"") as url:
        params = {"model": "m", "endpoint": {"url": f"{url}/v1", "retries": 0}}
        strict = played(Ref(use="door/openai", params=params), 5)
        assert "no answer that can be used" in str(strict.error["what"])
        assert played(Ref(use="door/openai", params=params | {"strict": False}), 5).status == "ok"


def observed(value):
    return Observation(Nanos(0), np.array([value]))


def test_a_program_plays_benchmark_snapshots_and_failures_are_rows(tmp_path):
    path, other = made(0).save(tmp_path), tmp_path / "other"
    other.mkdir()
    script = tmp_path / "agent.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    a = {'id': q['id'], 'protocol': 1}\n"
        "    if q['ask'] == 'start':\n"
        "        names = q['episode']['features']\n"
        "        n = len(dict.fromkeys(x.split('/')[0] for x in names)) - 1\n"
        "    if q['ask'] == 'act': a['target'] = [0.0] * n\n"
        "    print(json.dumps(a), flush=True)\n"
    )
    agents = {
        "mine": pipe_ref(script),
        "flat": Ref(use="benchmark/flat"),
        "dead": pipe_ref(hostile(other, "sys.exit(1)")),
    }
    report = BenchmarkRunner(RunnerConfig(optimum=False)).run([path], agents)
    mine, flat, dead = report.rows
    assert mine["status"] == flat["status"] == "ok"
    assert mine["return"] == flat["return"]
    assert dead["status"] == "error"
    assert "process ended" in dead["error"]["what"]
