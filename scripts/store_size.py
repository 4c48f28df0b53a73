"""Measure the trajectory store at a team's size and write the figures down.

    python -m scripts.store_size [--trajectories 100000] [--out docs/results]

A PostgreSQL of its own is started in a temporary folder (its programs must be installed), and all
is removed at the end. Eight recorders write at once; what they played is compared with what is read
back. Then come the questions of the pages, the export of a batch, backup, restore into both kinds
of database, and retention. SQLite gets a tenth of the trajectories and the same questions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from agent_gym.core.clock import SystemClock
from agent_gym.core.files import write_json, write_text
from agent_gym.core.manifest import installed_versions
from agent_gym.rollouts.database import (
    BatchRequest,
    JudgmentRecord,
    TrajectoryFilter,
    TrajectoryStore,
)
from scripts.store_page import page_of
from scripts.store_queries import list_questions, page_questions
from scripts.store_seed import Played
from tests.rollouts import postgres

CLI = "from agent_gym.apps.cli.main import main; main()"
EXPORT = (
    "import sys; from pathlib import Path; "
    "from agent_gym.rollouts.database import TrajectoryStore; "
    "from agent_gym.pipeline.automation.export import export_grouped_for_grpo; "
    "store = TrajectoryStore.open(sys.argv[1], folder=Path(sys.argv[2])); "
    "print(export_grouped_for_grpo(store, sys.argv[3], Path(sys.argv[4])).steps)"
)
SERVER = (
    "listen_addresses=",
    "max_connections=100",
    "shared_buffers=512MB",
    "work_mem=16MB",
    "max_wal_size=4GB",
)
READ_AT_ONCE = 500
LOOK_S = 0.02
VERSION = f"{3:064x}"
UNIT = "select count(*) from generate_series(1, 100000)"


class Bench:
    """The figures so far, and the way to measure more."""

    def __init__(self, words: argparse.Namespace, work: Path) -> None:
        self.words, self.work, self.clock = words, work, SystemClock()
        self.figures: dict[str, Any] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time a piece of work and note how busy the machine was."""
        note(name)
        found: dict[str, Any] = {}
        begun = self.clock.monotonic_s()
        yield found
        found["seconds"] = round(self.clock.monotonic_s() - begun, 2)
        found["load"] = round(os.getloadavg()[0], 1)
        self.figures[name] = found
        note(f"  {json.dumps({k: v for k, v in found.items() if k != 'questions'})}")

    def child(self, *words: str) -> dict[str, Any]:
        """Run Python with some words; return what it printed and how much memory it took."""
        peak_kb = 0
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen([sys.executable, *words], stdout=out)
            while True:
                ended, status, used = os.wait4(process.pid, os.WNOHANG)
                if ended:
                    break
                peak_kb = max(peak_kb, _peak_kb(process.pid))
                self.clock.sleep_s(LOOK_S)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            said = out.read().decode()
        if process.returncode:
            raise SystemExit(f"{' '.join(words[:4])} failed: {said[-2000:]}")
        return {
            "said": said,
            "peak_rss_mb": round(peak_kb / 1024),
            "cpu_s": round(used.ru_utime, 1),
        }

    def db(self, *words: str) -> dict[str, Any]:
        """Run ``agent-gym db``."""
        done = self.child("-c", CLI, "db", *words, "--json")
        return done | {"said": json.loads(done["said"])}


def _peak_kb(pid: int) -> int:
    """Return the most memory that a process has held since it became this program.

    ``ru_maxrss`` will not do: it counts what the process held before, as a copy of its parent.
    """
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def note(said: str) -> None:
    """Tell whoever waits how far it is."""
    print(said, file=sys.stderr, flush=True)  # noqa: T201


