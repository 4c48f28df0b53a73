"""Nobody comes in unasked: every route and method, every role, host, size and token."""

import asyncio
import json
import stat
from threading import Barrier, Thread

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.guard import LINGER_BYTES
from agent_gym.apps.api.roles import ROLES, RULES, role_for
from agent_gym.apps.api.tokens import FILE, TOKEN, TokenFile
from agent_gym.core.clock import DAY_NS, ManualClock
from agent_gym.core.errors import ConfigError, DataError

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
ELSEWHERE = (
    "/",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/nothing",
    "/api",
    "/api/",
    "/api/status/",
    "//api/status",
    "/API/STATUS",
    "/api/%2e%2e/metrics",
    "/static/x",
    "/.well-known/security.txt",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def app(folder):
    return create_app(ServiceSettings(folder=folder, max_body_bytes=1_000, body_timeout_s=0.3))


@pytest.fixture(scope="module")
def client(app):
    """The door alone: what is behind it is not started, so nothing that gets in could answer."""
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="module")
def heads(folder):
    file = TokenFile(folder / FILE)
    return {role: {"authorization": f"Bearer {file.add(role, role)[1]}"} for role in ROLES}


def test_who_is_refused_stands_in_the_log_and_the_token_does_not(client, heads, caplog):
    client.get("/api/status", headers={"authorization": "Bearer agym_guessed"})
    client.post("/api/training/trigger%0anot a line of ours", headers=heads["read"])
    client.get("/api/status", headers={"host": "evil.example"})
    first, second, third = [row.getMessage() for row in caplog.records]
    assert first == "refused: GET '/api/status': 401, a token is needed"
    assert second.startswith("refused: POST '/api/training/trigger")
    assert second.endswith("403, the role of this token is too small")
    assert "\n" not in second
    assert "400, the service is not called like this" in third
    assert "guessed" not in caplog.text


def routes_of(app):
    """Every path and method that the application knows, from its own table."""
    found = set()
    waiting = list(app.routes)
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "original_router", route)
        waiting += list(getattr(inner, "routes", None) or [])
        for method in getattr(route, "methods", None) or ():
            found.add((method, route.path))
    return sorted(found)


def filled(path):
    return path.replace("{", "").replace("}", "")


def test_the_application_has_the_routes_that_are_promised(app):
    known = routes_of(app)
    assert len(known) >= 25
    for promised in (
        ("POST", "/api/cron/agent-tick"),
        ("GET", "/api/cron/training-check"),
        ("POST", "/api/cron/training"),
        ("POST", "/api/admin/training/trigger"),
        ("POST", "/a2a/sessions/{name}/rpc"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
    ):
        assert promised in known


def test_without_a_token_every_route_and_method_is_closed(app, client):
    paths = {path for _, path in routes_of(app)} | set(ELSEWHERE)
    answers = {
        (method, path): client.request(method, filled(path)).status_code
        for path in sorted(paths)
        for method in METHODS
    }
    assert len(answers) >= 30 * len(METHODS)
    assert set(answers.values()) == {401}


def test_what_a_role_may_not_do_is_forbidden(app, client, heads):
    checked = 0
    for method, path in routes_of(app):
        needed = role_for(method, filled(path))
        for role in ROLES[: ROLES.index(needed)]:
            answer = client.request(method, filled(path), headers=heads[role])
            assert answer.status_code == 403, (method, path, role)
            assert method == "HEAD" or answer.json()["expected"] == needed
            checked += 1
    assert checked >= 20


def test_what_is_unknown_is_for_nobody_but_the_admin(client, heads):
    for path in ELSEWHERE:
        if path == "/openapi.json":
            continue
        for method in METHODS:
            for role in ("read", "run"):
                assert client.request(method, path, headers=heads[role]).status_code == 403
            found = client.request(method, path, headers=heads["admin"])
            assert found.status_code in (404, 405), (method, path)


def test_each_route_has_a_rule_and_each_rule_a_route(app):
    known = [(method, filled(path)) for method, path in routes_of(app) if method != "HEAD"]
    for method, path in known:
        assert any(rule.covers(method, path) for rule in RULES), (method, path)
    for rule in RULES:
        for method in rule.methods:
            assert any(rule.covers(method, path) for used, path in known if used == method), rule
    writing = [rule for rule in RULES if "/admin/" in rule.path]
    assert writing
    assert {rule.role for rule in writing} == {"admin"}
    assert all(rule.role != "read" for rule in RULES if set(rule.methods) != {"GET"})


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer agym_00000000_" + "x" * 43,
        "Bearer " + "x" * 10_000,
        "Bearer agym_\u00e9",
    ],
)
def test_what_is_no_token_is_none(client, given):
    answer = client.get("/api/health", headers={"authorization": given.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) >= {"what", "where", "found", "expected", "remedy"}


def test_a_token_works_until_it_is_revoked(client, folder):
    file = TokenFile(folder / FILE)
    token, text = file.add("short", "read")
    head = {"authorization": f"bearer {text}"}
    assert client.get("/openapi.json", headers=head).status_code == 200
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert client.get("/openapi.json", headers={"authorization": f"Bearer {wrong}"}).is_error
    file.revoke(token.id)
    assert client.get("/openapi.json", headers=head).status_code == 401
    with pytest.raises(ConfigError, match="no such token"):
        file.revoke(token.id)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8000", "", "127.0.0.1@evil"]
)
def test_another_host_is_an_attack(client, heads, host):
    answer = client.get("/openapi.json", headers=heads["admin"] | {"host": host})
    assert answer.status_code == 400
    assert "evil" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "LOCALHOST:1", "[::1]:8000"])
