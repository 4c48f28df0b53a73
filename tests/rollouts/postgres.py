"""A real PostgreSQL for the tests: one server a session, one database a test.

The server is started from the system's own binaries by a user who is not root, because PostgreSQL
refuses to run as root. It listens on a socket in its own folder and on no network.
"""

import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from uuid import uuid4

import psycopg

from agent_gym.core.clock import SystemClock

LIBC = ctypes.CDLL(None, use_errno=True)
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG: without it a killed test run leaves its server behind
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/usr/pgsql-*/bin")
SETTINGS = (
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=50",
    "shared_buffers=16MB",
)


def binaries():
    """Return the folder of initdb and postgres; None if PostgreSQL is not installed."""
    found = shutil.which("initdb") and shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    folders = sorted(folder for place in PLACES for folder in glob.glob(place))  # noqa: PTH207
    return Path(folders[-1]) if folders else None


def plain_user():
    """Return the name of a user who may run the server; None for ourselves."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Server:
    """A server in a folder of its own; stop() and start() are what a crash and a repair are."""

    def __init__(self, folder, settings=SETTINGS):
        self.folder, self.data = Path(folder), Path(folder) / "data"
        self._settings = settings
        self._bin, self._user = binaries(), plain_user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        owner = ("--username=gym", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
        self._run("initdb", "-D", self.data, *owner)
        self.start()

    def start(self):
        """Start the server as a child that ends with us, however we end."""
        options = [
            word for setting in (*self._settings, self._socket()) for word in ("-c", setting)
        ]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, *options],
                user=self._user,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: LIBC.prctl(END_WITH_PARENT, signal.SIGINT),
            )
        clock = SystemClock()
        give_up_s = clock.monotonic_s() + 120.0
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_s() > give_up_s:
                raise RuntimeError((self.folder / "server.log").read_text()[-2000:])
            clock.sleep_s(0.05)

    @property
    def pid(self):
        return self._process.pid

    def stop(self):
        """Stop at once, like a machine that is switched off: nothing is said to anybody."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=60)

    def _answers(self):
        try:
            psycopg.connect(self._address("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, database):
        return f"postgresql://gym@/{database}?host={self.folder}"

    def new_database(self, template="template1"):
        name = f"test_{uuid4().hex}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f'create database "{name}" template "{template}"')
        return name

    def drop(self, name):
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)')

    def _address(self, database):
        return f"dbname={database} user=gym host={self.folder}"

    def _socket(self):
        return f"unix_socket_directories={self.folder}"

    def _run(self, program, *words):
        command = [self._bin / program, *map(str, words)]
        done = subprocess.run(
            command, user=self._user, cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")


def new_server(settings=SETTINGS):
    """Return a running server; its folder is short, since a socket's path must be."""
    return Server(tempfile.mkdtemp(prefix="pg-"), settings)


def end(server):
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)
