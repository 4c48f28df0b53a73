"""Measure the cluster executor against the local one, and prove that a lost node changes nothing.

    python -m scripts.ray_results [--tasks 2000] [--out docs/results]

A suite is played here, and on a cluster of three nodes on this machine of which one is killed in
the middle: rows and report must have the same bytes. Then jobs of known length tell what each
executor adds to a job, and a model says when a cluster pays off.
"""

import argparse
import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import ray

from agent_gym.core.clock import ManualClock, SystemClock
from agent_gym.core.files import to_json, write_json, write_text
from agent_gym.core.manifest import fingerprint, installed_versions
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly import RunOptions, Workspace, run_suite
from agent_gym.pipeline.nightly.crew import SEEDS_AT_ONCE
from agent_gym.pipeline.nightly.run import Silence
from agent_gym.rollouts.choice import executing, make_executor
from agent_gym.rollouts.cluster.sizing import Overhead, break_even_jobs
from scripts.ray_cluster import SmallCluster
from scripts.ray_jobs import BusyJob, rounds_a_second

CLOCK = SystemClock()
DATE_NS = 1_763_256_600 * 10**9
LENGTHS_S = (0.0, 0.001, 0.01, 0.1, 1.0)
ROUNDS = 5
SPENT_S = 3.0  # each measurement is made to take about this long
FEWEST, MOST = 4, 2_000
IMPORTS = ("scripts.ray_jobs",)
HOURS = 1.0  # of an episode of the suite: short ones, so that handing out counts
SIZES = ((2, 8), (2, 32), (8, 64))


class KillingWatch(Silence):
    """Kills a node when a number of episodes are there."""

    def __init__(self, at: int, kill: Callable[[], None]) -> None:
        self._left, self._kill, self.killed = at, kill, False

    def advance(self, scenario: str, n: int = 1, error: str | None = None) -> None:
        """Count, and kill once."""
        self._left -= n
        if self._left <= 0 and not self.killed:
            self.killed = True
            self._kill()


