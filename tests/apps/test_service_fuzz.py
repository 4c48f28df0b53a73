"""Requests that fit the description, and many that do not: the service never breaks."""

import threading
from pathlib import Path

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.tokens import FILE, TokenFile
from tests.pipeline.registry_samples import QUICK
from tests.pipeline.service_samples import Loop


def described():
    """The description without its lock: every request is to get in here."""
    told = dict(create_app(ServiceSettings(folder=Path("x"))).openapi())
    del told["security"], told["components"]["securitySchemes"]
    return told


schema = schemathesis.openapi.from_dict(described())
QUIETLY = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A real server on loopback, with a champion, an agent and some trajectories behind it."""
    path = tmp_path_factory.mktemp("loop")
    loop = Loop(path)
    loop.install()
    loop.close()
    _, text = TokenFile(path / FILE).add("fuzz", "admin")
    app = create_app(ServiceSettings(folder=path, rollout=QUICK))
    running = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
    )
    socket = running.config.bind_socket()
    thread = threading.Thread(target=running.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    wait = threading.Event()
    while not running.started and thread.is_alive():
        wait.wait(0.05)
    url = f"http://127.0.0.1:{socket.getsockname()[1]}"
    headers = {"Authorization": f"Bearer {text}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        wish = {"agent_id": "ann", "points": 10_000}
        client.post("/api/admin/agents", json=wish).raise_for_status()
        client.post("/api/cron/agent-tick").raise_for_status()
        yield url, headers, client
    running.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


@schema.parametrize()
@QUIETLY
def test_no_request_breaks_the_service(server, case):
    url, headers, _ = server
    case.headers = {
        name: value
        for name, value in (case.headers or {}).items()
        if name.lower() not in ("authorization", "host")
    }
    answer = case.call(base_url=url, headers=headers)
    assert answer.status_code < 500, answer.text
    assert answer.status_code != 401
    if answer.status_code >= 400 and case.method != "HEAD":
        assert answer.headers["content-type"][0] == "application/problem+json"
        assert answer.json()["what"]


@QUIETLY
@given(
    path=st.sampled_from(sorted(schema.raw_schema["paths"])),
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]),
    part=st.text(max_size=40),
    body=st.binary(max_size=300),
)
def test_nor_does_anything_else(server, path, method, part, body):
    _, _, client = server
    for name in ("agent_id", "job_id", "model", "trajectory_id", "snapshot_id", "name"):
        path = path.replace(f"{{{name}}}", httpx.QueryParams({"p": part})["p"] or "x")
    try:
        request = client.build_request(method, path, content=body)
    except (httpx.InvalidURL, UnicodeEncodeError):
        return
    assert client.send(request).status_code < 500


def test_the_service_is_well_after_all_that(server):
    _, _, client = server
    assert client.get("/api/health").json()["status"] == "healthy"
