"""Those who call the service: the usual ones, the slow, the broken and the hostile."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from agent_gym.core.clock import SystemClock
from tests.soak.acks import Acks

PATHS = (
    "/api/status",
    "/api/health",
    "/api/agents",
    "/api/models",
    "/api/trajectories?limit=5",
    "/api/cron/training-check",
    "/metrics",
    "/dashboard",
    "/dashboard/runs",
    "/dashboard/models",
    "/dashboard/trajectories",
    "/openapi.json",
)
HOSTILE: tuple[bytes, ...] = (
    b"",
    b"{",
    b"\x00" * 100,
    b"\xff\xfe\xfd",
    b"[" * 20_000,
    b'{"a":' * 10_000,
    b'{"points": NaN}',
    b'{"points": 1e999}',
    b'{"points": ' + b"9" * 5_000 + b"}",
    b'{"points": -1}',
    b'{"call_id": "../../etc/passwd"}',
    b'{"call_id": "x' + b"y" * 60_000 + b'"}',
    b'{"agent_id": "a\\u0000b"}',
    b'{"agent_id": "\\ud800"}',
    b'{"job_id": "; drop table events"}',
    b"x" * 70_000,
    json.dumps({"agent_id": "soak-0", "points": [1]}).encode(),
)
DOORS = (
    "/api/cron/agent-tick",
    "/api/admin/agents",
    "/api/admin/agents/soak-0/points",
    "/api/admin/agents/%2e%2e%2f/status",
    "/api/admin/training/trigger",
    "/api/admin/models/deploy",
    "/a2a",
)
SLOW_S = 12.0
CLOCK = SystemClock()


class Callers:
    """Calls one service with one token; what it is told goes to the acknowledgements."""

    def __init__(self, url: str, token: str, acks: Acks) -> None:
        self._url, self._acks = url, acks
        self._headers = {"authorization": f"Bearer {token}"}
        split = urlsplit(url)
        self._place = (split.hostname or "127.0.0.1", split.port or 80)

    def usual(self, rng: np.random.Generator, agents: list[str], n: int) -> None:
        """Do what people and clocks do."""
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=60.0) as client:
            for k in range(n):
                choice = rng.random()
                if choice < 0.3:
                    self._tick(client, f"call-{int(rng.integers(2**40))}")
                elif choice < 0.5:
                    self._grant(client, str(rng.choice(agents)), int(rng.integers(1, 50)))
                elif choice < 0.55 and k == 0:
                    name = f"soak-{int(rng.integers(2**30))}"
                    wish = {"force": True, "job_id": name}
                    self._heard(client.post("/api/admin/training/trigger", json=wish))
                else:
                    path = str(rng.choice(PATHS))
                    self._heard(client.get(path, headers={"accept": "text/html,*/*"}))

    def hostile(self, rng: np.random.Generator, n: int) -> None:
        """Send what nobody should send."""
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=60.0) as client:
            for _ in range(n):
                body, door = HOSTILE[int(rng.integers(len(HOSTILE)))], str(rng.choice(DOORS))
                self._heard(
                    client.post(door, content=body, headers={"content-type": "application/json"})
                )

    def broken(self, rng: np.random.Generator, n: int) -> None:
        """Hang up at some point of a request."""
        body = json.dumps({"call_id": "broken"}).encode()
        whole = self._request("POST", "/api/cron/agent-tick", len(body)) + body
        for _ in range(n):
            with socket.create_connection(self._place, timeout=30.0) as line:
                line.sendall(whole[: int(rng.integers(1, len(whole) + 1))])
            self._acks.say("answer", status="hung up")

    def slow(self, n: int) -> None:
        """Send headers and a body drop by drop, longer than the service has patience."""
        lines = []
        for k in range(n):
            line = socket.create_connection(self._place, timeout=60.0)
            text = self._request("POST", "/api/cron/agent-tick", 1_000)
            line.sendall(text if k % 2 else text[:40])
            lines.append(line)
        until_s = CLOCK.monotonic_s() + SLOW_S
        while CLOCK.monotonic_s() < until_s:
            for line in lines:
                try:
                    line.sendall(b" ")
                except OSError:
                    continue  # the service has had enough
            CLOCK.sleep_s(0.5)
        for line in lines:
            line.close()
            self._acks.say("answer", status="drop by drop")

    def _request(self, method: str, path: str, length: int) -> bytes:
        host = f"{self._place[0]}:{self._place[1]}"
        return (
            f"{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
            f"authorization: {self._headers['authorization']}\r\ncontent-length: {length}\r\n\r\n"
        ).encode()

    def _tick(self, client: httpx.Client, call: str) -> None:
        for row in self._heard(client.post("/api/cron/agent-tick", json={"call_id": call})).get(
            "rows", ()
        ):
            if row["status"] in ("played", "lost"):
                self._acks.say("tick", agent=row["agent_id"], tick=row["tick"] - 1)

    def _grant(self, client: httpx.Client, agent: str, points: int) -> None:
        self._acks.say("asked", agent=agent, points=points)
        said = client.post(f"/api/admin/agents/{agent}/points", json={"points": points})
        self._heard(said)
        if said.status_code == 200:
            self._acks.say("granted", agent=agent, points=points)

    def _heard(self, said: httpx.Response) -> dict[str, Any]:
        wrong = None
        if said.status_code == 500 or b"Traceback" in said.content:
            request = said.request
            wrong = (
                f"{request.method} {request.url.path} with {request.content[:60]!r}: "
                f"{said.status_code} {said.text[:200]}"
            )
        self._acks.say("answer", status=said.status_code, wrong=wrong)
        try:
            found = said.json()
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
