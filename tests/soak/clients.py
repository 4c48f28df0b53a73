"""The usual callers, in a process of their own: they go on calling whatever happens.

Usage: python -m tests.soak.clients DESK ACKS SEED
"""

import sys
from pathlib import Path

import httpx

from agent_gym.core.clock import SystemClock
from agent_gym.core.seeds import Seeds
from tests.soak.acks import Acks
from tests.soak.callers import Callers
from tests.soak.scene import Scene

A_TIME = 5
EVERY_S = 0.5


def main(desk: Path, acks: Acks, seed: int) -> None:
    """Call until we are ended."""
    rng, clock = Seeds(seed).child("soak clients").rng(), SystemClock()
    while True:
        scene = Scene.read(desk / "scene.json")
        if scene.url is not None:
            try:
                Callers(scene.url, scene.token, acks).usual(rng, list(scene.points), A_TIME)
            except (httpx.HTTPError, OSError):
                acks.say("answer", status="nobody there")
        clock.sleep_s(EVERY_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Acks(Path(sys.argv[2])), int(sys.argv[3]))
