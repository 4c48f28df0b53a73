"""Load a service for a minute, on loopback: does it answer, how soon, and does it grow?

    python -m scripts.load_service [--seconds 60] [--clients 16] [--out docs/results]

Clients ask one request after the other, drawn from a mix of reading, writing, pages and requests
that must be refused. Nobody waits in between, so the service is as busy as it can be. How soon a
route answers depends on the machine and on the load; its 99th percentile is therefore told as a
ratio to that of an empty route (a path that is not there) in the same minute.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from agent_gym.core.clock import SystemClock
from agent_gym.core.files import write_json, write_text
from agent_gym.core.manifest import installed_versions
from agent_gym.core.seeds import Seeds
from scripts.seed_dashboard import seed
from scripts.served import Served, served

CLOCK = SystemClock()
EMPTY = "an empty route"
RUNS, STEPS = 1_000, 100_000
AGENT = "load"
WARM_UP_S = 3.0
FEWEST = 100
"""Requests below which a 99th percentile is not told."""
MOST_GROWTH = 1.1
"""Memory of the last third of the time over that of the first, at most."""


@dataclass(frozen=True)
class Route:
    """One kind of request, and what it must be answered with."""

    name: str
    method: str
    path: str
    status: int = 200
    weight: int = 4
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def routes(trajectory: str) -> list[Route]:
    """Return the mix."""
    json_body = {"Content-Type": "application/json"}
    one = f"/api/trajectories/{trajectory}"
    newest = "/api/trajectories?sort=total_reward&limit=50"
    return [
        Route(EMPTY, "GET", "/api/not-there", status=404, weight=8),
        Route("health", "GET", "/api/health"),
        Route("status", "GET", "/api/status"),
        Route("figures for Prometheus", "GET", "/metrics"),
        Route("agents", "GET", "/api/agents"),
        Route("models", "GET", "/api/models"),
        Route("50 trajectories", "GET", "/api/trajectories?limit=50"),
        Route("the best 50 trajectories", "GET", newest),
        Route("a trajectory", "GET", one),
        Route("100 of its steps", "GET", f"{one}/steps?first=5000&count=100"),
        Route("the first page", "GET", "/dashboard/", weight=1),
        Route("the page of runs", "GET", "/dashboard/runs", weight=1),
        Route(
            "points for an agent",
            "POST",
            f"/api/admin/agents/{AGENT}/points",
            body=b'{"points": 1}',
            headers=json_body,
        ),
        Route("a tick", "POST", "/api/cron/agent-tick", weight=1),
        Route("no token", "GET", "/api/status", status=401, headers={"Authorization": ""}),
        Route("another host", "GET", "/api/status", status=400, headers={"Host": "evil.example"}),
        Route(
            "a body that is too long",
            "POST",
            "/api/admin/agents",
            status=413,
            weight=1,
            body=b" " * 3_000_000,
            headers=json_body,
        ),
    ]


@dataclass
class Counts:
    """What came of the requests."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    memory_mb: list[float] = field(default_factory=list)

    @property
    def growth(self) -> tuple[float, float]:
        """Return the most memory of the first and of the last third of the time."""
        third = max(1, len(self.memory_mb) // 3)
        return max(self.memory_mb[:third]), max(self.memory_mb[-third:])


def load(service: Served, mix: list[Route], seconds: float, clients: int) -> Counts:
    """Ask for so long, and return what was answered."""
    asyncio.run(_loaded(service, mix, WARM_UP_S, clients, Counts()))
    counts = Counts()
    asyncio.run(_loaded(service, mix, seconds, clients, counts))
    return counts


async def _loaded(
    service: Served, mix: list[Route], seconds: float, clients: int, counts: Counts
) -> None:
    until = CLOCK.monotonic_s() + seconds
    draws = [_drawn(mix, Seeds(0).child("load", n)) for n in range(clients)]
    async with asyncio.TaskGroup() as group:
        for draw in draws:
            group.create_task(_client(service, draw, until, counts))
        group.create_task(_weighed(service.pid, until, counts))


def _drawn(mix: list[Route], seeds: Seeds) -> Iterator[Route]:
    rng = seeds.rng()
    weights = np.array([route.weight for route in mix], float)
    while True:
        yield mix[rng.choice(len(mix), p=weights / weights.sum())]


async def _client(service: Served, draw: Iterator[Route], until: float, counts: Counts) -> None:
    headers = {"Authorization": f"Bearer {service.token}"}
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(
        base_url=service.url, headers=headers, timeout=60, limits=limits
    ) as client:
        await client.post("/dashboard/login", data={"token": service.token, "next": "/dashboard/"})
        while CLOCK.monotonic_s() < until:
            route = next(draw)
            begun = CLOCK.monotonic_s()
            try:
                answer = await client.request(
                    route.method, route.path, content=route.body, headers=route.headers
                )
                status = str(answer.status_code)
            except httpx.TransportError as error:
                status = type(error).__name__
            counts.seconds[route.name].append(CLOCK.monotonic_s() - begun)
            counts.statuses[route.name][status] += 1


async def _weighed(pid: int, until: float, counts: Counts) -> None:
    while CLOCK.monotonic_s() < until:
        counts.memory_mb.append(memory_mb(pid))
        await asyncio.sleep(0.5)


def memory_mb(pid: int) -> float:
    """Return the memory that a process holds."""
    (line,) = [
        each
        for each in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        if each.startswith("VmRSS:")
    ]
    return int(line.split()[1]) / 1024


def figures(mix: list[Route], counts: Counts, seconds: float) -> dict[str, Any]:
    """Return how soon each route answered, what was not as it must be, and the memory."""
    empty = _late(counts.seconds[EMPTY])
    rows = {}
    for route in mix:
        found = counts.seconds[route.name]
        late = _late(found)
        rows[route.name] = {
            "requests": len(found),
            "statuses": dict(counts.statuses[route.name]),
            "expected": route.status,
            "median_ms": float(np.median(found) * 1e3) if found else None,
            "p99_ms": None if late is None else late * 1e3,
            "p99_ratio": None if late is None or empty is None else late / empty,
        }
    first, last = counts.growth
    return {
        "requests_per_s": sum(map(len, counts.seconds.values())) / seconds,
        "routes": rows,
        "violations": list(violations(mix, counts)),
        "memory_mb": {"first_third": first, "last_third": last},
    }


def _late(seconds: list[float]) -> float | None:
    return float(np.percentile(seconds, 99)) if len(seconds) >= FEWEST else None


def violations(mix: list[Route], counts: Counts) -> Iterator[str]:
    """Yield every answer that is not the one that a route must give."""
    for route in mix:
        for status, n in counts.statuses[route.name].items():
            if status != str(route.status):
                yield f"{route.name}: {n} times {status} instead of {route.status}"
    first, last = counts.growth
    if last > MOST_GROWTH * first:
        yield f"memory grew from {first:.0f} to {last:.0f} MB"


def page(found: dict[str, Any]) -> str:
    """Return the figures as a page."""
    memory = found["memory_mb"]
    lines = [
        "# A service under load",
        "",
        f"{found['clients']} clients for {found['seconds']:g} s on loopback, on a machine of "
        f"{found['cpus']} cores that they share with the service: {found['requests_per_s']:.0f} "
        f"requests a second. Memory {memory['first_third']:.0f} MB at most in the first third of "
        f"the time, {memory['last_third']:.0f} MB in the last.",
        "",
        "Nothing was answered in another way than it must be."
        if not found["violations"]
        else "**Not as it must be:** " + "; ".join(found["violations"]) + ".",
        "",
        "Times depend on the machine and on the load, so the 99th percentile is told as a ratio to "
        "that of an empty route, a path that is not there, in the same minute.",
        "",
        "| request | answers | how many | median, ms | p99, ms | p99 over the empty route's |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in found["routes"].items():
        answers = ", ".join(row["statuses"])
        times = [_number(row[key]) for key in ("median_ms", "p99_ms", "p99_ratio")]
        lines.append(f"| {name} | {answers} | {row['requests']:,} | {' | '.join(times)} |")
    return "\n".join([*lines, "", f"    {found['command']}", ""])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def main() -> int:
    """Seed, serve, load, and write the page; 1 if an answer is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent-gym-load-") as folder:
        place = Path(folder) / "loop"
        names = seed(place, runs=RUNS, steps=STEPS)
        with served(place) as service:
            prepare(service)
            mix = routes(names["long_trajectory"])
            counts = load(service, mix, asked.seconds, asked.clients)
    words = f"--seconds {asked.seconds:g} --clients {asked.clients}"
    found = figures(mix, counts, asked.seconds) | {
        "command": f"python -m scripts.load_service {words}",
        "seconds": asked.seconds,
        "clients": asked.clients,
        "cpus": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "versions": installed_versions(),
    }
    write_json(asked.out / "load.json", found)
    write_text(asked.out / "load.md", page(found))
    print(page(found))  # noqa: T201 - what a script is for
    return 1 if found["violations"] else 0


def prepare(service: Served) -> None:
    """Let an agent live that is given points."""
    headers = {"Authorization": f"Bearer {service.token}"}
    wish = {"agent_id": AGENT, "points": 100}
    httpx.post(f"{service.url}/api/admin/agents", json=wish, headers=headers).raise_for_status()


if __name__ == "__main__":
    raise SystemExit(main())
