"""Ask how often the loop promotes what has learned nothing.

    python scripts/loop_controls.py [--out docs/results/loop_controls.json] [--seeds 20]

Small first runs of the loop, half of them with shuffled rewards, each in a folder of its own with
its own snapshots. Shuffled rewards teach nothing, so the gains of those runs must lie around zero
or below; but noise moves a policy somewhere, now and then to a place that is better than holding
nothing, and then the gate, which judges models and not how they were made, is right to say so.
A run that is done is kept (in ``loop_controls`` of the folder of results) and not done again.
"""

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np

from agent_gym.core.files import home, write_json
from agent_gym.core.manifest import describe, fingerprint
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.listening import Silence
from agent_gym.pipeline.harness.options import HarnessOptions
from agent_gym.pipeline.harness.run import run_harness
from agent_gym.pipeline.harness.workspace import LoopFolder

TARGET = Path("docs/results/loop_controls.json")
SIZE = HarnessOptions(agents=2, snapshots=10, repeats=5, rounds=2, sealed=35, force=True, workers=1)
ARMS = ("true", "shuffled")
AT_A_TIME = 2
RESAMPLES = 10_000


def main() -> None:
    """Run what is not done, and write what all runs found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--one", nargs=2, metavar=("ARM", "SEED"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        play(chosen.one[0], int(chosen.one[1]))
        return
    jobs = [(arm, seed) for seed in range(chosen.seeds) for arm in ARMS]
    waiting = [job for job in jobs if not kept(*job).exists()]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        codes = list(pool.map(start, waiting))
    if any(codes):
        sys.exit(f"{sum(map(bool, codes))} runs failed; run again to go on from where they were")
    write_results(chosen.out, chosen.seeds)


def start(job: tuple[str, int]) -> int:
    """Do one run in a process of its own."""
    arm, seed = job
    return run([sys.executable, __file__, "--one", arm, str(seed)], check=False).returncode


def options(arm: str, seed: int) -> HarnessOptions:
    """Return the settings of a run."""
    return SIZE.model_copy(update={"seed": seed, "shuffle_rewards": arm == "shuffled"})


def kept(arm: str, seed: int) -> Path:
    """Return where a run keeps what it found; other settings have another place."""
    key = fingerprint(options(arm, seed).model_dump(mode="json"))[:12]
    return home() / "loop_controls" / f"{arm}-{seed}-{key}.json"


def play(arm: str, seed: int) -> None:
    """Do one run, and keep its verdict."""
    target = kept(arm, seed)
    folder = target.with_suffix(".folder")
    shutil.rmtree(folder, ignore_errors=True)
    job = run_harness(options(arm, seed), LoopFolder(folder), Silence()).job
    if job is None:
        sys.exit("nothing was trained")
    checks = {one["name"]: one for one in job.stages["verdict"]["checks"]}
    found = checks["superiority"]["figures"]
    write_json(
        target,
        {
            "arm": arm,
            "seed": seed,
            "ending": job.ending,
            "gain": found["mean"],
            "p": found["p"],
            "failed": [name for name, one in checks.items() if not one["passed"]],
        },
    )
    shutil.rmtree(folder)
    sys.stdout.write(f"{arm:9} seed {seed:3}  {found['mean']:+.3f}  {job.ending}\n")


def write_results(target: Path, seeds: int) -> None:
    """Write all runs and the mean gain of each arm with its interval."""
    runs = [
        json.loads(kept(arm, seed).read_text(encoding="utf-8"))
        for arm in ARMS
        for seed in range(seeds)
    ]
    about = describe(
        argv=["python", "scripts/loop_controls.py", "--seeds", str(seeds)],
        config=SIZE.model_dump(mode="json"),
        data={},
        seeds=tuple(range(seeds)),
    )
    write_json(
        target,
        {
            "manifest": about.model_dump(mode="json"),
            "arms": {arm: figures([one for one in runs if one["arm"] == arm]) for arm in ARMS},
            "runs": runs,
        },
    )


def figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean gain with its 95 % interval over runs, and how often the gate said yes."""
    gains = np.array([one["gain"] for one in runs])
    drawn = Seeds(0).child("resamples").rng().choice(gains, (RESAMPLES, len(gains))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    endings = [one["ending"] for one in runs]
    return {
        "runs": len(runs),
        "mean_gain": float(gains.mean()),
        "low": float(low),
        "high": float(high),
        "sd": float(gains.std(ddof=1)),
        "passed_the_gate": sum(ending in {"promoted", "control passed"} for ending in endings),
        "served": endings.count("promoted"),
    }


if __name__ == "__main__":
    main()
