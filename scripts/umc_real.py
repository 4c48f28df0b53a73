"""Walk UMC forward over real bars and write down what comes out, whatever it is.

    python scripts/umc_real.py [--data ../shared/data] [--out docs/results] [--jobs 2]

Each walk is one command that anybody can give; its trials are registered in a registry of their
own, so the count of trials behind DSR is that of this page.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from agent_gym.core.errors import AgentGymError
from agent_gym.core.files import write_json, write_text


class Walk(NamedTuple):
    """A file of bars, what is said of it, and the words of the command."""

    title: str
    file: str
    words: tuple[str, ...]


FUNDING = "BTCUSDT_perp_funding_8h_2019-2024.parquet"
WALKS = {
    "real1h": Walk(
        "Hours of BTCUSDT spot, 2018 to 2024",
        "BTCUSDT_spot_1h_2018-2024.parquet",
        ("--gaps", "keep", "--lockbox", "60d"),
    ),
    "real1m": Walk(
        "Minutes of BTCUSDT perpetual, 2024",
        "BTCUSDT_perp_1m_2024.parquet",
        (
            *("--gaps", "keep", "--kind", "perpetual", "--funding", FUNDING),
            *("--echo-size", "0", "--lockbox", "30d", "--tiers", "exact"),
        ),
    ),
}
KEPT = ("lockbox", "manifest", "market", "protocol", "tiers", "lambda", "spa")
OF_ARMS = ("label", "net_bp_per_bar", "gross_bp_per_bar", "p_random", "verdict", "equity_hash")
OF_STANDINGS = ("psr", "dsr", "pbo", "trials", "effective_trials")
HEADS = ("arm", "net", "95 %", "PSR", "DSR", "p of random timing")
INTRODUCTION = """# UMC on real bars

Walk-forward with the trial registry: each fold learns from its past alone, in one account, beside
baselines with the same costs and timing (taker 10 bp, slippage 1 bp, half spread .5 bp). The last
stretch was held out and not opened. Both walks are made again by `make umc-real`. Trials behind DSR
are those of the walk itself, baselines and their grid among them; earlier versions of the agent,
which were walked over the same bars, are not counted, so DSR is rather too high.
"""


def main() -> None:
    """Walk over every file, then write the page and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    found = {name: walked(walk, asked.data, asked.jobs) for name, walk in WALKS.items()}
    write_json(asked.out / "umc_real.json", found)
    parts = [section(WALKS[name], report) for name, report in found.items()]
    write_text(asked.out / "umc_real.md", "\n".join([INTRODUCTION, *parts]))


def walked(walk: Walk, data: Path, jobs: int) -> dict[str, Any]:
    """Give the command and return what it prints, with the command as a reader would give it."""
    words = tuple(str(data / word) if word == FUNDING else word for word in walk.words)
    command = ("umc", "backtest", "--data", str(data / walk.file), *words)
    program = Path(sys.executable).with_name("agent-gym")
    with tempfile.TemporaryDirectory() as folder:
        own = ("--registry", f"{folder}/trials.jsonl", "--out", f"{folder}/run")
        done = subprocess.run(
            [program, *command, *own, "--jobs", str(jobs), "--json"],
            stdout=subprocess.PIPE,
            check=False,
        )
    if done.returncode:
        raise AgentGymError("a walk failed", where=walk.title, found=f"exit code {done.returncode}")
    report = json.loads(done.stdout)
    shown = " ".join(("agent-gym", "umc", "backtest", "--data", walk.file, *walk.words))
    return {key: report[key] for key in KEPT} | {
        "arms": [kept(arm) for arm in report["arms"]],
        "command": shown,
        "folds": len(report["folds"]),
        "tested_bars": report["market"]["bars"],
    }


def kept(arm: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of an arm that are published; one without returns has no standing."""
    standing = arm["standing"] or dict.fromkeys(OF_STANDINGS)
    own = {name: arm[name] for name in OF_ARMS}
    return own | {name: standing[name] for name in OF_STANDINGS}


def section(walk: Walk, report: dict[str, Any]) -> str:
    """Return what is said of one walk."""
    rows = [HEADS, ("---",) * len(HEADS), *(row(arm) for arm in report["arms"])]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    umc = report["arms"][0]
    verdict = umc["verdict"]
    return f"""## {walk.title}

    {report["command"]}

{report["folds"]} folds, {report["tested_bars"]:,} tested bars. Net is basis points of log growth
a bar.

{table}

PBO {number(umc["pbo"])}. Verdict: **{verdict["word"]}** ({verdict["why"]}).
"""


def row(arm: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of an arm."""
    net = arm["net_bp_per_bar"]
    figures = (arm[name] for name in ("psr", "dsr", "p_random"))
    ends = f"{net['low']:.3f} to {net['high']:.3f}"
    return (arm["label"], f"{net['estimate']:.3f}", ends, *map(number, figures))


def number(value: float | None) -> str:
    """Return three digits, or a dash for what is not known."""
    return "-" if value is None else f"{value:.3g}"


if __name__ == "__main__":
    main()
