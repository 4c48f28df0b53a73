"""Ask the learning layer every question of its study, seed by seed, and write the answers down.

    python scripts/desk_learning.py [docs/results/desk_learning.json [QUESTION ...]]

Answers to questions that are not named are kept as the file has them. All take some ten minutes;
tests ask the same questions of a few seeds.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent_gym.core.clock import SystemClock
from agent_gym.core.files import write_json
from agent_gym.core.manifest import describe
from agent_gym.evaluation.statistics import wilson
from agent_gym.training.desk import study
from agent_gym.training.desk.planted import PlantedLaw

TRUTH_SEEDS, NULL_SEEDS, EDGE_SEEDS, DRIFT_SEEDS, CALM_SEEDS = 10, 40, 5, 40, 20


def main() -> None:
    """Run the study and write it."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results/desk_learning.json")
    questions = {
        "truth": truth,
        "truth_10000": truth_10000,
        "drift": drift,
        "calm": calm,
        "shuffled": shuffled,
        "edge": edge,
        "null": null,
    }
    config = {"training": study.LASTING.model_dump(mode="json")}
    about = describe(argv=["python", "scripts/desk_learning.py"], config=config, data={})
    for name in sys.argv[2:] or questions:
        started = SystemClock().monotonic_s()
        answer = questions[name]()
        took = SystemClock().monotonic_s() - started
        sys.stdout.write(f"{name}: {answer['summary']} ({took:.0f} s)\n")
        sys.stdout.flush()
        kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        write_json(target, kept | {"manifest": about.model_dump(mode="json"), name: answer})


def truth(n: int = 16_000) -> dict[str, Any]:
    """Known law: how near to who knows it?"""
    found = [study.truth(seed, n) for seed in range(TRUTH_SEEDS)]
    return {
        "seeds": found,
        "summary": {
            "signals": n,
            "ece_mean": sum(f["ece"] for f in found) / TRUTH_SEEDS,
            "auc_gap_max": max(f["bayes_auc"] - f["auc"] for f in found),
            "ece_max": max(f["ece"] for f in found),
            "utility_share_min": min(f["utility_share"] for f in found),
        },
    }


def truth_10000() -> dict[str, Any]:
    """The same from fewer signals."""
    return truth(10_000)


def null() -> dict[str, Any]:
    """No law: the whole loop over a history and four weeks of signals."""
    runs = []
    for seed in range(NULL_SEEDS):
        share = study.NULL_SHARES[seed % len(study.NULL_SHARES)]
        with tempfile.TemporaryDirectory() as folder:
            statuses = study.loop_statuses(seed, PlantedLaw.null(share), Path(folder))
        runs.append({"seed": seed, "win_share": share, "statuses": statuses})
    promoted = sum("promoted" in run["statuses"] for run in runs)
    passed = sum("shadow" in run["statuses"] for run in runs)
    return {
        "seeds": runs,
        "summary": {
            "promoted": promoted,
            "of": NULL_SEEDS,
            "share_high95": wilson(promoted, NULL_SEEDS).high,
            "reached_shadow": passed,
        },
    }


def shuffled() -> dict[str, Any]:
    """A law whose outcomes were dealt out anew: does the test part let it pass?"""
    runs = [
        {"seed": seed, "passed": study.shuffled_ruling(seed).passed} for seed in range(NULL_SEEDS)
    ]
    passed = sum(bool(run["passed"]) for run in runs)
    return {"seeds": runs, "summary": {"passed": passed, "of": NULL_SEEDS}}


def edge() -> dict[str, Any]:
    """A real edge: does it come into office?"""
    runs = []
    for seed in range(EDGE_SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            statuses = study.loop_statuses(seed, PlantedLaw(), Path(folder))
        runs.append({"seed": seed, "statuses": statuses})
    promoted = sum("promoted" in run["statuses"] for run in runs)
    return {"seeds": runs, "summary": {"promoted": promoted, "of": EDGE_SEEDS}}


def drift() -> dict[str, Any]:
    """A law that turns round: how many signals until an alarm?"""
    found = [study.drift_delay(seed) for seed in range(DRIFT_SEEDS)]
    delays = sorted(f["delay"] for f in found if f["delay"] is not None)
    return {
        "seeds": found,
        "summary": {
            "found": len(delays),
            "of": DRIFT_SEEDS,
            "within_150": sum(delay <= 150 for delay in delays),
            "median": delays[len(delays) // 2] if delays else None,
            "max": delays[-1] if delays else None,
        },
    }


def calm() -> dict[str, Any]:
    """A law that stays: how many alarms in 5,000 signals?"""
    found = [study.false_alarms(seed) for seed in range(CALM_SEEDS)]
    alarms = sum(len(f["alarms"]) for f in found)
    signals = sum(f["signals"] for f in found)
    return {
        "seeds": found,
        "summary": {
            "alarms": alarms,
            "signals": signals,
            "per_5000": 5000.0 * alarms / signals,
        },
    }


if __name__ == "__main__":
    main()
