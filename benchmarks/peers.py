"""The peers: where they are installed, how they are started and how one asks them to run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venv-peers"
# vectorbt needs pandas 3 and nautilus_trader pandas 2, so they cannot share an environment.
PINS = {
    "vectorbt": HERE / "peers_vectorbt.txt",
    "jax": HERE / "peers_jax.txt",
    "others": HERE / "peers.txt",
}
READY_SECONDS, ANSWER_SECONDS = 120, 240


@dataclass(frozen=True)
class PeerSpec:
    """A peer's name, the distribution it comes in, and the adapter that runs it."""

    name: str
    distribution: str
    environment: str
    adapter: str
    options: tuple[str, ...] = ()


PEERS = (
    PeerSpec("vectorbt", "vectorbt", "vectorbt", "vectorbt_peer", ("engine=numba",)),
    PeerSpec("vectorbt-rust", "vectorbt-rust", "vectorbt", "vectorbt_peer", ("engine=auto",)),
    PeerSpec("backtesting.py", "backtesting", "others", "backtesting_py"),
    PeerSpec("hftbacktest", "hftbacktest", "others", "hft"),
    PeerSpec("nautilus_trader", "nautilus_trader", "others", "nautilus"),
    PeerSpec("gym-anytrading", "gym-anytrading", "others", "anytrading"),
    PeerSpec("gym-trading-env", "gym-trading-env", "others", "trading_env"),
    PeerSpec("smax", "jaxmarl", "jax", "smax"),
)


class PeerFailure(Exception):
    """A peer is absent or did not do what it was asked."""


def install() -> dict[str, str]:
    """Create the peers' environments if they are not up to date; return what failed and why."""
    failed: dict[str, str] = {}
    for name, pins in PINS.items():
        folder = ENVIRONMENTS / name
        note = folder / "installed.json"
        digest = blake2b(pins.read_bytes(), digest_size=16).hexdigest()
        known = json.loads(note.read_text()) if note.exists() else {}
        if known.get("pins") != digest:
            print(f"installing peers into {folder}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            known = {"pins": digest, "failed": _install_pins(folder, pins)}
            note.write_text(json.dumps(known, indent=2))
        failed |= known["failed"]
    return failed


def _install_pins(folder: Path, pins: Path) -> dict[str, str]:
    """Install all pins at once, or one by one, so that one bad peer costs only itself."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    pip.append("--disable-pip-version-check")
    if subprocess.run([*pip, "-r", str(pins)], capture_output=True, check=False).returncode == 0:
        return {}
    failed = {}
    for line in pins.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        done = subprocess.run([*pip, line], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [text for text in done.stderr.splitlines() if text.startswith("ERROR")]
            failed[line.split("==")[0]] = errors[-1] if errors else f"pip ended {done.returncode}"
    return failed


def install_failures() -> dict[str, str]:
    """Return which distributions could not be installed, and why."""
    notes = [ENVIRONMENTS / name / "installed.json" for name in PINS]
    known = [json.loads(note.read_text())["failed"] for note in notes if note.exists()]
    return {name: reason for failed in known for name, reason in failed.items()}


class PeerProcess:
    """A worker in the peer's environment that waits for requests."""

    def __init__(self, spec: PeerSpec, bars: Path, log: IO[str]) -> None:
        self.spec = spec
        self.version: str | None = None
        python = ENVIRONMENTS / spec.environment / "bin" / "python"
        if not python.exists():
            raise PeerFailure("not installed; run `python -m benchmarks --install-peers`")
        command = [str(python), "-W", "ignore", str(HERE / "worker.py"), spec.adapter, str(bars)]
        self._process = subprocess.Popen(
            [*command, *spec.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"TQDM_DISABLE": "1"},  # a progress bar is not the peer's work
        )

    def wait_ready(self) -> None:
        """Wait until the libraries are imported."""
        answer = self._answer(READY_SECONDS)
        if "absent" in answer:
            raise PeerFailure(answer["absent"])
        self.version = answer["ready"]

    def ask(self, work: str, size: int) -> dict[str, Any]:
        """Run a work once and return seconds, units and what came out."""
        if self._process.stdin is None or self._process.poll() is not None:
            raise PeerFailure(f"its process has ended ({self._process.returncode})")
        self._process.stdin.write(json.dumps({"work": work, "size": size}) + "\n")
        self._process.stdin.flush()
        answer = self._answer(ANSWER_SECONDS)
        if "failed" in answer:
            raise PeerFailure(answer["failed"])
        return answer

    def _answer(self, seconds: float) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                self.close()
                raise PeerFailure(f"no answer within {seconds} s")
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailure(f"its process ended ({self._process.wait()})")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the worker."""
        self._process.kill()
        self._process.wait()


class Fleet:
    """All peers at once, as a context; those that cannot take part are in ``absent``."""

    def __init__(self, bars: Path, log: Path) -> None:
        self._bars, self._log_path = bars, log
        self.workers: dict[str, PeerProcess] = {}
        self.absent: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._log = self._log_path.open("w")
        failed = install_failures()
        for spec in PEERS:
            try:
                self.workers[spec.name] = PeerProcess(spec, self._bars, self._log)
            except PeerFailure as failure:
                self.absent[spec.name] = str(failure)
        for name, worker in list(self.workers.items()):
            try:
                worker.wait_ready()
            except PeerFailure as failure:
                reason = failed.get(worker.spec.distribution)
                self.drop(name, f"not installed: {reason}" if reason else str(failure))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers.values():
            worker.close()
        self._log.close()

    def drop(self, name: str, reason: str) -> None:
        """Take a peer out of the contest and keep the reason."""
        self.workers.pop(name).close()
        self.absent[name] = reason

    def versions(self) -> dict[str, str | None]:
        """Return the versions of the peers that take part."""
        return {name: worker.version for name, worker in self.workers.items()}
