"""Plays the soak: ``python -m tests.soak --seconds 3600 --seed 0``."""

import argparse
import signal
import sys
from itertools import islice
from pathlib import Path

from tests.rollouts.postgres import binaries
from tests.soak.act import Act
from tests.soak.actors import adopt_orphans
from tests.soak.page import passed, write
from tests.soak.plan import KINDS, planned

PATIENCE_S = 900.0


def main() -> int:
    """Play an act on each database and write what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of faults, in all")
    parser.add_argument("--seed", type=int, default=0, help="decides all faults")
    parser.add_argument("--database", choices=(*KINDS, "both"), default="both")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds to recover")
    parser.add_argument("--out", type=Path, help="folder of soak.json and soak.md")
    parser.add_argument("--desk", type=Path, help="folder for logs; default: a temporary one")
    parser.add_argument("--plan", type=int, metavar="N", help="print the first N faults and end")
    asked = parser.parse_args()
    names = tuple(KINDS) if asked.database == "both" else (asked.database,)
    if asked.plan is not None:
        for name in names:
            for fault in islice(planned(asked.seed, name), asked.plan):
                sys.stdout.write(f"{name} {fault}\n")
        return 0
    if "postgres" in names and binaries() is None:
        parser.error("PostgreSQL is not installed; --database sqlite goes without it")
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # and clear up
    acts = []
    for name in names:
        desk = None if asked.desk is None else asked.desk / name
        each_s = asked.seconds / len(names)
        acts.append(Act(name, each_s, asked.seed, asked.patience, desk).play())
        sys.stdout.write(f"{name}: {len(acts[-1]['violations'])} violations, ")
        sys.stdout.write(f"{acts[-1]['problems'] + acts[-1]['not_done'] or 'recovered'}; ")
        sys.stdout.write(f"logs in {acts[-1]['desk']}\n")
    if asked.out is not None:
        write(asked.out, acts, asked.seed, asked.seconds)
    return 0 if passed(acts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
