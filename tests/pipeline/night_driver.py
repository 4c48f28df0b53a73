"""A process that runs nights and stops them at the n-th thing they do to the disk.

It imports once and forks for every night, so that a hundred of them take seconds. A point is a file
opened for writing, a rename, a removal, a new folder, a sync, or a transaction of the ledger. At a
point the night either kills itself, as ``kill -9`` would, or is told that the disk is full.

Run as ``python night_driver.py HOW HOME``; prints one JSON document.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

from nightly_samples import contents, night, tiny_suite, without_processes

from agent_gym.apps.cli.output import EXIT_RUN, report
from agent_gym.core.errors import AgentGymError
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.pipeline.nightly import nightly
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.lock import EXIT_LOCKED, LockHeld

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
GROWING = {"open", "os.mkdir", "os.rename", "fsync", "commit"}
POINTS = 256 if os.environ.get("AGENT_GYM_RELIABILITY") == "full" else 64
TURNS = 50 if POINTS > 64 else 25
POLICY = GatePolicy(n_confirm=8, max_confirm=8, repeat=False)
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Points:
    """Counts what is done to the disk, and does something about the n-th."""

    def __init__(self, home: Path, how: str, stop_at: int | None) -> None:
        self.home, self.how, self.stop_at, self.count = str(home), how, stop_at, 0

    def watch(self) -> None:
        sync, begin = os.fsync, Ledger._transaction

        def fsync(handle):
            self.meet("fsync")
            sync(handle)

        def transaction(ledger):
            self.meet("commit")
            return begin(ledger)

        os.fsync, Ledger._transaction = fsync, transaction
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple) -> None:
        if event == "open":
            path, _mode, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not writes or isinstance(path, int):
                return
        elif event not in CHANGES or (event == "os.mkdir" and Path(args[0]).exists()):
            return
        if str(args[0]).startswith(self.home):
            self.meet(event)

    def meet(self, what: str) -> None:
        if self.how == "full" and what not in GROWING:
            return
        self.count += 1
        if self.count == self.stop_at:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "commit":
                raise sqlite3.OperationalError("database or disk is full")
            raise FULL


def in_a_child(home: Path, how: str, stop_at: int | None) -> tuple[int, int]:
    """Run tomorrow's night in a fork; return how it ended and how many points it met."""
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        points = Points(home, how, stop_at)
        points.watch()
        try:
            code = tomorrow(home).exit_code
        except AgentGymError as error:
            code = report(error, as_json=False)
        except OSError:
            code = EXIT_RUN
        os.write(say, str(points.count).encode())
        os._exit(code)
    os.close(say)
    _, status = os.waitpid(child, 0)
    count = int(os.read(said, 20) or b"0")
    os.close(said)
    return os.waitstatus_to_exitcode(status), count


def tomorrow(home: Path):
    """Run a night that compares, confirms, writes everything and moves the baseline."""
    return night(
        home,
        tiny_suite(n_seeds=4),
        day=1,
        level=9.0,
        policy=POLICY,
        approve="new",
        accepted=("alpha/gain", "beta/gain"),
    )


def race(root: Path, turns: int = TURNS) -> dict:
    """Let two nights begin at once in one workspace, again and again; return their codes."""
    without_processes(setattr)
    night(root / "before", tiny_suite(n_seeds=4), approve="first")
    sweep = nightly.sweep

    said, say = os.pipe()

    def patiently(*folders):  # the winner goes on when the other one has been turned away
        select.select([said], [], [], 60.0)
        sweep(*folders)

    nightly.sweep = patiently
    ends = []
    for turn in range(turns):
        home = root / f"home{turn}"
        shutil.copytree(root / "before", home)
        wait, start = os.pipe()
        children = [_racer(home, wait, say) for _ in range(2)]
        os.write(start, b"gg")
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        ends.append(sorted(codes))
        os.read(said, 1)
        os.close(wait)
        os.close(start)
    return {"ends": ends}


def _racer(home: Path, wait: int, say: int) -> int:
    child = os.fork()
    if child == 0:
        os.read(wait, 1)
        try:
            code = tomorrow(home).exit_code
        except LockHeld:
            code = EXIT_LOCKED
            os.write(say, b"l")
        os._exit(code)
    return child


def look(home: Path, old: dict, new: dict) -> list[str]:
    """Return what is neither as it was nor as it will be."""
    found = contents(home)
    wrong = []
    for name, content in found.items():
        unfinished = any(part.startswith(".") for part in Path(name).parts)
        if not unfinished and content not in (old.get(name), new.get(name)):
            wrong.append(f"{name} is neither old nor new")
        if not unfinished and name.endswith(".json"):
            json.loads(content)
    wrong.extend(f"{name} is lost" for name in old if name not in found)
    for folder in (home / "reports/runs").glob("[!.]*"):
        here = {f"reports/runs/{folder.name}/{path.name}" for path in folder.iterdir()}
        whole = {name for name in new if name.startswith(f"reports/runs/{folder.name}/")}
        if here != whole:
            wrong.append(f"run {folder.name} is half there")
    return wrong


def main(how: str, root: Path) -> dict:
    without_processes(setattr)
    home, before = root / "home", root / "before"
    night(before, tiny_suite(n_seeds=4), approve="first")
    old = contents(before)

    def begin() -> None:
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(before, home)

    begin()
    code, points = in_a_child(home, how, None)
    new = contents(home)
    begin()
    stops = sorted({1 + at * (points - 1) // (POINTS - 1) for at in range(POINTS)})
    nights = []
    for stop in stops:
        begin()
        ended, _ = in_a_child(home, how, stop)
        wrong, finished = look(home, old, new), contents(home) == new
        # Stopped after the last change of all, there is nothing left to be resumed.
        again = 0 if finished else in_a_child(home, how, None)[0]
        after = contents(home)
        different = sorted(name for name in {*new, *after} if new.get(name) != after.get(name))
        nights.append(
            {"stop": stop, "ended": ended, "wrong": wrong, "again": again, "different": different}
        )
    return {
        "code": code,
        "points": points,
        "changed": sum(old.get(n) != new[n] for n in new),
        "nights": nights,
    }


if __name__ == "__main__":
    how, folder = sys.argv[1], Path(sys.argv[2])
    sys.stdout.write(json.dumps(race(folder) if how == "race" else main(how, folder)))