def main() -> None:
    """Measure, and write the figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2_000, help="jobs of the suite")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    asked = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found: dict[str, Any] = {
        "command": f"python -m scripts.ray_results --tasks {asked.tasks}",
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "versions": installed_versions() | {"ray": ray.__version__},
        "load_before": [round(each, 1) for each in os.getloadavg()],
    }
    found["suite"] = suite_figures(asked.tasks)
    found["overhead"] = overhead_figures()
    found["same_rows"] = same_rows(found["overhead"])
    found["load_after"] = [round(each, 1) for each in os.getloadavg()]
    found["scaling"] = scaling_figures(found["overhead"])
    found["model"] = model_figures(found["overhead"])
    write_json(asked.out / "ray.json", found)
    write_text(asked.out / "ray.md", page(found))
    if not (found["suite"]["same_report"] and found["same_rows"]):
        raise SystemExit("the cluster gave other bytes than this machine")


def suite_figures(tasks: int) -> dict[str, Any]:
    """Play a suite here, and on a cluster that loses a node in the middle."""
    suite = Suite(
        id="cluster",
        scenarios=(
            ScenarioConfig(
                name="signals",
                type="signal_throughput",
                hours=HOURS,
                n_seeds=tasks * SEEDS_AT_ONCE,
            ),
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        here = played(suite, Path(folder) / "here", Silence())
        cluster = SmallCluster(3)
        watch = KillingWatch(tasks * SEEDS_AT_ONCE // 2, cluster.kill)
        try:
            with executing("ray", cluster.address):
                there = played(suite, Path(folder) / "there", watch, workers=3)
        finally:
            cluster.close()
    return {
        "tasks": tasks,
        "episodes": tasks * SEEDS_AT_ONCE,
        "nodes": 3,
        "killed": int(watch.killed),
        "report_bytes": len(here["report"]),
        "report_hash": fingerprint(here["report"]),
        "same_report": here["report"] == there["report"],
        "exit_codes": [here["exit_code"], there["exit_code"]],
        "episodes_played": [here["played"], there["played"]],
        "seconds": [here["seconds"], there["seconds"]],
    }


def played(suite: Suite, home: Path, watch: Silence, workers: int = 2) -> dict[str, Any]:
    """Return the report of a suite as text, and how long it took."""
    options = RunOptions(
        suite=suite,
        subject=Subject(suite.desk, suite.agent),
        workers=workers,
        timings=False,
        command=("agent-gym", "run"),
    )
    begun_s = CLOCK.monotonic_s()
    done = run_suite(options, Workspace(home), clock=ManualClock(DATE_NS), watch=watch)
    return {
        "report": done.places["report"].read_text(encoding="utf-8"),
        "exit_code": done.exit_code,
        "played": done.played,
        "seconds": round(CLOCK.monotonic_s() - begun_s, 1),
    }


def overhead_figures() -> list[dict[str, Any]]:
    """Return what each executor adds to jobs of known length, with one worker and with two.

    All are measured in turn, round after round, so that a slow minute of the machine meets all.
    """
    speed = rounds_a_second()
    cluster = SmallCluster(2)
    seen: dict[tuple[str, int], list[dict[str, Any]]] = {}
    try:
        for number in range(ROUNDS + 1):
            for kind in ("local", "ray"):
                with executing(kind, cluster.address if kind == "ray" else None):
                    for workers in (1, 2):
                        found = measured(workers, speed, LENGTHS_S if number else LENGTHS_S[:1])
                        if number:  # the first round fills caches
                            seen.setdefault((kind, workers), []).append(found)
    finally:
        cluster.close()
    return [
        {"executor": kind, "workers": workers, **_middle(rounds)}
        for (kind, workers), rounds in seen.items()
    ]


def measured(workers: int, speed: float, lengths_s: Sequence[float]) -> dict[str, Any]:
    """Return the start and the time of a job at each length.

    Args:
        workers: How many.
        speed: Rounds of work that one core did in a second, in the beginning.
        lengths_s: Of jobs, at that speed.
    """
    begun_s = CLOCK.monotonic_s()
    rows = []
    with make_executor(workers, imports=IMPORTS) as executor:
        executor.run([BusyJob(seed=i) for i in range(workers)])
        start_s = CLOCK.monotonic_s() - begun_s
        for seconds in lengths_s:
            n = int(min(MOST, max(FEWEST, SPENT_S * workers / max(seconds, 1e-3))))
            jobs = [BusyJob(seed=i, rounds=round(seconds * speed)) for i in range(n)]
            begun_s = CLOCK.monotonic_s()
            batch = executor.run(jobs)
            took_s = CLOCK.monotonic_s() - begun_s
            worked_s = sum(row.pop("seconds") for row in batch.rows)  # as the jobs say themselves
            rows.append(
                {
                    "job_s": seconds,
                    "jobs": n,
                    "seconds": took_s,
                    "added_ms": 1e3 * (took_s * workers - worked_s) / n,
                    "busy": worked_s / (took_s * workers),
                    "hash": fingerprint(to_json(batch.rows)),
                }
            )
    return {"start_s": start_s, "lengths": rows}


def _middle(rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the medians of all rounds, and between what the overheads lay."""
    lengths = []
    for same in zip(*(each["lengths"] for each in rounds), strict=True):
        added_ms = [row["added_ms"] for row in same]
        lengths.append(
            {
                "job_s": same[0]["job_s"],
                "jobs": same[0]["jobs"],
                "seconds": round(median(row["seconds"] for row in same), 3),
                "added_ms": round(median(added_ms), 3),
                "added_ms_range": [round(min(added_ms), 3), round(max(added_ms), 3)],
                "busy": round(median(row["busy"] for row in same), 3),
                "hashes": sorted({row["hash"] for row in same}),
            }
        )
    return {"start_s": round(median(each["start_s"] for each in rounds), 2), "lengths": lengths}


