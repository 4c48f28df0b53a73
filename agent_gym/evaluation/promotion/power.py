"""The proof of the gate's and the monitor's error rates, with bad rules beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any, TypeAlias

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate.shapes import SHAPES
from agent_gym.evaluation.promotion.monitor import MonitorPolicy
from agent_gym.evaluation.promotion.policy import PromotionPolicy
from agent_gym.evaluation.promotion.study import (
    NOISE,
    PATHS,
    SLICES,
    Arm,
    ask_families,
    ask_gate,
    ask_monitor,
    peeking_z,
    share_of_best,
)
from agent_gym.evaluation.statistics import wilson

SCHEMA = "agent_gym.promotion_gate/1"
LOOKS, FAMILY = 200, 10
EFFECTS = (0.2, 0.35, 0.5, 0.65, 0.8, 1.0)
MAX_FALSE, MIN_POWER, EFFECT, PAIRS = 0.05, 0.7, 0.5, 30
MAX_ROLLBACK, HARM, MAX_MEDIAN = 0.01, -0.6, 40
HARMS = (-0.3, HARM)
# Beyond the promise: rare losses so large that twenty pairs hardly ever show one.
BEYOND = "left_lognormal"
FAMILIES = ("normal", "left_skew")
# Intervals are told and decide nothing, so they may be rough here.
POLICY, MONITOR = PromotionPolicy(reps=50), MonitorPolicy()
Say: TypeAlias = Callable[[str], None]
Question: TypeAlias = tuple[str, ...]


def promotion_study(
    runs: int = 2_000, seed: int = 20_261_116, *, workers: int = 1, say: Say | None = None
) -> dict[str, Any]:
    """Ask the gate and the monitor questions whose answers are known; return how often they erred.

    Args:
        runs: Simulated candidates and rollouts for each of the main questions; others use fewer.
        seed: Root of all randomness.
        workers: Processes; every question draws from its own node, so they change no figure.
        say: Told what is done, line by line.
    """
    if runs < 1:
        raise ConfigError("a study needs at least one run", found=runs)
    speak, asked = say or (lambda _: None), _questions()
    answers: dict[Question, Any] = {}
    for question, answer in zip(asked, _asked(asked, runs, seed, workers), strict=True):
        answers[question] = answer
        speak(f"{' '.join(question)}: {_told(question[0], answer)}")
    document = {
        "schema": SCHEMA,
        "runs": runs,
        "seed": seed,
        "noise": NOISE,
        "champion_variation": PATHS,
        "policy": POLICY.model_dump(mode="json"),
        "monitor": MONITOR.model_dump(mode="json"),
        "target": {
            "false_promotion": MAX_FALSE,
            "power": {"effect": EFFECT, "pairs": PAIRS, "at_least": MIN_POWER},
            "false_rollback": {"looks": LOOKS, "at_most": MAX_ROLLBACK},
            "harm": {"effect": HARM, "median_episodes": MAX_MEDIAN},
        },
        "false_promotion": {
            shape: answers["false promotion", shape] for shape in (*SHAPES, BEYOND)
        },
        "families": {"candidates": FAMILY}
        | {shape: answers["families", shape] for shape in FAMILIES},
        "power": {
            "curve": {
                str(pairs): [answers["power", str(pairs), str(effect)] for effect in EFFECTS]
                for pairs in SLICES
            },
            "shapes": {shape: answers["power of", shape] for shape in SHAPES},
        },
        "rollback": {
            "looks": LOOKS,
            "shapes": {
                shape: {
                    "false_rollback": answers["false rollback", shape],
                    "harm": {str(harm): answers["harm", shape, str(harm)] for harm in HARMS},
                }
                for shape in SHAPES
            },
        },
        "controls": answers["controls",],
    }
    document["meets_target"] = _meets(document)
    return document


def share(hits: int, n: int) -> dict[str, Any]:
    """Return a share with Wilson's bounds."""
    found = wilson(hits, n)
    return {"share": found.estimate, "low": found.low, "high": found.high, "hits": hits, "n": n}


def _questions() -> list[Question]:
    """Return every question, the long ones first."""
    return [
        *(("false rollback", shape) for shape in SHAPES),
        *(("power of", shape) for shape in SHAPES),
        *(("families", shape) for shape in FAMILIES),
        *(("power", str(pairs), str(effect)) for pairs in SLICES for effect in EFFECTS),
        *(("false promotion", shape) for shape in (*SHAPES, BEYOND)),
        *(("harm", shape, str(harm)) for shape in SHAPES for harm in HARMS),
        ("controls",),
    ]


