"""Ask on the signal market whether GRPO learns what it should and nothing else; ten seeds each.

    python scripts/grpo_proof.py [docs/results/grpo_signal_market.json [QUESTION ...]]

Questions: ``cases``, ``mixed``, ``length_bias``, ``recorded``. Answers to questions that are not
named are kept as the file has them. The curve is written beside it, as SVG. All take about a
minute of one processor; tests ask the same of a few seeds.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agent_gym.core.clock import SystemClock
from agent_gym.core.files import atomic_path, write_json
from agent_gym.core.manifest import describe
from agent_gym.core.seeds import Seeds
from agent_gym.reporting.canvas import FAINT, new_figure, svg_of
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.proof import (
    GROUPS,
    HELD_OUT,
    LEARNING,
    MEMBERS,
    Answer,
    Case,
    LengthBias,
    learn,
    length_bias,
)
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.grpo.signal_market import SignalMarket

SEEDS = 10
LOOKS = (0, 2, 4, 6, 8, 10, 15, 20, 30, 40, 50, 60)
LUCK = 6.0
T_975 = 2.262
"""Quantile of Student's t with nine degrees of freedom."""
CASES = {
    "std": Case(),
    "none": Case(config=LEARNING.model_copy(update={"scaling": "none"})),
    "batch": Case(config=LEARNING.model_copy(update={"scaling": "batch"})),
    "reward_to_go": Case(config=LEARNING.model_copy(update={"credit": "reward_to_go"})),
    "flipped": Case("flipped"),
    "constant": Case("constant"),
    "shuffled": Case("shuffled"),
}
RECORDED = {80: 10, 320: 40, 1000: 125}
"""Trajectories on record and the snapshots they are on."""


def main() -> None:
    """Run the study and write it."""
    torch.set_num_threads(1)
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results/grpo_signal_market.json")
    questions = {
        "cases": cases,
        "mixed": mixed,
        "length_bias": bias_of_length,
        "recorded": recorded,
    }
    config = {"training": LEARNING.model_dump(mode="json"), "groups": GROUPS, "members": MEMBERS}
    about = describe(
        argv=["python", "scripts/grpo_proof.py"],
        config=config,
        data={"held_out_snapshots": HELD_OUT},
        seeds=tuple(range(SEEDS)),
    )
    for name in sys.argv[2:] or questions:
        started = SystemClock().monotonic_s()
        answer = questions[name]()
        took = SystemClock().monotonic_s() - started
        sys.stdout.write(f"{name}: done ({took:.0f} s)\n")
        sys.stdout.flush()
        kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        write_json(target, kept | {"manifest": about.model_dump(mode="json"), name: answer})
    whole = json.loads(target.read_text(encoding="utf-8"))
    if "cases" in whole and "mixed" in whole:
        with atomic_path(target.with_suffix(".svg")) as path:
            path.write_bytes(curve(whole))


def cases() -> dict[str, Any]:
    """Every kind of advantage, and the three controls."""
    return {name: summary(answers(case)) for name, case in CASES.items()}


def answers(case: Case) -> list[Answer]:
    """Ask every seed."""
    return [learn(case, seed, LOOKS) for seed in range(SEEDS)]


def summary(found: list[Answer]) -> dict[str, Any]:
    """Return the figures of ten seeds; the interval is that of the mean gain, 95 %."""
    last = max(found[0].scores)
    ends = np.array([one.scores[last] for one in found])
    gains = np.array([one.expected[last] - one.expected[0] for one in found])
    half = T_975 * gains.std(ddof=1) / np.sqrt(len(found))
    return {
        "best": found[0].best,
        "worst": found[0].worst,
        "at_best": int(sum(one.scores[last] == one.best for one in found)),
        "at_worst": int(sum(one.scores[last] == one.worst for one in found)),
        "unchanged": int(sum(not one.result.changed for one in found)),
        "end_mean": float(ends.mean()),
        "gain_mean": float(gains.mean()),
        "gain_interval": [float(gains.mean() - half), float(gains.mean() + half)],
        "zero_share_last": float(np.mean([one.result.updates[-1].zero_share for one in found])),
        "seeds": [
            {
                "seed": one.seed,
                "model_before": one.result.model_before,
                "model_after": one.result.model_after,
                "greedy": {str(k): round(v, 6) for k, v in sorted(one.scores.items())},
                "expected": {str(k): round(v, 6) for k, v in sorted(one.expected.items())},
            }
            for one in found
        ],
    }


