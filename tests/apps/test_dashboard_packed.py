"""Files of the library are packed once, whole, and kept by the browser; nothing else is."""

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from agent_gym.apps.dashboard.packed import KEPT, PackedFiles

SCRIPT = "let x = 1;\n" * 500
FILE = "/_nicegui/3/static/x.js"


def client():
    asked = []

    async def script(_request):
        asked.append(1)
        return Response(SCRIPT, media_type="text/javascript")

    async def page(_request):
        return PlainTextResponse("secret " * 500, headers={"cache-control": "no-store"})

    async def missing(_request):
        return Response("gone", 404, media_type="text/javascript")

    routes = [Route(FILE, script), Route("/runs", page), Route("/_nicegui/3/no.js", missing)]
    app = Starlette(routes=routes)
    app.add_middleware(PackedFiles)
    return TestClient(app), asked


def test_a_script_is_small_and_the_same():
    here, asked = client()
    for _ in range(2):
        answer = here.get(FILE, headers={"accept-encoding": "gzip"})
        assert answer.text == SCRIPT
        assert answer.headers["content-encoding"] == "gzip"
        assert int(answer.headers["content-length"]) < len(SCRIPT) / 10
        assert answer.headers["cache-control"] == KEPT
        assert answer.headers["content-type"].startswith("text/javascript")
    assert len(asked) == 1  # the second time it is not read again
    plain = here.get(FILE, headers={"accept-encoding": "identity"})
    assert plain.text == SCRIPT
    assert "content-encoding" not in plain.headers


def test_pages_and_errors_are_left_alone():
    here, _ = client()
    answer = here.get("/runs", headers={"accept-encoding": "gzip"})
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in answer.headers
    gone = here.get("/_nicegui/3/no.js", headers={"accept-encoding": "gzip"})
    assert gone.status_code == 404
    assert "cache-control" not in gone.headers
