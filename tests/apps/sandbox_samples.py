"""A sandbox for tests: a real server on loopback, in a thread or in a process of its own."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import httpx
import uvicorn

from agent_gym.apps.binding import LOOPBACK
from agent_gym.apps.sandbox.app import create_app
from agent_gym.apps.sandbox.desk import Asked, Desk
from agent_gym.apps.sandbox.journal import Keeping
from agent_gym.apps.sandbox.keys import make_keys
from agent_gym.apps.sandbox.opening import open_session
from agent_gym.apps.sandbox.settings import SandboxSettings
from agent_gym.core.clock import SystemClock
from agent_gym.markets.instrument import Instrument
from tests.samples import random_bars

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "from agent_gym.apps.cli.main import main; main()"


def market(n=300, seed=0, symbol="BTC/USDT", **more):
    """Return a spot market with an exchange's grid."""
    bars = random_bars(n, seed, kind="spot", start_price=20_000.0, volume=3_000.0, **more)
    grid = Instrument(symbol=symbol, tick=0.01, lot=0.00001, min_notional=5.0)
    return replace(bars, instrument=grid)


def session_of(markets=None, accounts=("ann", "ben"), folder=None, wall=None, **settings):
    """Return a session whose clock stands, unless a speed is given."""
    told = SandboxSettings(**({"speed": "step", "history": 50} | settings))
    keeping = None
    if folder is not None:
        keeping = Keeping("session", folder / "out", trajectories=folder / "trajectories")
    return open_session(markets or [market()], make_keys(accounts), told, keeping, wall=wall)


class Served:
    """A session behind a real server in a thread."""

    def __init__(self, session, server, url):
        self.session, self._server, self.url = session, server, url
        self.http = httpx.Client(base_url=url, timeout=60, verify=False)
        self.keys = {key.name: key for key in session.keys}

    def key(self, name="ann"):
        return self.keys[name].api_key, self.keys[name].secret.get_secret_value()

    def step(self, bars=1, name="ann"):
        """Let bars pass, as a bot does."""
        headers = {"X-MBX-APIKEY": self.key(name)[0]}
        answer = self.http.post("/sandbox/step", params={"bars": bars}, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def asked(self, method, path, params=None, name="ann", **changes):
        """Send a signed request and return status and answer; changes go in unsigned."""
        key, secret = self.key(name)
        stamp = {"timestamp": SystemClock().now_ns() // 10**6, "recvWindow": 60_000}
        given = stamp | (params or {})
        query = urlencode({k: v for k, v in given.items() if v is not None})
        signature = hmac.new(secret.encode(), query.encode(), hashlib.sha256).hexdigest()
        query = f"{query}&signature={changes.get('signature', signature)}{changes.get('tail', '')}"
        headers = {"X-MBX-APIKEY": changes.get("key", key)}
        headers = {k: v for k, v in headers.items() if v is not None}
        answer = self.http.request(method, f"{path}?{query}", headers=headers)
        return answer.status_code, answer.json()

    def listen_key(self, name):
        headers = {"X-MBX-APIKEY": self.key(name)[0]}
        return self.http.post("/api/v3/userDataStream", headers=headers).json()["listenKey"]

    def order(self, name="ann", **params):
        given = {"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET"} | params
        return self.asked("POST", "/api/v3/order", given, name)


@contextmanager
def serving(session):
    """Serve a session while the block lasts."""
    config = uvicorn.Config(
        create_app(session, LOOPBACK), port=0, log_level="warning", lifespan="on"
    )
    server, ready = uvicorn.Server(config), Event()
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(6_000):
        if server.started:
            break
        ready.wait(0.01)
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]
    place = Served(session, server, f"http://127.0.0.1:{port}")
    try:
        yield place
    finally:
        place.http.close()
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive()


class Process:
    """The command ``agent-gym sandbox`` in a process of its own."""

    def __init__(self, folder, *options):
        self.log = (folder / "log.txt").open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "sandbox", "--port", "0", "--json", *options],
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=ROOT,
            env=os.environ | {"AGENT_GYM_HOME": str(folder / "home"), "AGENT_GYM_DATABASE": ""},
            text=True,
        )
        lines = []
        while not lines or lines[-1] != "}\n":
            lines.append(self.process.stdout.readline())
            assert lines[-1], (folder / "log.txt").read_text()
        self.told = json.loads("".join(lines))

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(120)
        self.process.stdout.close()
        self.log.close()
        return code


def signed(session, params, path="/api/v3/account", method="GET", name="ann", desk=None):
    """Ask without a network."""
    key = next(one for one in session.keys if one.name == name)
    query = urlencode({name: value for name, value in params.items() if value is not None})
    secret = key.secret.get_secret_value().encode()
    query += f"&signature={hmac.new(secret, query.encode(), hashlib.sha256).hexdigest()}"
    asked = Asked(method, path, query.encode(), b"", key.api_key)
    return json.loads((desk or Desk(session)).handle(asked).body)
