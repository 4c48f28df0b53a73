"""The proof of the gate's error rates: how often it cries wolf, and how often it sleeps.

``python -m agent_gym.evaluation.gate.power --suites 3000 --out docs/results/gate_power.json``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy.special import betaincinv

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import write_json
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.shapes import HARDER, SHAPES
from agent_gym.evaluation.gate.study import (
    METRICS,
    NOISE,
    PATHS,
    TOLERANCE,
    Arm,
    Tally,
    ask,
    ask_controls,
)

SCHEMA = "agent_gym.gate_power/1"
LOSS = 0.05
MAX_FALSE_ALARM, MIN_POWER = 0.01, 0.95
CURVE = (0.01, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06, 0.08)
Say = Callable[[str], None]


def power_study(
    suites: int = 3_000,
    seed: int = 20_261_116,
    policy: GatePolicy | None = None,
    *,
    clock: Clock | None = None,
    say: Say | None = None,
) -> dict[str, Any]:
    """Ask the gate about suites whose truth is known and return its error rates.

    Args:
        suites: Suites for each shape and question; side questions use fewer.
        seed: Root of all randomness.
        policy: The gate to be tried; by default the one that is shipped.
        clock: Measures how long it took.
        say: Told what is done, line by line.
    """
    if suites < 1:
        raise ConfigError("a study needs at least one suite", found=suites)
    watch = clock or SystemClock()
    speak = say or (lambda _: None)
    asked, root = policy or GatePolicy(), Seeds(seed).child("gate power")
    shapes: dict[str, Any] = {}
    for shape in SHAPES:
        for correlated in (False, True):
            name = f"{shape}/{'correlated' if correlated else 'independent'}"
            began = watch.monotonic_s()
            arm = Arm(shape, correlated, policy=asked)
            shapes[name] = _one(arm, root.child(name), suites)
            shapes[name]["seconds"] = round(watch.monotonic_s() - began, 1)
            speak(f"{name}: {_line(shapes[name])}")
    side = max(suites // 5, 1)
    document = {
        "schema": SCHEMA,
        "suites": suites,
        "metrics": METRICS,
        "noise": NOISE,
        "baseline_variation": PATHS,
        "tolerance": TOLERANCE,
        "loss": LOSS,
        "seed": seed,
        "policy": asked.model_dump(mode="json"),
        "target": {"false_alarm_upper95": MAX_FALSE_ALARM, "power": MIN_POWER},
        "shapes": shapes,
        "controls": _controls(asked, root, side),
        "limits": _limits(asked, root, side, speak),
        "curve": _curve(asked, root, max(suites // 10, 1), speak),
    }
    document["meets_target"] = all(figures["meets_target"] for figures in shapes.values())
    return document


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact two-sided interval of a share.

    Example:
        >>> clopper_pearson(0, 100)[0], round(clopper_pearson(0, 100)[1], 4)
        (0.0, 0.0362)
    """
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1.0 - tail)) if hits < n else 1.0
    return low, high


def upper_bound(hits: int, n: int, level: float = 0.95) -> float:
    """Return the share that the truth does not exceed with this confidence (one-sided, exact).

    Example:
        >>> round(upper_bound(0, 3_000), 6)
        0.000998
    """
    return clopper_pearson(hits, n, 2.0 * level - 1.0)[1]


def _one(arm: Arm, seeds: Seeds, suites: int) -> dict[str, Any]:
    quiet = ask(arm, seeds.child("nothing changed"), suites)
    hurt = ask(replace(arm, loss=LOSS), seeds.child("one metric lost"), suites)
    interval = clopper_pearson(hurt.found, suites)
    bound = upper_bound(quiet.alarms, suites)
    return {
        "suites": suites,
        "false_alarms": quiet.alarms,
        "false_alarm": quiet.alarms / suites,
        "false_alarm_upper95": bound,
        "false_alarm_interval95": list(clopper_pearson(quiet.alarms, suites)),
        "false_praise": quiet.praised / suites,
        "power": hurt.found / suites,
        "power_interval95": list(interval),
        "wrongly_blamed": hurt.wrongly_blamed / suites,
        "flagged": quiet.flagged / suites,
        "fresh_seeds_per_flagged": quiet.fresh_seeds / max(quiet.flagged, 1),
        "underpowered_share": quiet.underpowered / (suites * METRICS),
        "meets_target": bound <= MAX_FALSE_ALARM and hurt.found / suites >= MIN_POWER,
    }


