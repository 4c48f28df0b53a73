"""A real service: started, ticking, killed, started again, ended politely; and its tokens."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from socket import create_server
from threading import Event

import httpx
import pytest

from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.binding import names_of
from agent_gym.apps.cli.main import run
from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.runtime import stored_calls, verify_served
from tests.pipeline.service_samples import Loop

ROOT = Path(__file__).resolve().parents[2]


COMMAND = "from agent_gym.apps.cli.main import main; main()"
SLOW = f"""
from threading import Event
from agent_gym.pipeline.automation.stages import Stages
Stages.claim = lambda self, job: Event().wait(600)
{COMMAND}
"""


class Served:
    """A service in a process of its own."""

    def __init__(self, folder, *options, command=COMMAND):
        words = [sys.executable, "-c", command, "serve"]
        self.log = (folder / "log.txt").open("a")
        self.process = subprocess.Popen(
            [*words, "--port", "0", "--json", "--folder", str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "AGENT_GYM_DATABASE": ""},
            text=True,
        )
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(self.process.stdout.readline())
            assert lines[-1], (folder / "log.txt").read_text()
        self.told = json.loads("".join(lines))

    def end(self, number):
        self.process.send_signal(number)
        code = self.process.wait(120)
        self.process.stdout.close()
        self.log.close()
        return code


@contextmanager
def client_of(served, token):
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=served.told["url"], headers=headers, timeout=120) as client:
        yield client


def test_a_service_lives_through_a_kill(tmp_path):
    loop = Loop(tmp_path)
    champion = loop.install()
    loop.close()
    served = Served(tmp_path)
    token = served.told["token"]
    assert token.startswith("agym_")
    with client_of(served, token) as client:
        for name in ("ann", "ben"):
            wish = {"agent_id": name, "points": 10_000}
            assert client.post("/api/admin/agents", json=wish).status_code == 201
        for _ in range(5):
            rows = client.post("/api/cron/agent-tick").json()["rows"]
            assert {row["model"] for row in rows} == {champion}
        assert httpx.get(f"{served.told['url']}/api/status").status_code == 401
    assert served.end(signal.SIGKILL) == -signal.SIGKILL

    served = Served(tmp_path, "--tick-every", "0.1", "--check-every", "0.1", "--train-every", "0.2")
    assert served.told["token"] is None  # it was shown once
    with client_of(served, token) as client:
        for _ in range(2_000):
            ann = client.get("/api/agents/ann").json()
            if ann["tick"] >= 12:
                break
            Event().wait(0.05)
        assert ann["tick"] >= 12
        assert client.get("/api/verify").json()["ok"]
    assert served.end(signal.SIGTERM) == 0
    log = (tmp_path / "log.txt").read_text()
    assert "training skipped: " in log
    assert "more unused trajectories are needed" in log
    assert "training check: " in log
    assert "agent tick: 2 played, 0 lost, 0 failed" in log
    assert "Traceback" not in log
    assert token not in log
    assert token.split("_", 2)[2] not in log

    loop = Loop(tmp_path)
    for name in ("ann", "ben"):
        agent = loop.store.agents.get(name)
        ticks = [each.call.tick for each in stored_calls(loop.store, agent_id=name)]
        assert ticks == list(range(agent.tick))
        assert agent.points == 10_000 - agent.tick
    assert verify_served(loop.store, loop.deployments).ok
    loop.close()


def test_a_training_under_way_is_left_at_once_and_taken_up_again(tmp_path):
    loop = Loop(tmp_path)
    loop.install()
    loop.close()
    served = Served(tmp_path, command=SLOW)
    token = served.told["token"]
    with client_of(served, token) as client:
        wish = {"force": True, "job_id": "night-1"}
        assert client.post("/api/admin/training/trigger", json=wish).json()["started"]
        assert client.get("/api/training/night-1").json()["status"] == "running"
        refused = subprocess.run(
            [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--folder", str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert refused.returncode == 4
        assert "another process is at work here" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert served.end(signal.SIGTERM) == 0
    assert "goes on at the next start" in (tmp_path / "log.txt").read_text()

    served = Served(tmp_path)
    with client_of(served, token) as client:
        for _ in range(2_000):
            status = client.get("/api/training/night-1").json()
            if status["status"] != "running":
                break
            Event().wait(0.05)
        assert (status["status"], status["outcome"]["ending"]) == ("ended", "skipped")
    assert served.end(signal.SIGINT) == 0


def test_only_who_says_so_binds_to_the_world():
    assert "127.0.0.1" in names_of("127.0.0.1", (), remote=False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "gym.example"):
        with pytest.raises(ConfigError, match="others could reach"):
            names_of(host, (), remote=False)
    names = names_of("10.0.0.1", ("gym.example",), remote=True)
    assert {"10.0.0.1", "gym.example", "localhost"} <= set(names)
    assert "[::]" in names_of("::", (), remote=True)


def test_the_command_refuses_the_world_too(tmp_path, capsys):
    words = ["serve", "--host", "0.0.0.0", "--folder", str(tmp_path), "--json"]
    assert run(words, as_json=True) == 2
    assert "others could reach" in json.loads(capsys.readouterr().out)["what"]
    assert not (tmp_path / FILE).exists()


def test_a_port_that_is_taken_is_said_to_be(tmp_path, capsys):
    with create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["serve", "--port", port, "--folder", str(tmp_path), "--json"]
        assert run(words, as_json=True) == 2
    assert port in json.loads(capsys.readouterr().out)["where"]
    assert not (tmp_path / FILE).exists()


def test_tokens_from_the_command_line(tmp_path, capsys):
    def said(*words):
        assert run(["tokens", *words, "--folder", str(tmp_path), "--json"], as_json=True) == 0
        return json.loads(capsys.readouterr().out)

    made = said("add", "cron", "--role", "run", "--days", "30")
    found = TokenFile(tmp_path / FILE).check(f"Bearer {made['token']}")
    assert (found.name, found.role) == ("cron", "run")
    (listed,) = said("list")["tokens"]
    assert listed["id"] == made["id"]
    assert not {"token", "salt", "digest"} & set(listed)
    assert said("revoke", made["id"])["id"] == made["id"]
    assert said("list")["tokens"] == []
    assert run(["tokens", "revoke", "x", "--folder", str(tmp_path), "--json"], as_json=True) == 2
    capsys.readouterr()
    assert run(["tokens", "add", "x", "--role", "root", "--json"], as_json=True) == 2
