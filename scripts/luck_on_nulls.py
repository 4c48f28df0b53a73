"""How good rules look where there is nothing to earn; and what pairing seeds is worth.

``python -m scripts.luck_on_nulls`` writes docs/results/luck_on_nulls.json and two pictures into
docs/images (minutes). The pages why_null_markets and why_paired_seeds tell its figures.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from agent_gym.core.files import write_json
from agent_gym.core.registry import Ref, names
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.markets.source import open_market

DOCS = Path(__file__).resolve().parent.parent / "docs"
NULLS, PATHS, BARS, PAIRS, SHORT = ("known/n1", "known/n2"), 200, 8_760, 40, 2_000
HELD = BacktestConfig(allow_short=True)


def luck(market: str, paths: int) -> dict[str, Any]:
    """Return how the Sharpe ratios of all rules are spread over paths of a null."""
    rules = [name for name in names("agent") if name.startswith("rules/") and "flat" not in name]
    found = np.zeros((paths, len(rules)))
    for path in range(paths):
        bars = open_market(Ref(use=market, params={"n_bars": BARS}), Seeds(path))
        for column, rule in enumerate(rules):
            result = BacktestEngine(HELD).run(bars, Ref(use=rule), seed=path)
            found[path, column] = result.metrics.sharpe or 0.0
    best = found.max(axis=1)
    return {
        "market": market,
        "paths": paths,
        "bars": BARS,
        "rules": {
            rule: {
                "mean": float(found[:, column].mean()),
                "above_1": float((found[:, column] > 1).mean()),
                "largest": float(found[:, column].max()),
            }
            for column, rule in enumerate(rules)
        },
        "best_of_all": {
            "mean": float(best.mean()),
            "above_1": float((best > 1).mean()),
            "above_2": float((best > 2).mean()),
        },
        "sharpe": found.round(4).tolist(),
    }


def growth(params: dict[str, Any], costs: dict[str, Any], seeds: range) -> Any:
    """Return the return in percent of an SMA crossover on short paths of known/m1."""
    found = []
    for seed in seeds:
        bars = open_market(Ref(use="known/m1", params={"n_bars": SHORT}), Seeds(seed))
        engine = BacktestEngine(BacktestConfig(**costs))
        result = engine.run(bars, Ref(use="rules/sma-cross", params=params))
        found.append(100 * result.metrics.total_return)
    return np.array(found)


def draw_luck(found: dict[str, Any], target: Path) -> None:
    """Draw one rule, and the best of all rules, over the paths of a null."""
    all_of_them = np.array(found["sharpe"])
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    places = np.linspace(-4, 4, 41).tolist()
    one = all_of_them[:, list(found["rules"]).index("rules/sma-cross")]
    axes.hist(one, places, alpha=0.6, label="rules/sma-cross")
    axes.hist(all_of_them.max(axis=1), places, alpha=0.6, label="best of eight rules")
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xlabel=f"Sharpe ratio of a year on {found['market']}", ylabel="paths")
    axes.legend(frameon=False)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def draw_pairs(target: Path) -> None:
    """Draw what a fee of 11 in place of 10 bp costs: by other seeds, and by the same ones."""
    before = growth({}, {}, range(PAIRS))
    same = growth({}, {"taker_bps": 11.0}, range(PAIRS)) - before
    other = growth({}, {"taker_bps": 11.0}, range(PAIRS, 2 * PAIRS)) - before
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for axes, values, title in ((left, other, "other seeds"), (right, same, "the same seeds")):
        axes.hist(values, 20)
        axes.axvline(0, color="black", linewidth=1)
        axes.set(title=title, xlabel="difference in percent")
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def main() -> int:
    """Measure, write and draw."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "agent-gym"
    found = {market: luck(market, PATHS) for market in NULLS}
    draw_luck(found[NULLS[0]], DOCS / "images" / "luck_on_nulls.svg")
    draw_pairs(DOCS / "images" / "paired_seeds.svg")
    told = {
        market: {name: part for name, part in one.items() if name != "sharpe"}
        for market, one in found.items()
    }
    write_json(DOCS / "results" / "luck_on_nulls.json", told)
    for market, one in told.items():
        sys.stdout.write(f"{market}: {one['best_of_all']}\n")
        for rule, part in one["rules"].items():
            sys.stdout.write(f"  {rule}: {part}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
