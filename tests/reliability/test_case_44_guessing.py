"""Cases 34, 40 and 44: guessing a token, flooding the door with headers, forging the log."""

from __future__ import annotations

import socket
import threading

import pytest
import uvicorn
from fastapi.testclient import TestClient

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.backoff import FREE_TRIES, LONGEST_WAIT_S
from agent_gym.apps.api.server import configured
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.listening import bound
from agent_gym.core.clock import SECOND_NS, ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def tokens(tmp_path, clock):
    return TokenFile(tmp_path / FILE, clock)


def wrong(token):
    return f"Bearer agym_{token.id}_{'A' * 43}"


@pytest.mark.case(44)
def test_who_guesses_must_wait_and_others_need_not(tokens, clock):
    token, text = tokens.add("one", "admin")
    other, other_text = tokens.add("two", "read")
    for _ in range(FREE_TRIES):
        assert tokens.check(wrong(token), "here") is None
    right = f"Bearer {text}"
    assert tokens.check(right, "here") is None  # not even looked at
    assert tokens.check(right, "elsewhere") == token
    assert tokens.check(f"Bearer {other_text}", "here") == other
    clock.advance_ns(2 * SECOND_NS)
    assert tokens.check(right, "here") == token
    assert tokens.check(wrong(token), "here") is None
    assert tokens.check(right, "here") == token  # the count began anew


@pytest.mark.case(44)
def test_waits_grow_to_a_minute_and_no_further(tokens, clock):
    token, text = tokens.add("one", "admin")
    waited = []
    for _ in range(FREE_TRIES + 9):
        assert tokens.check(wrong(token)) is None
        before = clock.monotonic_s()
        while tokens._backoff.waits(("", token.id)):
            clock.advance_ns(SECOND_NS)
        waited.append(clock.monotonic_s() - before)
    assert waited[: FREE_TRIES - 1] == [0.0] * (FREE_TRIES - 1)
    assert waited[FREE_TRIES - 1 :] == sorted(waited[FREE_TRIES - 1 :])
    assert waited[-1] == LONGEST_WAIT_S
    assert tokens.check(f"Bearer {text}") == token


@pytest.mark.case(44)
def test_guesses_at_the_door_are_counted_too(tmp_path):
    token, text = TokenFile(tmp_path / FILE).add("one", "admin")
    client = TestClient(create_app(ServiceSettings(folder=tmp_path)), base_url="http://127.0.0.1")
    right, guess = {"authorization": f"Bearer {text}"}, {"authorization": wrong(token)}
    assert client.get("/openapi.json", headers=right).status_code == 200
    for _ in range(FREE_TRIES):
        assert client.get("/openapi.json", headers=guess).status_code == 401
    assert client.get("/openapi.json", headers=right).status_code == 401


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A real server before the real door; what is behind is not started."""
    folder = tmp_path_factory.mktemp("door")
    app = create_app(ServiceSettings(folder=folder, body_timeout_s=0.3))
    config = configured(app, "127.0.0.1", 0)
    config.lifespan = "off"
    running = uvicorn.Server(config)
    listening = bound("the door", "127.0.0.1", 0)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    running.should_exit = True
    thread.join(60)


def said(port, content):
    """Send bytes and return what is answered until the other side closes, or 64 KiB."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), 60) as line:
        try:
            line.sendall(content)
            while len(found) < 65_536 and (part := line.recv(4_096)):
                found += part
                if b"\r\n\r\n" in found:
                    break
        except (BrokenPipeError, ConnectionResetError):
            pass
    return found


@pytest.mark.case(34)
@pytest.mark.parametrize(
    "flood",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-A: " + b"y" * 2_000_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-A: y\r\n" * 200_000 + b"\r\n",
        b"GET /" + b"x" * 2_000_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x00\xff" * 1_000_000,
    ],
    ids=["a long header", "many headers", "a long address", "no HTTP"],
)
def test_a_flood_before_the_body_is_cut_off(port, flood):
    answer = said(port, flood)
    assert not answer or answer.split()[1] in (b"400", b"413", b"414", b"431"), answer[:200]
    alive = said(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert alive.startswith(b"HTTP/1.1 401")


@pytest.mark.case(40)
def test_nobody_writes_lines_into_our_log(tmp_path, caplog):
    client = TestClient(create_app(ServiceSettings(folder=tmp_path)), base_url="http://127.0.0.1")
    for path in ("/a%0aINFO forged", "/a%0d%0aforged", "/a%1b[31mforged", "/a%e2%80%a8forged"):
        client.get(path)
    lines = [row.getMessage() for row in caplog.records if "refused" in row.getMessage()]
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines), lines
