"""Simulated candidates and rollouts with a known truth, judged by the gate's own code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.shapes import HARDER, SHAPES
from agent_gym.evaluation.promotion.evidence import (
    Evidence,
    Figures,
    Integrity,
    Look,
    Pair,
    alpha_of,
)
from agent_gym.evaluation.promotion.gate import judge_promotion
from agent_gym.evaluation.promotion.monitor import Monitor, MonitorPolicy
from agent_gym.evaluation.promotion.policy import PromotionPolicy
from agent_gym.evaluation.promotion.verdict import Verdict

NOISE = 0.02  # standard deviation of a paired difference, as a return
PATHS = 0.05  # how much the champion itself varies from snapshot to snapshot
SEALED = "simulated"
GOOD = Integrity(
    artifact_hash_ok=True,
    policy_loads=True,
    replay_equal=True,
    snapshots_hash_ok=True,
    data_manifest_ok=True,
)
WELL = Figures(
    max_drawdown=0.1, ruined=0, invalid_rate=0.0, latency_ms=1.0, entropy=0.5, kl_to_champion=0.1
)
# Slices of equal size, as many as these pairs let harm be shown in.
SLICES = {20: 2, 30: 3, 40: 5}


@dataclass(frozen=True, slots=True)
class Arm:
    """One question: a shape of noise, a true effect in standard deviations, and pairs."""

    shape: str
    effect: float = 0.0
    pairs: int = 20


@dataclass(slots=True)
class GateTally:
    """What was said of many candidates.

    Attributes:
        runs: Candidates.
        promoted: By the whole gate, as the first candidate of a sealed set.
        at_nominal: By the test alone, at 5 %.
        flip_alone: By the sign flip alone, at 5 %; a control.
    """

    runs: int = 0
    promoted: int = 0
    at_nominal: int = 0
    flip_alone: int = 0


def noise(shape: str, seeds: Seeds, n: int) -> FloatArray:
    """Return differences of mean 0 and standard deviation 1; "left_" turns a law round."""
    drawn = seeds.rng().standard_normal(n)
    if shape == "left_lognormal":
        return -HARDER["lognormal"](drawn)
    return SHAPES[shape](drawn)


def candidate(
    arm: Arm, seeds: Seeds, number: int = 1, policy: PromotionPolicy | None = None
) -> Verdict:
    """Return the gate's verdict on one simulated candidate."""
    asked = policy or PromotionPolicy()
    gains = NOISE * (arm.effect + noise(arm.shape, seeds.child("gains"), arm.pairs))
    paths = PATHS * seeds.child("paths").rng().standard_normal(arm.pairs)
    slices = SLICES[arm.pairs]
    pairs = tuple(
        Pair(
            snapshot_id=f"s{index}",
            slice=f"slice-{index % slices}",
            champion=float(path),
            challenger=float(path + gain),
        )
        for index, (path, gain) in enumerate(zip(paths, gains, strict=True))
    )
    evidence = Evidence(
        champion="champion",
        challenger="challenger",
        sealed_set=SEALED,
        pairs=pairs,
        integrity=GOOD,
        figures=WELL,
    )
    look = Look(
        sealed_set=SEALED,
        candidate="challenger",
        number=number,
        alpha=alpha_of(number, asked.alpha),
    )
    return judge_promotion(evidence, look, asked, seeds)


def ask_gate(arm: Arm, seeds: Seeds, runs: int, policy: PromotionPolicy) -> GateTally:
    """Let the gate judge many candidates of one arm."""
    tally = GateTally()
    for run in range(runs):
        verdict = candidate(arm, seeds.child(run), policy=policy)
        figures = verdict.check("superiority").figures
        tally.runs += 1
        tally.promoted += verdict.promoted
        tally.at_nominal += _number(figures["p"]) <= policy.alpha
        tally.flip_alone += _number(figures["p_sign_flip"]) <= policy.alpha
    return tally


def ask_families(
    shape: str, seeds: Seeds, families: int, size: int, policy: PromotionPolicy
) -> tuple[int, int]:
    """Try many candidates that are no better on one sealed set, again and again.

    Returns:
        Families in which one was promoted: with alpha spent per look, and with 5 % every time.
    """
    spent = unspent = 0
    for family in range(families):
        verdicts = [
            candidate(Arm(shape), seeds.child(family, number), number, policy)
            for number in range(1, size + 1)
        ]
        spent += any(verdict.promoted for verdict in verdicts)
        unspent += any(
            _number(verdict.check("superiority").figures["p"]) <= policy.alpha
            for verdict in verdicts
        )
    return spent, unspent


def ask_monitor(arm: Arm, seeds: Seeds, runs: int, policy: MonitorPolicy) -> list[int | None]:
    """Return after how many episodes each of many rollouts was rolled back; None if never.

    ``arm.pairs`` is the number of looks, one after every episode.
    """
    ended: list[int | None] = []
    for run in range(runs):
        watch = Monitor.start(1.0, policy)
        differences = arm.effect + noise(arm.shape, seeds.child(run), arm.pairs)
        found = None
        for look, difference in enumerate(differences.tolist(), start=1):
            watch = watch.add(0.0, difference)
            if watch.harm_shown:
                found = look
                break
        ended.append(found)
    return ended


def peeking_z(seeds: Seeds, runs: int, looks: int, first: int = 10) -> int:
    """Count false rollbacks of a z-test at 5 % that is looked at after every episode; a control."""
    drawn = seeds.rng().standard_normal((runs, looks))
    n = np.arange(1, looks + 1)
    mean = np.cumsum(drawn, axis=1) / n
    spread = np.sqrt(np.maximum(np.cumsum(drawn**2, axis=1) / n - mean**2, 1e-12))
    z = mean * np.sqrt(n) / spread
    return int((z[:, first - 1 :] < -1.645).any(axis=1).sum())


def share_of_best(seeds: Seeds, runs: int, loss: float, spread: float) -> int:
    """Count deployments by ">= 95 % of the best score on one run"; a control."""
    drawn = seeds.rng().standard_normal((2, runs))
    best, new = 1.0 + spread * drawn[0], (1.0 - loss) * (1.0 + spread * drawn[1])
    return int((new >= 0.95 * best).sum())


def _number(figure: object) -> float:
    assert isinstance(figure, float | int)
    return float(figure)
