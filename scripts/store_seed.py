"""One recorder of many: play drawn episodes into a store, and say what was played.

    python -m scripts.store_seed URL FOLDER --first 0 --trajectories 1000 --steps 100

What it prints is made from what was drawn, not from the store, so the two can be compared.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS, ManualClock, SystemClock
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, FloatArray, Nanos, Observation, Outcome, Role, Step
from agent_gym.rollouts.database import (
    EpisodeFigures,
    LlmCallRecord,
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.play import EpisodeResult

TRADER = Role("trader")
WIDTH = 5
DAYS = 120
GROUP = 8
AGENTS = ("rules/momentum", "rules/breakout", "llm/trader", "grpo/policy", "umc")
SNAPSHOTS = 200
VERSIONS = 40
EPOCH_NS = 1_767_225_600_000_000_000  # 2026-01-01 UTC
PROMPT = "You trade one coin. Say what you do and why. " * 20


@dataclass(slots=True)
class Played:
    """How much was played, and a sum that does not depend on the order."""

    trajectories: int = 0
    steps: int = 0
    checksum: int = 0
    seconds: float = 0.0

    def add(self, episode: str, rewards: FloatArray) -> None:
        """Count one trajectory."""
        self.trajectories += 1
        self.steps += rewards.size
        self.checksum ^= checksum_of(episode, rewards)


def checksum_of(episode: str, rewards: FloatArray) -> int:
    """Return a number that stands for one trajectory: whose it is and what each step paid."""
    said = sha256(episode.encode() + np.ascontiguousarray(rewards).tobytes()).digest()
    return int.from_bytes(said[:8], "big")


def context_of(number: int) -> TrajectoryContext:
    """Return what is said of a trajectory; eight neighbours make a group."""
    group = number // GROUP
    rare = number % 997 == 0
    return TrajectoryContext(
        agent="rare/agent" if rare else AGENTS[group % len(AGENTS)],
        agent_version=f"{group % VERSIONS:064x}",
        snapshot_id=f"{group % SNAPSHOTS:032x}",
        group_key=f"group-{group}",
        seed=number,
        run_id=f"run-{number // 1000}",
        purpose="evaluation" if number % 10 == 9 else "training",
        details={"feature_names": ["mid return", "volatility", "spread", "position", "cash"]},
    )


def play(recorder: TrajectoryRecorder, number: int, n_steps: int, said: Played) -> None:
    """Draw one episode and hand it to the recorder, step by step."""
    rng = Seeds(number).child("steps").rng()
    seen = rng.normal(size=(n_steps + 1, WIDTH))
    rewards = rng.normal(0.0, 0.001, n_steps)
    actions = rng.integers(0, 3, n_steps).tolist()
    log_probs = rng.normal(-1.0, 0.1, n_steps).tolist()
    episode = f"episode-{number}"
    start = EPOCH_NS + number * HOUR_NS
    failed = number % 50 == 49
    recorder.begin(context_of(number))
    before = Observation(Nanos(start), seen[0])
    for t in range(n_steps):
        after = Observation(Nanos(start + (t + 1) * MINUTE_NS), seen[t + 1])
        outcome = Outcome(after, float(rewards[t]), terminated=t == n_steps - 1)
        decision = Decision(actions[t], {"log_prob": log_probs[t], "edge": actions[t] / 3})
        recorder.write(Step(episode, t, TRADER, "drawn", before, decision, outcome))
        before = after
    result = EpisodeResult(episode)
    if failed:
        result.status, result.error = "error", {"what": "drawn to fail"}
    recorder.finish_episode(result)
    recorder.annotate(
        EpisodeFigures(
            final_balance=10_000.0,
            final_pnl=float(rewards.sum()),
            trades_executed=int(np.count_nonzero(np.diff(actions))),
            metrics={"sharpe": float(rewards.mean() / rewards.std()), "max_drawdown": 0.1},
        )
    )
    recorder.add_calls(
        [LlmCallRecord(t=0, model="drawn", system_prompt=PROMPT, response="hold: no edge")]
    )
    said.add(episode, rewards)


def record(url: str, folder: Path, numbers: range, n_steps: int, total: int) -> Played:
    """Record some episodes; the store's clock is spread over months, as a team's would be."""
    clock, said, wall = ManualClock(), Played(), SystemClock()
    now = int(wall.now_ns())
    clock.advance_ns(now - DAYS * DAY_NS + numbers.start * (DAYS * DAY_NS // total))
    begun = wall.monotonic_s()
    with (
        TrajectoryStore.open(url, folder=folder, clock=clock) as store,
        TrajectoryRecorder(store) as recorder,
    ):
        for number in numbers:
            play(recorder, number, n_steps, said)
            clock.advance_ns(DAYS * DAY_NS // total)
    said.seconds = wall.monotonic_s() - begun
    return said


def main() -> None:
    """Read the words of the command line, record, and print what was played."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--trajectories", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--total", type=int, default=None, help="trajectories of all recorders")
    words = parser.parse_args()
    numbers = range(words.first, words.first + words.trajectories)
    total = words.total or words.trajectories
    print(json.dumps(asdict(record(words.url, words.folder, numbers, words.steps, total))))  # noqa: T201


if __name__ == "__main__":
    main()
