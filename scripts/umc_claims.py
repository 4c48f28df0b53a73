"""Measure what is said of the parts of UMC; controls are beside them here or in the tests.

    python scripts/umc_claims.py [--out docs/results/umc_claims.json] [--only NAME ...]

The gates (``agent-gym umc gates``) judge the trader; this judges the parts it is made of: how near
the recurrent model comes to the exact filter, the macrostates to the filter that knows their law,
how often noise is said to have cycles, what evolution and the mixture of a crowd do.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest, t

from agent_gym.agents.echo import EchoConfig, EchoPopulation
from agent_gym.agents.umc.macro import MacrostateDetector
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.agents.umc.tiers.yardsticks import HiddenLevel, shortfall
from agent_gym.apps.cli.workspace import source_commit
from agent_gym.core.clock import SystemClock
from agent_gym.core.files import write_json
from agent_gym.core.manifest import describe, fingerprint
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive import ReflexiveConfig, simulate
from agent_gym.evaluation.reflexive.empowerment import market_empowerment

TARGET = Path("docs/results/umc_claims.json")
YEAR = 8_760
CLOCK = SystemClock()
LAST_BARS, COST = 199, 5e-4
EITHER = np.full((3, 3), 0.01) + 0.97 * np.eye(3)
MEANS = np.array([[-1.0, -0.6, 0.4, 0.5], [0.0, 0.0, -0.8, -0.6], [1.0, 0.6, 0.2, 0.3]])
VARIANCES = np.array([[0.8, 0.8, 0.5, 0.8], [0.4, 0.4, 0.3, 0.6], [0.8, 0.8, 0.4, 0.8]])
LAWS = {"clear": Hmm(EITHER, MEANS, VARIANCES), "faint": Hmm(EITHER, 0.4 * MEANS, np.ones((3, 4)))}


def main() -> None:
    """Measure what was asked for and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--only", nargs="*", choices=sorted(CLAIMS), default=sorted(CLAIMS))
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    for name in chosen.only:
        began = CLOCK.monotonic_s()
        found[name] = CLAIMS[name]()
        took = CLOCK.monotonic_s() - began
        sys.stdout.write(f"{name}: {found[name]['says']} ({took:.0f} s)\n")
        sys.stdout.flush()
    argv = ["python", "scripts/umc_claims.py", "--only", *chosen.only]
    manifest = describe(
        argv=argv, config={"claims": chosen.only}, data={}, seeds=(0,), commit=source_commit()
    )
    payload = {"claims": found, "manifest": manifest.model_dump(mode="json")}
    write_json(chosen.out, payload | {"hash": fingerprint(found)})


def recurrent_model() -> dict[str, Any]:
    """Log score of the recurrent tier below the exact Kalman filter on linear-Gaussian data."""
    gap = shortfall(Ref(use="umc/recurrent"), HiddenLevel(), range(5))
    worst = max(gap.shortfalls)
    return {
        "nats_a_bar": list(gap.shortfalls),
        "mean": gap.mean,
        "standard_error": gap.error,
        "lead_of_the_exact_filter": gap.lead,
        "bound": 0.02,
        "passed": worst <= 0.02,
        "says": f"{gap.mean:.4f} nats a bar below exact, at most {worst:.4f} (bound .02)",
    }


def macrostates() -> dict[str, Any]:
    """Accuracy of the fitted filter over that of the one with the true parameters."""
    rows = {name: [_ratio(law, seed) for seed in range(100, 120)] for name, law in LAWS.items()}
    least = min(min(ratios) for ratios in rows.values())
    return {
        "ratios": rows,
        "seeds": "100 to 119",
        "bound": 0.95,
        "passed": least >= 0.95,
        "says": f"at least {least:.3f} of the filter that knows the law (bound .95)",
    }


def cycles_in_noise() -> dict[str, Any]:
    """How many seeds of independent noise have no significant cycle."""
    free = 0
    for seed in range(1_000, 1_100):
        rows = Seeds(seed).child("iid").rng().standard_normal((2_000, 4))
        detector = MacrostateDetector()
        detector.fit(rows, Seeds(seed))
        free += not detector.cycles(rows, Seeds(seed)).significant
    interval = binomtest(free, 100).proportion_ci(method="wilson")
    return {
        "seeds": "1000 to 1099",
        "without_a_cycle": free,
        "of": 100,
        "low": interval.low,
        "high": interval.high,
        "bound": 0.95,
        "passed": free >= 95,
        "says": f"{free} of 100 seeds of noise without a significant cycle (bound 95)",
    }


def evolution() -> dict[str, Any]:
    """Growth that evolution adds on bars it has not seen, on waves and on a walk."""
    found: dict[str, Any] = {}
    for search in ("cma", "map_elites"):
        waves, noise = [], []
        for seed in range(20):
            for path, gains in ((_waves(seed), waves), (_walk(seed), noise)):
                gains.append(_late(path, search, 200, seed) - _late(path, search, None, seed))
        found[search] = {"planted": _mean(waves), "walk": _mean(noise)}
    passed = all(each["planted"]["low"] > 0.0 for each in found.values())
    gains = ", ".join(f"{name} {each['planted']['mean']:+.3f}" for name, each in found.items())
    return found | {"passed": passed, "says": f"growth gained on planted waves: {gains}"}


