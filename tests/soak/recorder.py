"""A recorder that is killed: it plays, and writes down what it was told is kept.

Usage: python -m tests.soak.recorder FOLDER URL ACKS LIFE [last]. URL is "-" for SQLite in the
folder. It goes on until it is killed. With "last" it plays one episode, brings what waits in the
outbox into the database, and ends.
"""

import sys
from pathlib import Path

import numpy as np

from agent_gym.core.clock import MINUTE_NS, SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, Nanos, Observation, Outcome, Role, Step
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder, TrajectoryStore
from agent_gym.rollouts.play import EpisodeResult
from tests.soak.acks import Acks

ROLE = Role("trader")
START_NS = 1_704_067_200_000_000_000
EVERY_S = 0.2
MOST_STEPS = 40


def steps(episode: str, life: int, number: int) -> list[Step]:
    """Return the steps of an episode; the same names give the same steps."""
    rng = Seeds(life).child("soak recorder", number).rng()
    n = int(rng.integers(1, MOST_STEPS))
    rewards = rng.normal(size=n)
    seen = [
        Observation(Nanos(START_NS + t * MINUTE_NS), np.array([float(t), float(life)]))
        for t in range(n + 1)
    ]
    return [
        Step(
            episode,
            t,
            ROLE,
            "soak",
            seen[t],
            Decision(t % 3, {"log_prob": -1.0}),
            Outcome(seen[t + 1], float(rewards[t]), terminated=t == n - 1),
        )
        for t in range(n)
    ]


def record(recorder: TrajectoryRecorder, life: int, number: int) -> tuple[str, int]:
    """Record an episode and return its id and steps once they are kept."""
    episode = f"soak-{life}-{number}"
    played = steps(episode, life, number)
    about = TrajectoryContext(
        agent="soak", agent_version="v1", seed=number, run_id=f"soak-{life}", purpose="evaluation"
    )
    recorder.begin(about)
    for step in played:
        recorder.write(step)
    total = sum(step.after.reward for step in played)
    recorder.finish_episode(EpisodeResult(episode, len(played), {ROLE: total}))
    return recorder.trajectory_ids(episode)[str(ROLE)], len(played)


def main(folder: Path, url: str | None, acks: Acks, life: int, *, last: bool) -> None:
    """Record until we are killed, or until nothing waits any more."""
    clock, number, done = SystemClock(), 0, False
    with TrajectoryStore.open(url, folder=folder) as store, TrajectoryRecorder(store) as recorder:
        while not done:
            try:
                made, n = record(recorder, life, number)
            except (StoreError, OSError) as error:
                sys.stderr.write(f"not kept, and not acknowledged: {error}\n")
            else:
                acks.say("trajectory", id=made, steps=n)
                done = last and not store.deliver().waiting
            number += 1
            clock.sleep_s(EVERY_S)


if __name__ == "__main__":
    _folder, _url, _acks, _life = sys.argv[1:5]
    _place, _address = Path(_folder), None if _url == "-" else _url
    main(_place, _address, Acks(Path(_acks)), int(_life), last="last" in sys.argv[5:])
