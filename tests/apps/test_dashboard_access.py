"""Nobody sees a page unasked: every route and method, sessions, sockets, and how it may start."""

import json
import os
import stat
import subprocess
import sys

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from agent_gym.apps.api import ServiceSettings, create_app
from agent_gym.apps.api.front_door import LOGIN, LOGOUT
from agent_gym.apps.api.sessions import COOKIE, FILE, LIFE_NS, VARIABLE, Sessions, session_secret
from agent_gym.apps.api.tokens import FILE as TOKENS
from agent_gym.apps.api.tokens import TokenFile
from agent_gym.apps.dashboard.mount import mount
from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.core.clock import DAY_NS, ManualClock
from agent_gym.core.errors import ConfigError, DataError

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
ELSEWHERE = (
    "/dashboard",
    "/dashboard/",
    "/dashboard/login",
    "/dashboard/logout",
    "/dashboard/nothing",
    "/dashboard/_nicegui/3.18.0/static/nicegui.js",
    "/dashboard/_nicegui_ws/socket.io/",
    "/dashboard/favicon.ico",
    "/dashboard//runs",
    "/dashboard/../api/status",
    "/dashboard/%2e%2e/api/status",
    "/",
    "/api/status",
)
PAGE = {"accept": "text/html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("loop")


@pytest.fixture(scope="module")
def app(folder):
    return create_app(ServiceSettings(folder=folder, max_body_bytes=1_000), mount)


@pytest.fixture
def client(app):
    """The door alone: what is behind it is not started, so nothing that gets in could answer."""
    return TestClient(
        app, base_url="http://127.0.0.1", raise_server_exceptions=False, follow_redirects=False
    )


@pytest.fixture(scope="module")
def token(folder):
    return TokenFile(folder / TOKENS).add("reader", "read")[1]


def login(client, token, **headers):
    return client.post(LOGIN, data={"token": token, "next": "/dashboard/runs"}, headers=headers)


def inner_routes(app):
    """Every path that is known behind the door, of pages and of their library."""
    found, waiting = set(), [("", app.routes)]
    while waiting:
        start, routes = waiting.pop()
        for route in routes:
            path = start + getattr(route, "path", "")
            waiting.append((path, getattr(route, "routes", None) or []))
            found.add(path)
    return {path for path in found if path.startswith("/dashboard")}


def test_without_a_session_every_route_and_method_is_closed(app, client):
    known = inner_routes(app)
    assert {f"/dashboard{page.path}" for page in PAGES} <= known
    paths = known | set(ELSEWHERE)
    answers = {
        (method, path): client.request(method, path.replace("{", "").replace("}", "")).status_code
        for path in sorted(paths)
        for method in METHODS
    }
    assert len(answers) >= 20 * len(METHODS)
    assert set(answers.values()) == {401}


def test_a_browser_is_asked_for_a_token_and_shown_nothing_else(client):
    for page in PAGES:
        answer = client.get(f"/dashboard{page.path}", headers=PAGE)
        assert answer.status_code == 401
        assert 'name="token"' in answer.text
        assert "script" not in answer.text
        assert "nicegui" not in answer.text
    asked = client.get("/dashboard/runs?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", headers=PAGE)
    assert "<script" not in asked.text
    assert client.get("/", headers=PAGE).headers["location"] == "/dashboard"
    russian = client.get("/dashboard", headers=PAGE | {"accept-language": "ru-RU,ru;q=0.9"})
    assert "Войти" in russian.text
    assert '<html lang="ru">' in russian.text


def test_who_simply_visits_the_login_is_not_refused(client, token, caplog):
    with caplog.at_level("INFO"):
        answer = client.get(LOGIN, headers=PAGE)
    assert answer.status_code == 200
    assert 'name="token"' in answer.text
    assert "set-cookie" not in answer.headers
    assert "refused" not in caplog.text
    guess = PAGE | {"authorization": f"Bearer {token[:-1]}x"}
    assert client.get(LOGIN, headers=guess).status_code == 401
    assert "refused: GET '/dashboard/login': 401" in caplog.text
    known = PAGE | {"authorization": f"Bearer {token}"}
    assert client.get(LOGIN, headers=known).status_code != 200  # nor asked again


def test_a_token_opens_a_session_that_is_not_for_the_api(client, token):
    answer = login(client, token)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/dashboard/runs"
    said = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/dashboard"):
        assert part in said
    assert token.split("_", 2)[2] not in said
    cookie = {"cookie": said.partition(";")[0]}
    assert client.get("/dashboard", headers=cookie).status_code == 307
    assert client.post("/dashboard/runs", headers=cookie).status_code == 405
    assert client.get("/api/status", headers=cookie).status_code == 401
    left = client.post(LOGOUT, headers=cookie)
    assert (left.status_code, left.headers["location"]) == (303, LOGIN)
    assert client.get("/dashboard", headers=cookie).status_code == 401  # also for who has kept it


def test_what_is_no_token_opens_nothing(client, token):
    for wrong in ("", "x", token[:-1], token + "x", "agym_" + "0" * 8, "é" * 40, "a" * 900):
        answer = login(client, wrong)
        assert answer.status_code == 401, wrong
        assert "set-cookie" not in answer.headers
        assert "not known here" in answer.text
    assert client.post(LOGIN, content=b"\xff\xfe").status_code == 401
    assert client.post(LOGIN, content=b"token=" + b"x" * 2_000).status_code == 413
    assert login(client, token, origin="http://evil.example").status_code == 403
    assert login(client, token, host="evil.example").status_code == 400


def test_one_goes_nowhere_else_after_a_login(client, token):
    for way in ("//evil.example", "https://evil.example", "/api/status", "/dashboard\r\nx: y"):
        answer = client.post(LOGIN, data={"token": token, "next": way})
        assert answer.headers["location"] == "/dashboard"


def test_a_socket_needs_a_session_of_this_origin(client, token):
    path = "/dashboard/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    cookie = login(client, token).headers["set-cookie"].partition(";")[0]
    client.cookies.clear()
    attempts = (
        {},
        {"cookie": f"{COOKIE}=forged"},
        {"cookie": cookie, "origin": "http://evil.example"},
        {"cookie": cookie, "host": "evil.example"},
    )
    for headers in attempts:
        with (
            pytest.raises(WebSocketDisconnect) as caught,
            client.websocket_connect(path, headers=headers),
        ):
            pass
        assert caught.value.code == 1008
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect("/api/status", headers={"cookie": cookie}),
    ):
        pass


