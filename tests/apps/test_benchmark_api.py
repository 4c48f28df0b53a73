from __future__ import annotations

import threading

import httpx
import pytest
import uvicorn

from agent_gym.apps.api.a2a import SessionBook, create_a2a_app
from agent_gym.core.errors import ConfigError
from agent_gym.envs.benchmark.calls import METHODS
from tests.envs.benchmark_samples import made, world

TOKEN = "a-token-for-the-tests"
HEAD = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("snapshots")
    made(0).save(where)
    return where


@pytest.fixture(scope="module")
def server(folder):
    """A real server on loopback, on a port that the system chooses."""
    app = create_a2a_app(SessionBook(folder, max_calls=60, most=6), TOKEN)
    running = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    )
    socket = running.config.bind_socket()
    thread = threading.Thread(target=running.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    running.should_exit = True
    thread.join(30)


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server, headers=HEAD, timeout=60) as one:
        yield one


def begin(client) -> str:
    answer = client.post("/a2a/sessions", json={"snapshot": made(0).snapshot.id})
    assert answer.status_code == 201, answer.text
    return answer.json()["session"]


def rpc(client, session, method, **params):
    asked = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    answer = client.post(f"/a2a/sessions/{session}/rpc", json=asked)
    assert answer.status_code == 200
    assert answer.json()["id"] == 7
    return answer.json()


def test_an_episode_over_http_is_the_same_as_in_process(client):
    session = begin(client)
    here = world(0)
    client_side = rpc(client, session, "a2a.buyShares", marketId="pm-1", outcome="YES", amount=90.0)
    bought = here.floor.buy_shares(0, "yes", 90.0)
    assert client_side["result"]["shares"] == bought.shares
    for _ in range(40):
        there = rpc(client, session, "runner.nextTick")["result"]
        assert there["reward"] == here.end_tick().reward
    assert there["finished"]
    assert rpc(client, session, "runner.nextTick")["error"]["message"] == "the episode is over"
    figures = client.get(f"/a2a/sessions/{session}/score").json()
    assert figures["totalPnl"] == pytest.approx(here.equity - 10_000.0)
    assert figures["predictionMetrics"]["totalPositions"] == 1
    assert client.delete(f"/a2a/sessions/{session}").status_code == 204
    assert client.get(f"/a2a/sessions/{session}").status_code == 404


def test_every_method_answers(client):
    session = begin(client)
    for method in METHODS:
        answer = rpc(client, session, method)
        assert ("result" in answer) != ("error" in answer)
        assert ("result" in answer) == method.startswith("a2a.get")
    assert client.get(f"/a2a/sessions/{session}").json()["invalidCalls"] == 6
    client.delete(f"/a2a/sessions/{session}")


def test_the_score_is_sealed_until_the_end(client):
    session = begin(client)
    assert client.get(f"/a2a/sessions/{session}/score").status_code == 409
    client.delete(f"/a2a/sessions/{session}")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'"x"', b"{}", b'{"method": 3}', b"\xff"])
def test_garbage_is_answered_not_fatal(client, body):
    session = begin(client)
    answer = client.post(f"/a2a/sessions/{session}/rpc", content=body)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] < 0
    assert rpc(client, session, "a2a.getBalance")["result"]["balance"] == 10_000.0
    client.delete(f"/a2a/sessions/{session}")


PATHS = ("/", "/docs", "/openapi.json", "/a2a/sessions", "/a2a/sessions/x", "/a2a/sessions/x/rpc")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_answers_without_the_token(server, method):
    with httpx.Client(base_url=server, timeout=60) as stranger:
        for path in PATHS:
            for head in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
                assert stranger.request(method, path, headers=head).status_code == 401


def test_other_hosts_large_bodies_and_streams_are_refused(client):
    answer = client.get("/a2a/sessions/x", headers={"host": "evil.example"})
    assert answer.status_code == 400
    large = client.post("/a2a/sessions", content=b" " * 70_000)
    assert large.status_code == 413
    streamed = client.post("/a2a/sessions", content=iter([b"{}"]))
    assert streamed.status_code == 411


@pytest.mark.parametrize("name", ["0" * 32, "../../etc/passwd", "", "A" * 32])
def test_only_snapshots_of_the_folder_can_be_played(client, name):
    answer = client.post("/a2a/sessions", json={"snapshot": name})
    assert answer.status_code in (404, 422)


def test_a_damaged_snapshot_is_refused_in_words(client, folder):
    (folder / f"{'a' * 32}.snapshot.xz").write_bytes(b"damaged")
    answer = client.post("/a2a/sessions", json={"snapshot": "a" * 32})
    assert answer.status_code == 409
    assert "damaged" in answer.json()["detail"]


def test_sessions_are_limited(client):
    opened = []
    answer = None
    for _ in range(8):
        answer = client.post("/a2a/sessions", json={"snapshot": made(0).snapshot.id})
        if answer.status_code != 201:
            break
        opened.append(answer.json()["session"])
    assert answer is not None
    assert answer.status_code == 429
    assert len(set(opened)) == len(opened) <= 6
    for name in opened:
        client.delete(f"/a2a/sessions/{name}")


def test_calls_of_an_episode_are_limited(client):
    session = begin(client)
    for _ in range(2):
        for _ in range(35):
            last = rpc(client, session, "a2a.getBalance")
        rpc(client, session, "runner.nextTick")
    assert "60 calls" in last["error"]["message"]
    client.delete(f"/a2a/sessions/{session}")


def test_a_short_token_is_refused(folder):
    with pytest.raises(ConfigError, match="too short"):
        create_a2a_app(SessionBook(folder), "short")