def _controls(policy: GatePolicy, root: Seeds, suites: int) -> dict[str, Any]:
    """Gates that are known to be bad, on the very suites of the first question."""
    found: dict[str, Any] = {}
    for shape in SHAPES:
        seeds = root.child(f"{shape}/independent").child("nothing changed")
        for name, tally in ask_controls(Arm(shape, policy=policy), seeds, suites).items():
            found.setdefault(name, {})[shape] = _alarm(tally)
    return found


def _limits(policy: GatePolicy, root: Seeds, suites: int, say: Say) -> dict[str, Any]:
    """Questions beyond the promise; the answers say where the gate stops being trustworthy."""
    strict = policy.model_copy(update={"null": "tolerance"})
    once = policy.model_copy(update={"repeat": False})
    found: dict[str, Any] = {}

    def put(name: str, arm: Arm, figure: str = "false_alarm") -> None:
        seeds = root.child(arm.shape, "correlated" if arm.correlated else "independent", name)
        tally = ask(arm, seeds, suites)
        hits = tally.found if figure == "power" else tally.alarms
        found.setdefault(name, {})[arm.shape] = {
            "suites": suites,
            figure: hits / suites,
            "interval95": list(clopper_pearson(hits, suites)),
        }

    for shape in (*SHAPES, *HARDER):
        arm = Arm(shape, policy=policy)
        put("nothing changed, no tolerance", replace(arm, tolerance=0.0))
        put(
            "nothing changed, no tolerance, confirmed once",
            replace(arm, tolerance=0.0, policy=once),
        )
        at_edge = replace(arm, loss=TOLERANCE, everywhere=True)
        put("every metric at its tolerance", at_edge)
        put("every metric at its tolerance, null tolerance", replace(at_edge, policy=strict))
        put("one metric lost 5 %, null tolerance", replace(arm, loss=LOSS, policy=strict), "power")
        put("one metric lost 5 %, confirmed once", replace(arm, loss=LOSS, policy=once), "power")
        say(f"limits of {shape} measured")
    for shape in HARDER:
        put("nothing changed", Arm(shape, policy=policy))
        put("one metric lost 5 %", Arm(shape, loss=LOSS, policy=policy), "power")
    return found


def _curve(policy: GatePolicy, root: Seeds, suites: int, say: Say) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for shape in SHAPES:
        found[shape] = []
        for loss in CURVE:
            tally = ask(Arm(shape, loss=loss, policy=policy), root.child("curve", shape), suites)
            low, high = clopper_pearson(tally.found, suites)
            power = tally.found / suites
            found[shape].append({"loss": loss, "power": power, "interval95": [low, high]})
    say("power against effect size measured")
    return found


def _alarm(tally: Tally) -> dict[str, Any]:
    return {
        "suites": tally.suites,
        "false_alarm": tally.alarms / tally.suites,
        "false_alarm_upper95": upper_bound(tally.alarms, tally.suites),
    }


def _line(figures: dict[str, Any]) -> str:
    return (
        f"false alarms {figures['false_alarm']:.4f} (at most {figures['false_alarm_upper95']:.4f}),"
        f" power {figures['power']:.4f}, flagged {figures['flagged']:.1f},"
        f" {figures['seconds']:.0f} s"
    )


def main(words: list[str] | None = None) -> int:
    """Run the study; 0 if it meets its target, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m agent_gym.evaluation.gate.power")
    parser.add_argument("--suites", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=20_261_116)
    parser.add_argument("--out", type=Path, default=None, help="JSON file to write")
    given = parser.parse_args(words)
    document = power_study(given.suites, given.seed, say=lambda text: _say(text))
    if given.out is not None:
        write_json(given.out, document)
    _say(f"target {'met' if document['meets_target'] else 'MISSED'}")
    return 0 if document["meets_target"] else 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