def same_rows(overhead: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether both executors gave the same rows for the same jobs in every round."""
    found: dict[tuple[float, int], set[str]] = {}
    for each in overhead:
        for row in each["lengths"]:
            found.setdefault((row["job_s"], row["jobs"]), set()).update(row["hashes"])
    return all(len(hashes) == 1 for hashes in found.values())


def scaling_figures(overhead: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how much more two workers do than one, and how fast empty jobs are handed out."""
    found = []
    for kind in ("local", "ray"):
        one, two = (
            [each["jobs"] / each["seconds"] for each in row["lengths"]]
            for row in overhead
            if row["executor"] == kind
        )
        found.append(
            {
                "executor": kind,
                "speed_up": [round(more / less, 3) for less, more in zip(one, two, strict=True)],
                "busy": [
                    each["busy"]
                    for row in overhead
                    if (row["executor"], row["workers"]) == (kind, 2)
                    for each in row["lengths"]
                ],
                "handed_out_ms": round(1e3 / max(one[0], two[0]), 3),
            }
        )
    return found


def model_figures(overhead: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the overheads that the model is given, and where a cluster begins to pay off."""
    own = {kind: _overhead(overhead, kind) for kind in ("local", "ray")}
    rows = [
        {
            "job_s": job_s,
            "here": here,
            "there": there,
            "jobs": break_even_jobs(job_s, (here, own["local"]), (there, own["ray"])),
        }
        for job_s in LENGTHS_S[1:]
        for here, there in SIZES
    ]
    said = {kind: each.model_dump() for kind, each in own.items()}
    return {"overhead": said, "break_even": rows}


def _overhead(found: list[dict[str, Any]], kind: str) -> Overhead:
    """Return the overhead of one worker on empty jobs, where nothing else is measured."""
    one = next(each for each in found if each["executor"] == kind and each["workers"] == 1)
    return Overhead(start_s=one["start_s"], job_s=max(0.0, one["lengths"][0]["added_ms"] / 1e3))


def page(found: dict[str, Any]) -> str:
    """Return the page of the figures."""
    suite = found["suite"]
    same = "the same bytes" if suite["same_report"] else "OTHER BYTES"
    rows = "the same bytes" if found["same_rows"] else "OTHER BYTES"
    lines = [
        "# A cluster against one machine",
        "",
        f"Made by `{found['command']}` on {found['machine']['cpus']} cores, Ray "
        f"{found['versions']['ray']}. Load before and after: {found['load_before']}, "
        f"{found['load_after']}; above the number of cores all times are too long.",
        "",
        "## A node is killed in the middle",
        "",
        f"{suite['tasks']:,} jobs ({suite['episodes']:,} episodes) on {suite['nodes']} nodes of "
        f"one processor each, {suite['killed']} killed after half of them: the report "
        f"({suite['report_bytes']:,} bytes) has {same} as that of the local run, exit codes "
        f"{suite['exit_codes'][0]} and {suite['exit_codes'][1]}, episodes counted "
        f"{suite['episodes_played'][0]:,} and {suite['episodes_played'][1]:,}. Seconds: "
        f"{suite['seconds'][0]} here with 2 workers, {suite['seconds'][1]} there with 3.",
        "",
        "## What an executor adds to a job",
        "",
        f"Milliseconds of a worker for each job, beside the work itself: medians of {ROUNDS} "
        "rounds in which all were measured in turn (ranges are in `ray.json`). The work is timed "
        "by the jobs themselves, so it does not matter how fast the machine is then. The start "
        f"of Ray's is that of its stations on a cluster that runs. Rows of all rounds: {rows}.",
        "",
        "| executor | workers | start s | "
        + " | ".join(_length(each) for each in LENGTHS_S)
        + " |",
        "|---|---|---|" + "---|" * len(LENGTHS_S),
    ]
    for each in found["overhead"]:
        cells = " | ".join(f"{row['added_ms']:.2f}" for row in each["lengths"])
        lines.append(f"| {each['executor']} | {each['workers']} | {each['start_s']} | {cells} |")
    lines += [*_scaling(found["scaling"])]
    lines += [
        "",
        "## When a cluster pays off",
        "",
        "Jobs from which the model (`agent_gym.rollouts.cluster.sizing`) says that a cluster is "
        "faster than one machine.",
        "",
        "| job | cores here | cores there | jobs |",
        "|---|---|---|---|",
    ]
    for row in found["model"]["break_even"]:
        jobs = "never" if row["jobs"] is None else f"{row['jobs']:,}"
        lines.append(f"| {_length(row['job_s'])} | {row['here']} | {row['there']} | {jobs} |")
    return "\n".join(lines) + "\n"


def _scaling(found: list[dict[str, Any]]) -> list[str]:
    """Return the part of the page on what a second worker is worth, and on many."""
    lines = [
        "",
        "## What two workers do more than one",
        "",
        "Jobs a second with two workers over those with one: 2 is all that two cores can give, and "
        "what the speed of the machine changes by from one measurement to the next is in it. "
        "Behind it the share of their time that two workers spent inside jobs, which does not "
        "depend on that.",
        "",
        "| executor | " + " | ".join(_length(each) for each in LENGTHS_S) + " |",
        "|---|" + "---|" * len(LENGTHS_S),
    ]
    for each in found:
        both = zip(each["speed_up"], each["busy"], strict=True)
        cells = " | ".join(f"{value:.2f} ({busy:.1%})" for value, busy in both)
        lines.append(f"| {each['executor']} | {cells} |")
    handed_ms = {each["executor"]: each["handed_out_ms"] for each in found}
    least = ", ".join(f"{n * handed_ms['ray']:.0f} ms for {n}" for n in (8, 64, 256))
    return [
        *lines,
        "",
        f"One process hands out all jobs: an empty one takes {handed_ms['local']:.2f} ms here and "
        f"{handed_ms['ray']:.2f} ms on the cluster, the work of the worker included. So workers "
        "are kept busy, and speed grows with their number, while a job takes at least that long "
        f"times their number: {least} workers. More cores than two were not measured.",
    ]


def _length(seconds: float) -> str:
    return (
        "empty" if seconds == 0.0 else f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1e3:g} ms"
    )


if __name__ == "__main__":
    main()