def test_sessions_end_and_cannot_be_made_up(tmp_path):
    clock = ManualClock(1_000)
    tokens = TokenFile(tmp_path / TOKENS, clock)
    made, text = tokens.add("ann", "run", days=1)
    sessions = Sessions(tokens, b"k" * 32, clock)
    _, cookie = sessions.begin(text)
    assert sessions.check(cookie).id == made.id
    assert Sessions(tokens, b"other" * 8, clock).check(cookie) is None
    who, end, rest = cookie.split(".", 2)
    for forged in (f"{who}.{int(end) + 1}.{rest}", cookie[:-1] + "0", "", "a.b.c.d", cookie + "."):
        assert forged == cookie or sessions.check(forged) is None
    clock.sleep_s(LIFE_NS / 1e9)
    assert sessions.check(cookie) is None
    _, later = sessions.begin(text)
    clock.sleep_s(DAY_NS / 2e9)
    assert sessions.check(later) is None  # the token has expired
    _, cookie = sessions.begin(tokens.add("ben", "read")[1])
    tokens.revoke(sessions.check(cookie).id)
    assert sessions.check(cookie) is None


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "short",
        "change-me-change-me-change-me-change-me",
        "x" * 64,
        "my-secret-0123456789abcdefXYZ",
    ],
)
def test_a_secret_that_can_be_guessed_is_refused(tmp_path, secret):
    with pytest.raises(ConfigError, match="could be guessed"):
        session_secret(tmp_path, {VARIABLE: secret})
    assert not list(tmp_path.iterdir())


def test_the_key_is_random_kept_and_for_its_owner_alone(tmp_path):
    first = session_secret(tmp_path / "a", {})
    assert session_secret(tmp_path / "a", {}) == first
    assert session_secret(tmp_path / "b", {}) != first
    path = tmp_path / "a" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(DataError, match="others may read"):
        session_secret(tmp_path / "a", {})


def test_a_service_does_not_start_with_a_placeholder_or_in_public(tmp_path):
    command = "from agent_gym.apps.cli.main import main; main()"
    words = [sys.executable, "-c", command, "serve", "--port", "0", "--folder", str(tmp_path)]
    poor = os.environ | {VARIABLE: "changeme"}
    ended = subprocess.run(words, env=poor, capture_output=True, text=True, timeout=250)
    assert ended.returncode != 0
    assert "could be guessed" in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr
    public = [*words, "--host", "0.0.0.0"]
    ended = subprocess.run(public, capture_output=True, text=True, timeout=250)
    assert ended.returncode != 0
    assert "others could reach the service" in ended.stderr + ended.stdout


def test_the_library_of_pages_is_not_loaded_for_the_api_alone():
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json, sys\nimport agent_gym.apps.api.app, agent_gym.apps.cli.serving\n"
            "print(json.dumps([name for name in sys.modules if 'nicegui' in name]))",
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    assert json.loads(said.stdout) == []


def test_a_bad_address_is_refused_before_the_service_is_loaded():
    words = ["serve", "--host", "0.0.0.0"]
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom agent_gym.apps.cli.main import main\n"
            f"sys.argv[1:] = {words}\n"
            "try:\n    main()\nexcept SystemExit as ended:\n    print(ended.code)\n"
            "print(sorted({'fastapi', 'torch', 'dbos', 'nicegui'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    assert said.stdout.split("\n")[-3:] == ["2", "[]", ""]
    assert "others could reach the service" in said.stderr