def test_its_own_names_are_known(client, heads, host):
    head = heads["read"] | {"host": host}
    assert client.get("/openapi.json", headers=head).status_code == 200


def test_a_body_that_is_too_long_is_not_read(client, heads):
    path = "/api/admin/training/trigger"
    assert client.post(path, headers=heads["admin"], content=b"x" * 1_001).status_code == 413

    def endless():
        for _ in range(50):
            yield b"x" * 100

    assert client.post(path, headers=heads["admin"], content=endless()).status_code == 413
    lied = heads["admin"] | {"content-length": "-1"}
    assert client.post(path, headers=lied, content=b"x").status_code == 413
    assert client.post(path, content=b"x" * 1_001).status_code == 401


def asked(app, heads, *messages, waiting=None):
    """Send a request as a server would, message by message; then nothing comes any more."""
    said, waiting = [], list(messages) if waiting is None else waiting

    async def receive():
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        return None

    async def send(message):
        said.append(message)

    headers = {"host": "127.0.0.1"} | heads["admin"]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/cron/training",
        "raw_path": b"/api/cron/training",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(app(scope, receive, send))
    return said[0]["status"]


def test_a_body_that_never_ends_is_not_waited_for(app, heads):
    part = {"type": "http.request", "body": b"{", "more_body": True}
    assert asked(app, heads) == 408
    assert asked(app, heads, part, part) == 408
    assert asked(app, heads, part, {"type": "http.disconnect"}) == 400


def test_who_sends_too_much_is_listened_to_for_a_while_and_reads_why(app, heads):
    """Hung up on in the midst of sending, a caller would see a broken connection."""
    part = {"type": "http.request", "body": b"x" * 1_001, "more_body": True}
    waiting = [part, part, part, part | {"more_body": False}]
    assert asked(app, heads, waiting=waiting) == 413
    assert waiting == []
    large = part | {"body": b"x" * (LINGER_BYTES // 4)}
    waiting = [part, *[large] * 9]
    assert asked(app, heads, waiting=waiting) == 413
    assert len(waiting) == 5  # and not for ever


def test_answers_say_that_nobody_may_frame_keep_or_guess_them(client, heads):
    for answer in (client.get("/openapi.json", headers=heads["read"]), client.get("/x")):
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_there_are_no_web_sockets(client, heads):
    with pytest.raises(WebSocketDisconnect) as refused:
        client.websocket_connect("/api/status", headers=heads["admin"]).__enter__()
    assert refused.value.code == 1008


def test_the_description_says_which_role_is_needed(client, heads):
    told = client.get("/openapi.json", headers=heads["read"]).json()
    assert told["paths"]["/api/admin/models/rollback"]["post"]["x-role"] == "admin"
    assert told["paths"]["/api/agents/{agent_id}"]["get"]["x-role"] == "read"
    assert told["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert told["security"] == [{"token": []}]


# The file of tokens.


def test_no_token_is_in_its_file_and_nobody_else_may_read_it(tmp_path):
    file = TokenFile(tmp_path / FILE)
    texts = [file.add(f"t{k}", "run")[1] for k in range(3)]
    content = (tmp_path / FILE).read_text()
    for text in texts:
        assert TOKEN.fullmatch(text)
        assert text not in content
        assert text.split("_", 2)[2] not in content
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    salts = [each["salt"] for each in json.loads(content)["tokens"]]
    assert len(set(salts)) == 3
    (tmp_path / FILE).chmod(0o640)
    with pytest.raises(DataError, match="others may read"):
        TokenFile(tmp_path / FILE).all()


def test_an_expired_token_is_turned_away(tmp_path):
    clock = ManualClock(10 * DAY_NS)
    file = TokenFile(tmp_path / FILE, clock)
    _, text = file.add("week", "read", days=7)
    assert file.check(f"Bearer {text}") is not None
    clock.advance_ns(7 * DAY_NS)
    assert file.check(f"Bearer {text}") is None
    for days in (0, -1, 1e9):
        with pytest.raises(ConfigError):
            file.add("never", "read", days=days)


def test_tokens_made_at_the_same_time_are_all_kept(tmp_path):
    barrier, made = Barrier(6), []

    def add(k):
        barrier.wait()
        made.append(TokenFile(tmp_path / FILE).add(f"t{k}", "read")[0].id)

    threads = [Thread(target=add, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.id for token in TokenFile(tmp_path / FILE).all()} == set(made)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": [1]}', '{"x": 1}', "[" * 10_000])
def test_a_broken_file_lets_nobody_in(tmp_path, content):
    file = TokenFile(tmp_path / FILE)
    _, text = file.add("t", "admin")
    (tmp_path / FILE).write_text(content)
    with pytest.raises(DataError):
        TokenFile(tmp_path / FILE).check(f"Bearer {text}")
    closed = TestClient(create_app(ServiceSettings(folder=tmp_path)), base_url="http://127.0.0.1")
    answer = closed.get("/openapi.json", headers={"authorization": f"Bearer {text}"})
    assert answer.status_code == 401


def test_a_link_is_no_file_of_tokens(tmp_path):
    TokenFile(tmp_path / "real.json").add("t", "admin")
    (tmp_path / FILE).symlink_to(tmp_path / "real.json")
    with pytest.raises(DataError):
        TokenFile(tmp_path / FILE).all()