def mixture() -> dict[str, Any]:
    """Lag-one autocorrelation with three times the weight of a family, paired by seed."""
    weights = {family.value: share for family, share in EchoConfig().weights.items()}
    base = [_lag_one(weights, seed) for seed in range(20)]
    found: dict[str, Any] = {}
    for family, sign in (("momentum", 1.0), ("market_maker", -1.0)):
        more = weights | {family: 3.0 * weights[family]}
        changed = [_lag_one(more, seed) for seed in range(20)]
        row = _mean([b - a for a, b in zip(base, changed, strict=True)])
        row["passed"] = (row["low"] if sign > 0.0 else -row["high"]) > 0.0
        found[family] = row
    said = ", ".join(f"{name} {row['mean']:+.3f}" for name, row in found.items())
    passed = all(row["passed"] for row in found.values())
    return found | {"passed": passed, "says": f"change of the autocorrelation: {said}"}


def empowerment() -> dict[str, Any]:
    """Nats that returns say about random own orders, where these move prices and in a replay."""
    config = ReflexiveConfig(bars=2_000, crowd=Ref(use="echo", params={"size": 40}))
    found = [market_empowerment(config, Seeds(seed)) for seed in range(20)]
    moved = _mean([each.moved.nats for each in found])
    replay = _mean([each.replay.nats for each in found])
    return {
        "moved": moved,
        "replay": replay,
        "passed": moved["low"] > 0.0 >= replay["low"],
        "says": f"{moved['mean']:.4f} nats a bar where orders move prices, "
        f"{replay['mean']:.4f} in a replay",
    }


def echo_speed() -> dict[str, Any]:
    """Seconds for 100 echoes, with evolution, over a year of hours; the best of three."""
    config = ReflexiveConfig(bars=YEAR, crowd=Ref(use="echo", params={"size": 100}))
    simulate(config.model_copy(update={"bars": 600}), Seeds(0))
    seconds = []
    for seed in range(3):
        began = CLOCK.monotonic_s()
        simulate(config, Seeds(seed))
        seconds.append(CLOCK.monotonic_s() - began)
    return {
        "seconds": seconds,
        "best": min(seconds),
        "passed": min(seconds) < 4.0,
        "says": f"100 echoes over {YEAR:,} bars in {min(seconds):.1f} s (about 3)",
    }


def _ratio(law: Hmm, seed: int) -> float:
    rng = Seeds(seed).child("planted").rng()
    draws, ladder = rng.random(6_000), law.transition.cumsum(axis=1)
    states = np.zeros(6_000, dtype=np.int64)
    for i in range(1, 6_000):
        states[i] = min(int(np.searchsorted(ladder[states[i - 1]], draws[i])), 2)
    rows = law.means[states] + np.sqrt(law.variances[states]) * rng.standard_normal((6_000, 4))
    detector = MacrostateDetector()
    detector.fit(rows[:4_000], Seeds(seed))
    memory = detector.begin()
    detector.filter(rows[:4_000], memory)
    guess = detector.filter(rows[4_000:], memory).argmax(axis=1)
    known = law.filtered(rows, law.shares())[0][4_000:].argmax(axis=1)
    return _accuracy(guess, states[4_000:]) / _accuracy(known, states[4_000:])


def _accuracy(guess: Any, truth: Any) -> float:
    table = np.zeros((int(guess.max()) + 1, int(truth.max()) + 1))
    np.add.at(table, (guess, truth), 1.0)
    return float(table[linear_sum_assignment(-table)].sum() / truth.size)


def _waves(seed: int) -> FloatArray:
    noise = Seeds(seed).child("waves").rng().normal(0.0, 1e-4, 1_600)
    waved: FloatArray = 0.05 * np.sin(2.0 * np.pi * np.arange(1_600) / 100) + noise
    return waved


def _walk(seed: int) -> FloatArray:
    return np.cumsum(Seeds(seed).child("walk").rng().normal(0.0, 0.005, 1_600))


def _late(path: FloatArray, search: str, every: int | None, seed: int) -> float:
    """Return what momentum echoes gain after costs on bars that no generation has seen."""
    config = EchoConfig.model_validate(
        {
            "size": 20,
            "weights": {"momentum": 1.0},
            "evolution": search,
            "evolve_every_bars": every,
            "window_bars": 200,
            "candidates": 12,
            "seed": seed,
        }
    )
    crowd = EchoPopulation(config)
    crowd.begin(float(path[0]), 0.005, Seeds(seed))
    gained, held = [], np.zeros(20)
    for before, close in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
        crowd.decide()
        holds = crowd.positions.copy()
        gained.append(float(np.mean(holds * (close - before) - COST * np.abs(holds - held))))
        held = holds
        crowd.settle(close, max(before, close), min(before, close), 0.0, before)
    return float(np.sum(gained[-LAST_BARS:]))


def _lag_one(weights: dict[str, float], seed: int) -> float:
    params = {"size": 40, "evolve_every_bars": None, "weights": weights}
    config = ReflexiveConfig(bars=2_000, crowd=Ref(use="echo", params=params))
    close = simulate(config, Seeds(seed)).bars.close
    returns = np.diff(np.log(close))
    return float(np.corrcoef(returns[1:], returns[:-1])[0, 1])


def _mean(values: list[float]) -> dict[str, Any]:
    mean, n = float(np.mean(values)), len(values)
    reach = float(t.isf(0.025, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "values": values}


CLAIMS: dict[str, Callable[[], dict[str, Any]]] = {
    "recurrent_model": recurrent_model,
    "macrostates": macrostates,
    "cycles_in_noise": cycles_in_noise,
    "evolution": evolution,
    "mixture": mixture,
    "echo_speed": echo_speed,
    "empowerment": empowerment,
}

if __name__ == "__main__":
    main()
