"""``python -m benchmarks``: measure, print, and write ``results/bench/latest.json``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent_gym.core.files import write_json
from benchmarks import peers
from benchmarks.data import random_walk
from benchmarks.peers import Fleet
from benchmarks.report import Row, machine, show
from benchmarks.works import SERIES_BARS, SHORT_BARS, WORKS, Ground


def main() -> int:
    options = _options()
    if options.install_peers:
        for name, reason in peers.install().items():
            print(f"absent: {name}: {reason}")
        return 0
    folder = Path(os.environ.get("AGENT_GYM_HOME", "results")) / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        rows = _measure(options, Path(scratch), folder / "peers.log", about)
    result: dict[str, Any] = {row.work: row.as_dict() for row in rows}
    write_json(folder / "latest.json", result | {"_about": about})
    missed = [row.work for row in rows if row.met is not True]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} goals met", end="")
    print(f"; not met: {', '.join(missed)}" if missed else "")
    print(f"written to {folder / 'latest.json'}")
    return 1 if missed and options.strict else 0


def _measure(
    options: argparse.Namespace, scratch: Path, log: Path, about: dict[str, Any]
) -> list[Row]:
    series = random_walk(SERIES_BARS)
    series.save(scratch / "bars.npy")
    rows: list[Row] = []
    with Fleet(scratch / "bars.npy", log) as fleet:
        about["peers"] = fleet.versions()
        ground = Ground(series, series.head(SHORT_BARS), fleet, scratch, options.rounds)
        for name in options.works or WORKS:
            for row in WORKS[name](ground):
                show(row)
                rows.append(row)
        about["absent"] = dict(fleet.absent)
    for name, reason in about["absent"].items():
        print(f"\nabsent: {name}: {reason}")
    about["load_average_after"] = list(os.getloadavg())
    about["rounds"], about["commit"] = options.rounds, _commit()
    return rows


def _commit() -> str | None:
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--install-peers", action="store_true", help="set up the peers, then stop")
    parser.add_argument("--works", nargs="*", choices=tuple(WORKS), help="only these works")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--strict", action="store_true", help="fail if a goal is not met")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