def _asked(questions: list[Question], runs: int, seed: int, workers: int) -> Iterator[Any]:
    answer = partial(_answer, runs, seed)
    if workers == 1:
        yield from map(answer, questions)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(answer, questions)


def _answer(runs: int, seed: int, question: Question) -> Any:
    """Return the answer to one question; it depends on nothing but these three."""
    name, *rest = question
    seeds, fewer = Seeds(seed).child("promotion study", *question), max(runs // 4, 1)
    if name == "false promotion":
        return _false(rest[0], seeds, runs)
    if name == "families":
        return _families(rest[0], seeds, max(runs // 5, 1))
    if name == "power":
        return _power(Arm("normal", float(rest[1]), int(rest[0])), seeds, fewer)
    if name == "power of":
        return _power(Arm(rest[0], EFFECT, PAIRS), seeds, fewer)["first_candidate"]
    if name == "false rollback":
        return share(_ended(ask_monitor(Arm(rest[0], 0.0, LOOKS), seeds, runs, MONITOR)), runs)
    if name == "harm":
        return _harm(Arm(rest[0], float(rest[1]), LOOKS), seeds, fewer)
    return _controls(seeds, runs)


def _false(shape: str, seeds: Seeds, runs: int) -> dict[str, Any]:
    tally = ask_gate(Arm(shape), seeds, runs, POLICY)
    return {
        "pairs": 20,
        "first_candidate": share(tally.promoted, runs),
        "test_at_5_percent": share(tally.at_nominal, runs),
        "sign_flip_alone_at_5_percent": share(tally.flip_alone, runs),
    }


def _families(shape: str, seeds: Seeds, families: int) -> dict[str, Any]:
    spent, unspent = ask_families(shape, seeds, families, FAMILY, POLICY)
    return {
        "alpha_spent": share(spent, families),
        "every_candidate_at_5_percent": share(unspent, families),
    }


def _power(arm: Arm, seeds: Seeds, runs: int) -> dict[str, Any]:
    tally = ask_gate(arm, seeds, runs, POLICY)
    return {
        "effect": arm.effect,
        "first_candidate": share(tally.promoted, runs),
        "test_at_5_percent": share(tally.at_nominal, runs),
    }


def _harm(arm: Arm, seeds: Seeds, runs: int) -> dict[str, Any]:
    ended = ask_monitor(arm, seeds, runs, MONITOR)
    return {
        "found": share(_ended(ended), runs),
        "median_episodes": median(LOOKS + 1 if end is None else end for end in ended),
    }


def _controls(root: Seeds, runs: int) -> dict[str, Any]:
    """Rules that are known to be bad."""
    best = {
        f"{100 * loss:g} % worse, run sd {100 * spread:g} %": share(
            share_of_best(root.child("best", str(loss), str(spread)), runs, loss, spread), runs
        )
        for loss in (0.0, 0.1, 0.2)
        for spread in (0.05, 0.1)
    }
    return {
        "peeking_z_false_rollback": share(peeking_z(root.child("z"), runs, LOOKS), runs),
        "deployed_by_95_percent_of_best_on_one_run": best,
    }


def _meets(document: dict[str, Any]) -> bool:
    false = [document["false_promotion"][shape]["first_candidate"]["share"] for shape in SHAPES]
    family = document["families"]["normal"]["alpha_spent"]["share"]
    power = document["power"]["shapes"]["normal"]["share"]
    watched = document["rollback"]["shapes"]
    rollback = [watched[shape]["false_rollback"]["share"] for shape in SHAPES]
    medians = [watched[shape]["harm"][str(HARM)]["median_episodes"] for shape in SHAPES]
    kept = (
        max(*false, family) <= MAX_FALSE,
        power >= MIN_POWER,
        max(rollback) <= MAX_ROLLBACK,
        max(medians) <= MAX_MEDIAN,
    )
    return all(kept)


def _ended(ends: Sequence[int | None]) -> int:
    return sum(end is not None for end in ends)


def _told(name: str, answer: Any) -> str:
    told = {"families": "alpha_spent", "harm": "found", "controls": "peeking_z_false_rollback"}
    told |= dict.fromkeys(("false promotion", "power"), "first_candidate")
    found = answer[told[name]] if name in told else answer
    median_of = f", median {answer['median_episodes']:g} episodes" if name == "harm" else ""
    return f"{found['share']:.4f} [{found['low']:.4f}, {found['high']:.4f}]{median_of}"
