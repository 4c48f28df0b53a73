"""A bot that is started with its sandbox and ends it when it has ended."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import which
from threading import Thread

from agent_gym.apps.sandbox.keys import AccountKey
from agent_gym.core.errors import AgentError, ConfigError

PATIENCE_S = 10.0
STDERR = 2


class Bot:
    """A program of the user's own, with the address and the keys in its environment."""

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)
        if not self._words:
            raise ConfigError("a bot needs a command", where="--bot")
        if which(self._words[0]) is None:
            raise ConfigError("there is no such program", where="--bot", found=self._words[0])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, url: str, key: AccountKey, done: Callable[[], None]) -> None:
        """Start it, and say when it has ended."""
        given = {
            "SANDBOX_URL": url,
            "SANDBOX_KEY": key.api_key,
            "SANDBOX_SECRET": key.secret.get_secret_value(),
        }
        # What it says goes where notes go: the results are what is printed.
        process = subprocess.Popen(
            self._words, env=os.environ | given, stdin=subprocess.DEVNULL, stdout=STDERR
        )
        self._process = process

        def wait() -> None:
            process.wait()
            done()

        Thread(target=wait, daemon=True).start()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Let nothing of the bot outlive the block."""
        try:
            yield
        finally:
            process = self._process
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def check(self) -> None:
        """Raise if it ended badly."""
        code = None if self._process is None else self._process.returncode
        if code:
            raise AgentError(
                "the bot ended with an error",
                where=self._words[0],
                found=f"exit code {code}",
                remedy="What it said stands above; what it traded is in the results",
            )
