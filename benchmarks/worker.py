"""Runs one peer in the peer's own environment and answers "run once" over JSON lines.

Started as ``python worker.py <adapter> <bars.npy> [key=value ...]``. It says ``{"ready": version}``
or ``{"absent": reason}`` once, then answers each ``{"work": name, "size": n}`` with the seconds the
work took, how many units were done and what came out. The clock runs here, around the work alone,
so neither the pipe nor the making of inputs is counted.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import TextIO


def main() -> None:
    # Libraries print to standard output when they like; keep the pipe for answers alone.
    with os.fdopen(os.dup(1), "w", buffering=1) as answers:
        os.dup2(2, 1)
        serve(answers)


def serve(answers: TextIO) -> None:
    adapter, bars, *options = sys.argv[1:]
    sys.path[0] = str(Path(__file__).parent / "adapters")
    try:
        module = importlib.import_module(adapter)
        peer = module.Peer(bars, **dict(option.split("=", 1) for option in options))
    except Exception as error:  # noqa: BLE001 - a peer may fail in any way; it becomes a reason
        print(json.dumps({"absent": f"{type(error).__name__}: {error}"}), file=answers)
        return
    print(json.dumps({"ready": peer.version}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(peer, request["work"])(request["size"])
        except Exception as error:  # noqa: BLE001 - as above: report it, do not hang the contest
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