def record(bench: Bench, name: str, url: str, folder: Path, total: int) -> None:
    """Let many recorders write at once, then read everything back and compare."""
    words = bench.words
    TrajectoryStore.open(url, folder=folder).close()
    with bench.stage(f"{name}: {words.recorders} recorders") as found:
        each = total // words.recorders
        tasks = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "scripts.store_seed", url, str(folder)),
                    *("--first", str(number * each), "--trajectories", str(each)),
                    *("--steps", str(words.steps), "--total", str(total)),
                ],
                stdout=subprocess.PIPE,
            )
            for number in range(words.recorders)
        ]
        played = [json.loads(task.communicate()[0]) for task in tasks]
        found["trajectories"] = sum(one["trajectories"] for one in played)
        found["steps"] = sum(one["steps"] for one in played)
    found["steps_per_s"] = round(found["steps"] / found["seconds"])
    checksum = 0
    for one in played:
        checksum ^= one["checksum"]
    with bench.stage(f"{name}: read back") as back:
        with TrajectoryStore.open(url, folder=folder) as store:
            seen = read_back(store)
            back["waiting"] = len(store.outbox.waiting())
        back["trajectories"], back["steps"] = seen.trajectories, seen.steps
        wanted = (found["trajectories"], found["steps"], checksum)
        back["equal"] = (seen.trajectories, seen.steps, seen.checksum) == wanted
        back["checksum"] = f"{checksum:016x}"
    if not back["equal"]:
        raise SystemExit(f"{name}: what was recorded is not what was played")


def read_back(store: TrajectoryStore) -> Played:
    """Read every step of a store, some trajectories at a time."""
    seen, after = Played(), None
    while True:
        page = store.page(TrajectoryFilter(), limit=READ_AT_ONCE, after=after, descending=False)
        for one in store.read([row.trajectory_id for row in page.rows]):
            seen.add(one.row.episode_id, one.steps.reward)
        after = page.next
        if after is None:
            return seen


def prepare_questions(url: str, folder: Path) -> None:
    """Judge some trajectories, claim some, and let the server count its rows."""
    with TrajectoryStore.open(url, folder=folder) as store:
        rows = store.page(TrajectoryFilter(status="completed"), limit=1_000).rows
        store.judgments.add(
            JudgmentRecord(
                trajectory_id=row.trajectory_id,
                group_id=row.group_key or "",
                judge_model="drawn",
                judge_version="1",
                overall_score=(row.id % 100) / 100,
            )
            for row in rows
        )
        for name, groups in (("small", 100), ("large", 1_000)):
            store.batches.claim(BatchRequest(batch_id=name, max_groups=groups))
        if not store.database.is_sqlite:
            with store.database.engine.connect() as plain:
                connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                connection.execute(text("vacuum analyze"))


def ask(bench: Bench, name: str, url: str, folder: Path) -> None:
    """Ask everything that the pages ask, many times each, in turn."""
    with (
        bench.stage(f"{name}: questions") as found,
        TrajectoryStore.open(url, folder=folder) as store,
    ):
        seen = store.page(TrajectoryFilter(status="completed"), limit=1).rows[0].trajectory_id
        asked = dict([*list_questions(store, VERSION), *page_questions(store, seen, VERSION)])
        times: dict[str, list[float]] = {question: [] for question in asked}
        unit: list[float] = []
        for number in range(bench.words.repeat + 1):
            for question, ask_it in asked.items():
                spent = _timed(bench.clock, ask_it)
                if number:  # the first round fills caches
                    times[question].append(spent)
            if not store.database.is_sqlite:
                unit.append(_timed(bench.clock, lambda: _unit(store)))
        found["questions"] = {
            question: {"p50_ms": _part(spent, 50), "p95_ms": _part(spent, 95)}
            for question, spent in times.items()
        }
        every = [each for spent in times.values() for each in spent]
        found["asked"] = len(every)
        found["p50_ms"], found["p95_ms"] = _part(every, 50), _part(every, 95)
        found["worst_p95_ms"] = max(each["p95_ms"] for each in found["questions"].values())
        if unit:
            found["unit_p50_ms"] = _part(unit, 50)


def _timed(clock: SystemClock, work: Callable[[], object]) -> float:
    begun = clock.monotonic_s()
    work()
    return 1e3 * (clock.monotonic_s() - begun)


def _unit(store: TrajectoryStore) -> None:
    with store.database.reading() as session:
        session.execute(text(UNIT)).all()


def _part(values: list[float], percent: int) -> float:
    return round(float(np.percentile(values, percent)), 2)


