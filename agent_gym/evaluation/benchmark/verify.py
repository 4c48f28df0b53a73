"""Proofs about snapshots: made again bit for bit, nothing leaks, the optimum can be attained."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark import baselines
from agent_gym.evaluation.benchmark.optimum import BayesOptimum
from agent_gym.evaluation.benchmark.probe import probe_leaks
from agent_gym.evaluation.statistics import Interval, seeds_interval
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator, Made
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.sealed import load_truth, truth_path
from agent_gym.markets.snapshot.types import Snapshot
from agent_gym.rollouts.play import play

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    passed: bool
    words: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"check": self.check, "passed": self.passed, "words": self.words}


def verify_snapshot(path: Path) -> list[Finding]:
    """Look at one snapshot: hashes, truth, generation, and that its seal cannot be seen through."""
    snapshot = load_snapshot(path)
    truth = load_truth(truth_path(path), snapshot)
    again = BenchmarkDataGenerator(snapshot.config).generate(truth.seed).snapshot.id
    answers = {one.market: one.outcome == "yes" for one in snapshot.resolutions}
    flat = _play(snapshot, baselines.flat(baselines.FlatConfig()), 0)
    return [
        Finding("hashes", True, f"content and truth have the hashes that {snapshot.id} states"),
        Finding(
            "determinism",
            again == snapshot.id,
            f"config and seed make {again} again",
        ),
        Finding(
            "answers",
            answers == truth.outcomes,
            "the resolutions that are played are those of the sealed truth",
        ),
        _sealed(path),
        Finding("flat is 0", flat == 0.0, f"whoever does nothing ends with {flat:+.6f}"),
    ]


def verify_generator(
    config: SnapshotConfig, seeds: Sequence[int], report: Report | None = None
) -> list[Finding]:
    """Look at many snapshots of one config: leaks, and what different players earn."""
    maker, made = BenchmarkDataGenerator(config), []
    players: dict[str, Callable[[Snapshot], Agent]] = {
        "optimum": BayesOptimum,
        "sentiment": lambda _: baselines.sentiment(baselines.ThresholdConfig()),
        "random": lambda _: baselines.random(baselines.RandomConfig()),
    }
    earned = {name: np.zeros(len(seeds)) for name in players}
    for place, seed in enumerate(seeds):
        one = maker.generate(seed)
        made.append(one)
        for name, player in players.items():
            earned[name][place] = _play(one.snapshot, player(one.snapshot), seed)
        if report is not None:
            report(place + 1, len(seeds))
    means = {
        name: seeds_interval(values, Seeds(0).child(name), reps=2_000)
        for name, values in earned.items()
    }
    return [*_leak_findings(made), *_earning_findings(means, config.scenario)]


def _leak_findings(made: list[Made]) -> list[Finding]:
    found = []
    for row in probe_leaks(made):
        words = (
            f"tick {row.tick}: log loss of Bayes' rule {row.bayes:.3f}, of the probe "
            f"{row.probe:.3f} (better by {row.gain.estimate:+.3f}, {row.gain.low:+.3f} to "
            f"{row.gain.high:+.3f}), {row.samples} questions"
        )
        found.append(Finding("no leak", not row.leaks, words))
    return found


def _earning_findings(means: dict[str, Interval], scenario: str) -> list[Finding]:
    best, simple, dice = means["optimum"], means["sentiment"], means["random"]
    found = [
        Finding("the optimum earns", best.low > 0.0, f"optimum {_words(best)}"),
        Finding("dice lose", dice.high < 0.0, f"random {_words(dice)}"),
    ]
    if scenario != "quiet":  # there the right answer is to trade little
        learnable = simple.low > 0.0 and simple.estimate < best.estimate
        found.append(Finding("learnable", learnable, f"follow-the-posts {_words(simple)}"))
    return found


def _words(mean: Interval) -> str:
    return f"{mean.estimate:+.3f} of the cash ({mean.low:+.3f} to {mean.high:+.3f})"


def _play(snapshot: Snapshot, agent: Agent, seed: int) -> float:
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path()), snapshot)
    return play(world, Independent({TRADER: agent}), "verify", Seeds(seed)).total_reward[TRADER]


def _sealed(path: Path) -> Finding:
    """Play without the sealed file, and with a forged one: no observation may differ."""
    as_it_is = observed(path)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / path.name
        shutil.copyfile(path, copy)
        without = observed(copy)
        truth_path(copy).write_bytes(b"forged")
        forged = observed(copy)
    same = as_it_is == without == forged
    return Finding("sealed", same, "observations are the same without the sealed file")


def observed(path: Path) -> str:
    """Return a hash of every byte that a player who throws dice sees of a snapshot."""
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=path, text=True))
    rng, digest = Seeds(0).child("observed").rng(), sha256()
    seen, over = world.reset(Seeds(0))[TRADER], False
    while True:
        digest.update(seen.features.tobytes() + (seen.text or "").encode() + str(seen.ts).encode())
        if over:
            return digest.hexdigest()
        outcome = world.advance(rng.integers(-1, 2, world.floor.n_markets).astype(np.float64))
        seen, over = outcome.observation, outcome.terminated
