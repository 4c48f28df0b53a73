"""A bot that is started with its sandbox and ends it when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import IO

from agent_gym.apps.sandbox.keys import AccountKey
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import AgentError
from agent_gym.evaluation.scenarios.bot import PYTHONS, BotConfig

PATIENCE_S, GRACE_S, GLANCE_S = 10.0, 1.0, 0.02
LAST_WORDS = 400
STDERR = 2


class Bot:
    """A program of the user's own, with the address and the keys in its environment.

    Args:
        config: Its command and its folder.
        limit_s: Seconds until it must have ended; None lets it run for as long as it likes.
        quiet: Keep what it says for the words of a failure, instead of showing it.
        clock: The machine's.
    """

    def __init__(
        self,
        config: BotConfig,
        *,
        limit_s: float | None = None,
        quiet: bool = False,
        clock: Clock | None = None,
    ) -> None:
        config.check("--bot")
        self._config, self._limit_s = config, limit_s
        self._log: IO[bytes] | None = TemporaryFile() if quiet else None  # noqa: SIM115
        self._clock = clock or SystemClock()
        self._process: subprocess.Popen[bytes] | None = None
        self._dismissed, self._late, self._excused = Event(), False, False

    def start(
        self, url: str, key: AccountKey, done: Callable[[], None], more: Mapping[str, str]
    ) -> None:
        """Start it, and say when it has ended; ``more`` goes into its environment, too."""
        given = {
            "SANDBOX_URL": url,
            "SANDBOX_KEY": key.api_key,
            "SANDBOX_SECRET": key.secret.get_secret_value(),
        }
        program, *words = self._config.command
        folder = self._config.folder
        if program in PYTHONS:
            program = sys.executable
        elif folder is not None and (folder / program).is_file():
            program = str(folder / program)
        # What it says goes where notes go: the results are what is printed.
        self._process = subprocess.Popen(
            [program, *words],
            env={**os.environ, **given, **more},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log or STDERR,
            stderr=self._log,
        )
        Thread(target=self._watch, args=(self._process, done), daemon=True).start()

    def dismiss(self) -> None:
        """Say that nothing trades any more: it may end, and is ended soon if it does not."""
        self._dismissed.set()

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
        """Raise if it ended badly; one that had to be ended after the last bar did not."""
        where = Path(self._config.command[0]).name
        if self._late:
            raise AgentError(
                "the bot did not end in time",
                where=where,
                found=self._last_words() or None,
                expected=f"at most {self._limit_s:g} s",
                remedy="See that it lets bars pass, or give it a higher limit_s",
            )
        code = None if self._process is None else self._process.returncode
        if code and not self._excused:
            said = self._last_words()
            raise AgentError(
                "the bot ended with an error",
                where=where,
                found=f"exit code {code}" + (f": {said}" if said else ""),
                remedy=None
                if self._log
                else "What it said stands above; what it traded is in the results",
            )

    def _watch(self, process: subprocess.Popen[bytes], done: Callable[[], None]) -> None:
        began_s = self._clock.monotonic_s()
        until_s = None if self._limit_s is None else began_s + self._limit_s
        over_s: float | None = None
        while process.poll() is None:
            now_s = self._clock.monotonic_s()
            if self._dismissed.is_set():
                over_s = over_s or now_s
                if now_s > over_s + GRACE_S:
                    break
            elif until_s is not None and now_s > until_s:
                self._late = True
                break
            self._clock.sleep_s(GLANCE_S)
        if process.poll() is None:
            process.kill()
            process.wait()
        self._excused = self._dismissed.is_set()
        done()

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LAST_WORDS))
        return " ".join(self._log.read().decode("utf-8", "replace").split())
