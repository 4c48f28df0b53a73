"""Case 42: a secret of the environment is in nothing that a run leaves or says."""

from __future__ import annotations

import json
import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.apps.cli_samples import make_call, name_walk

pytestmark = pytest.mark.case(42)
CANARY = "canary-b7e24f90aa11"
VARIABLES = (
    "OPENAI_API_KEY",
    "WANDB_API_KEY",
    "AGENT_GYM_SESSION_SECRET",
    "AGENT_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
)


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """A world full of secrets."""
    for name in VARIABLES:
        monkeypatch.setenv(name, f"{CANARY}-{name}")
    monkeypatch.setenv("AGENT_GYM_DATABASE", f"postgresql://me:{CANARY}@127.0.0.1:9/none")
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    name_walk(monkeypatch)


def files_of(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def check_clean(folder, *said):
    for text in said:
        assert CANARY not in text
    for path in files_of(folder):
        assert CANARY.encode() not in path.read_bytes(), path


def test_a_run_leaves_no_secret(planted, monkeypatch, capsys, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    call = make_call("backtest", monkeypatch, capsys)
    words = ("--agent", "rules/sma-cross", "--market", "test/walk", "--out", tmp_path / "out")
    report = tmp_path / "out" / "page.html"
    code, out, err = call(*words, "--report", report, "--json")
    assert code == 0, err
    assert len(files_of(tmp_path / "out")) >= 4
    check_clean(tmp_path, out, err, caplog.text)


class Curious(BaseHTTPRequestHandler):
    """Fails, and repeats whatever it was sent."""

    def do_POST(self):
        body = json.dumps({"error": self.headers.get("Authorization", "")}).encode()
        self.send_response(500)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Be quiet."""


def test_a_token_that_a_server_repeats_is_not_shown(planted, monkeypatch, capsys, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Curious)
    Thread(target=server.serve_forever, daemon=True).start()
    call = make_call("backtest", monkeypatch, capsys)
    words = ("--agent", "door/http", "--param", f"url=http://127.0.0.1:{server.server_port}")
    words += ("--param", "token_variable=AGENT_TOKEN", "--market", "test/walk")
    code, out, err = call(*words, "--out", tmp_path / "out", "--json")
    server.shutdown()
    server.server_close()
    assert code == 4, (out, err)
    check_clean(tmp_path, out, err, caplog.text)


def test_a_password_of_the_database_is_not_shown(planted, monkeypatch, capsys, tmp_path):
    code, out, err = make_call("registry", monkeypatch, capsys)("list")
    assert "Traceback" not in err
    check_clean(tmp_path, out, err)
    assert code in (0, 2, 3, 4)