def export(bench: Bench, url: str, folder: Path) -> None:
    """Export two batches, one ten times the other; memory must not grow with them."""
    for name in ("small", "large"):
        with bench.stage(f"export, {name} batch") as found:
            done = bench.child("-c", EXPORT, url, str(folder), name, str(bench.work / name))
            found |= {"steps": int(done.pop("said")), **done}
        shutil.rmtree(bench.work / name)


def keep(bench: Bench, server: Any, url: str, folder: Path) -> None:
    """Back up, check, restore into either kind, and take old trajectories away."""
    home, copy = folder.parent, bench.work / "backup"
    mine = ("--database", url, "--folder", str(home))
    with bench.stage("backup") as found:
        done = bench.db("backup", "--out", str(copy), *mine)
        made = done.pop("said")
        found |= done | {name: made[name] for name in ("rows", "step_files", "step_bytes")}
    with bench.stage("verify the backup") as found:
        found |= {k: v for k, v in bench.db("verify", str(copy)).items() if k != "said"}
    for kind in ("postgresql", "sqlite"):
        there = bench.work / f"restored-{kind}"
        target = ("--folder", str(there))
        if kind == "postgresql":
            target = (*target, "--database", server.url(server.new_database()))
        with bench.stage(f"restore into {kind}") as found:
            done = bench.db("restore", str(copy), *target)
            found |= {"rows": done["said"]["rows"], "peak_rss_mb": done["peak_rss_mb"]}
        with bench.stage(f"backup of the restored {kind}") as found:
            again = bench.db("backup", "--out", str(bench.work / "again"), *target)["said"]
            found["equal"] = again["tables"] == made["tables"]
        shutil.rmtree(bench.work / "again")
        shutil.rmtree(there)
    with bench.stage("stats") as found:
        told = bench.db("stats", *mine)["said"]
        found |= {"bytes": told["bytes"], "step_bytes": told["step_files"]["bytes"]}
        found["tables"] = {
            each["name"]: {
                "rows": each["rows"],
                "bytes": each["bytes"],
                "indexes": each["index_bytes"],
            }
            for each in told["tables"]
            if each["rows"]
        }
        found["unused_indexes"] = told["unused_indexes"]
    with bench.stage("prune, older than 60 days") as found:
        done = bench.db("prune", "--older-than", "60", "--yes", *mine)
        found |= done["said"] | {"peak_rss_mb": done["peak_rss_mb"]}
    found["trajectories_per_s"] = round(found["trajectories"] / found["seconds"])


def measure(words: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Measure everything, and remove what was made for it."""
    bench, server = Bench(words, work), postgres.new_server(SERVER)
    try:
        url, folder = server.url(server.new_database()), work / "pg" / "trajectories"
        record(bench, "postgresql", url, folder, words.trajectories)
        prepare_questions(url, folder)
        ask(bench, "postgresql", url, folder)
        export(bench, url, folder)
        keep(bench, server, url, folder)
        shutil.rmtree(work / "pg")
        folder = work / "lite" / "trajectories"
        url = f"sqlite:///{folder / 'trajectories.db'}"
        folder.mkdir(parents=True)
        record(bench, "sqlite", url, folder, words.trajectories // 10)
        prepare_questions(url, folder)
        ask(bench, "sqlite", url, folder)
    finally:
        postgres.end(server)
    return {
        "command": f"python -m scripts.store_size --trajectories {words.trajectories} "
        f"--steps {words.steps} --recorders {words.recorders} --repeat {words.repeat}",
        "trajectories": words.trajectories,
        "steps_each": words.steps,
        "cores": os.cpu_count(),
        "server": list(SERVER),
        "versions": installed_versions(),
        "figures": bench.figures,
    }


def main() -> None:
    """Read the words of the command line, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100, help="of each trajectory")
    parser.add_argument("--recorders", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=40, help="times that each question is asked")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    words = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="store-size-"))
    try:
        found = measure(words, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    write_json(words.out / "store_size.json", found)
    write_text(words.out / "store_size.md", page_of(found))


if __name__ == "__main__":
    main()
