"""A real S3 server on loopback, moto's, in an interpreter of its own; and a proxy that misbehaves.

Moto needs libraries whose versions do not go with ours, so it has an environment of its own:
``make test`` makes ``.venv-s3``. Without it these tests are skipped.
"""

import os
import socket
import socketserver
import subprocess
import threading
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

from agent_gym.core.clock import SystemClock

VARIABLE = "AGENT_GYM_TEST_S3"
KEYS = {
    "AWS_ACCESS_KEY_ID": "canary-key-id-5d1f",
    "AWS_SECRET_ACCESS_KEY": "canary-secret-9a7c3e",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def program():
    """Return the server's program, None if it is not installed."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else Path(__file__).parents[2] / ".venv-s3" / "bin" / "moto_server"
    return path if path.is_file() else None


class Server:
    """Moto's server with one bucket after the other."""

    def __init__(self, log):
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = log
        self.buckets = 0
        self.start()

    def start(self):
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(
            [program(), "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=self.log.open("ab"),
            stderr=subprocess.STDOUT,
            env=clean | KEYS,
        )
        for _ in range(1_200):
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self.port))):
                return
            SystemClock().sleep_s(0.05)
        raise RuntimeError("the server does not start")

    def new_bucket(self):
        self.buckets += 1
        name = f"bucket-{self.buckets}"
        ask = urllib.request.Request(f"http://127.0.0.1:{self.port}/{name}", method="PUT")
        ask.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/a, b")
        urllib.request.urlopen(ask, timeout=60).close()
        return name

    def end(self):
        self.process.kill()
        self.process.wait()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self):
        proxy = self.server.proxy
        with closing(socket.create_connection(("127.0.0.1", proxy.target))) as there:
            up = threading.Thread(target=self._up, args=(there,), daemon=True)
            up.start()
            with suppress(OSError):
                while part := there.recv(1 << 16):
                    changed = proxy.change(part)
                    if changed is None:
                        break
                    self.request.sendall(changed)
            for one in (self.request, there):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _up(self, there):
        with suppress(OSError):
            while part := self.request.recv(1 << 16):
                there.sendall(part)
                self.server.proxy.sent += len(part)


class Proxy:
    """Stands before a server and changes its answers by ``change``; None cuts the line."""

    def __init__(self, target):
        self.target, self.change, self.sent = target, lambda part: part, 0
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads, self._server.proxy = True, self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self):
        self._server.shutdown()
        self._server.server_close()