def mixed() -> dict[str, Any]:
    """Groups that share a snapshot against groups that do not, when snapshots differ in luck."""
    right, wrong = answers(Case(regime_sd=LUCK)), answers(Case("mixed", regime_sd=LUCK))
    at_10 = [(a.expected[10], b.expected[10]) for a, b in zip(right, wrong, strict=True)]
    return {
        "regime_sd": LUCK,
        "slower_seeds": int(sum(b < a for a, b in at_10)),
        "expected_at_10": {
            "same_snapshot": float(np.mean([a for a, _ in at_10])),
            "mixed_snapshots": float(np.mean([b for _, b in at_10])),
        },
        "same_snapshot": summary(right),
        "mixed_snapshots": summary(wrong),
    }


def bias_of_length() -> dict[str, Any]:
    """Chance of going on in the right and in the wrong branch, where it changes nothing."""
    game = LengthBias(groups=128)
    kinds = ("dr_grpo", "grpo")
    return {kind: [length_bias(kind, seed, game) for seed in range(SEEDS)] for kind in kinds}


def recorded() -> dict[str, Any]:
    """One recording of a fresh policy, gone through 60 times: how much is enough?"""
    return {str(size): [from_record(n, seed) for seed in range(5)] for size, n in RECORDED.items()}


def from_record(snapshots: int, seed: int) -> dict[str, float | None]:
    """Record once, train on it, and look at snapshots that it never saw."""
    market, seeds = SignalMarket(), Seeds(seed).child("recorded")
    learner = NeuralLearner(market.policy(seeds.child("policy")))
    drawn = market.snapshots(seeds.child("snapshots"), snapshots)
    batch = market.play(learner.policy, drawn, MEMBERS, seeds.child("play"))
    config = LEARNING.model_copy(update={"epochs": 60})
    result = GRPOTrainingService(config).train_on(learner, batch)
    held_out = market.snapshots(Seeds(0).child("held-out"), HELD_OUT)
    (update,) = result.updates
    return {
        "greedy": market.score(learner.policy, held_out),
        "best": market.best(held_out),
        "entropy": update.entropy,
        "clip_share": update.clip_share,
    }


def curve(whole: dict[str, Any]) -> bytes:
    """Draw the mean over ten seeds, with the range of the seeds behind it."""
    figure, panels = new_figure(920, 380, columns=2)
    left = {
        "true rewards": whole["cases"]["std"],
        "flipped rewards": whole["cases"]["flipped"],
        "shuffled rewards": whole["cases"]["shuffled"],
        "constant rewards": whole["cases"]["constant"],
    }
    right = {
        "groups of one snapshot": whole["mixed"]["same_snapshot"],
        "groups of mixed snapshots": whole["mixed"]["mixed_snapshots"],
    }
    colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
    for panel, lines in zip(panels, (left, right), strict=True):
        for (name, case), colour in zip(lines.items(), colours, strict=False):
            rows = [one["expected"] for one in case["seeds"]]
            at = sorted(int(k) for k in rows[0])
            values = np.array([[row[str(k)] for k in at] for row in rows])
            panel.plot(at, values.mean(axis=0), color=colour, lw=1.8, label=name)
            panel.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.12)
        for bound in ("best", "worst") if panel is panels[0] else ("best",):
            level = whole["cases"]["std"][bound]
            panel.axhline(level, color=FAINT, lw=0.9, ls=(0, (4, 3)))
            panel.annotate(f"{bound} {level:.2f}", (60, level), ha="right", va="bottom", size=10)
        panel.set_xlabel("updates")
        panel.legend(frameon=False, fontsize=10, loc="lower right", bbox_to_anchor=(1.0, 0.12))
    panels[0].set_ylabel("expected return, held-out snapshots")
    panels[0].set_title("What is learned from which rewards", loc="left", fontsize=12)
    panels[1].set_title("Why a group must share its snapshot", loc="left", fontsize=12)
    return svg_of(figure)


if __name__ == "__main__":
    main()
