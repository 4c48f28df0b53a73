"""Kills a training job before each of its durable effects, and lets it go on.

A durable effect is a commit of a database (the store's, the registry's, the workflow engine's) or a
file put in its place. To be killed before the next effect is to be killed after the one before, so
all places between two effects are covered. The snapshots are tiny and champion and challenger are
given fixed returns: what is tried here is the order of things, not the markets.

Usage: python kill_points.py FOLDER GAIN POINTS FIRST STEP, prints JSON. POINTS places lie
evenly over all effects; every STEP-th from FIRST is tried (a FIRST below 0 counts from the
end). GAIN is what the challenger earns more in the rehearsal; after a loss the rollout is taken
back. The workflow engine looks around now and then, so a run has a few effects more or less, and
the last points may lie behind its end: such a run was not killed, and says so.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import Figures, Pair
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.pipeline.automation import recording, stages
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.examining import Duel
from agent_gym.pipeline.automation.job import TrainingJob
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness import workspace
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.options import LEARNING
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import RolloutPolicy
from agent_gym.rollouts.batch import Batch

JOB = TrainingJob(job_id="job")
CONFIG = AutomationConfig(
    readiness=ReadinessPolicy(min_trajectories=8, min_groups=2, spacing_hours=0.0),
    grpo=LEARNING.model_copy(update={"epochs": 3}),
    rounds=2,
    practice_repeats=4,
    workers=1,
)
SIZE = {"duration_minutes": 20, "tick_interval_s": 60, "prediction_markets": 1}
PAIRS = 40


class Inline:
    """Runs jobs here and now."""

    def __init__(self, workers=1, *, imports=()):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, jobs, progress=None, *, timeout_s=None):
        return Batch([job.run() for job in jobs], "ok")


def fixed_duel(gain):
    def duel(champion, challenger, snapshots, executor, progress):
        return played(gain if "rehearsal" in snapshots[0].parts else 0.1)

    return duel


def played(gain):
    luck = Seeds(1).rng().normal(gain, 0.05, PAIRS)
    names = list(SCENARIOS)
    pairs = tuple(
        Pair(
            snapshot_id=f"s{k}",
            slice=names[k % len(names)],
            champion=0.0,
            challenger=float(luck[k]),
        )
        for k in range(PAIRS)
    )
    well = Figures(max_drawdown=0.1, ruined=0, invalid_rate=0.0, latency_ms=1.0)
    return Duel(pairs, well, ())


def opened(place, url=None):
    return LoopFolder(place).opened(CONFIG, rollout=RolloutPolicy(cooldown_s=0.0), url=url)


def make_snapshots(folder, count, name="train"):
    generator = BenchmarkDataGenerator(SnapshotConfig(**SIZE))
    return [
        generator.generate(seed=Seeds(0).child(name, k).as_int()).save(folder) for k in range(count)
    ]


def prepare(place, url=None):
    folder = LoopFolder(place)
    names = ("train", "rehearsal", "sealed")
    paths = {name: make_snapshots(folder.snapshots(name), 2, name) for name in names}
    with opened(place, url) as work:
        policy = untrained(paths["train"], Seeds(0))
        policy.save(place / "first")
        work.deployments.install(work.registry.add(place / "first").model_hash)
        played = recording.Recording(work.store, work.executor, ("agent",), 4)
        played.play(place / "first", paths["train"], "run")


def work_on(place, kill_before):
    """Do the job, but die before the effect of that number; return how many there were."""
    seen = 0

    def effect(*_):
        nonlocal seen
        seen += 1
        if seen == kill_before:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "commit", effect)
    for name in ("replace", "rename"):
        plain = getattr(os, name)
        setattr(os, name, lambda *args, _plain=plain, **kw: (effect(), _plain(*args, **kw))[1])
    with opened(place) as work, running(work, LoopFolder(place).workflows(work.store)) as runtime:
        outcome = runtime.run(JOB)
    return {"effects": seen, "outcome": outcome.model_dump(mode="json")}


def launch(place):
    """Let the workflow engine make its tables: that is no effect of a job."""
    with opened(place) as work, running(work, LoopFolder(place).workflows(work.store)):
        return {}


def forked(place, work, *asked):
    """Do it in a process of its own; return what it said, None if it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            with os.fdopen(writer, "w") as out:
                json.dump(work(place, *asked), out)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    if status != 0:
        raise RuntimeError(f"the job failed: {asked}")
    return json.loads(text)


def state(place, url=None):
    """Return what is there in the end, without times."""
    with opened(place, url) as work:
        models = work.registry.models()
        batches = work.store.batches.newest(limit=100)
        return {
            "batches": {
                one.batch_id: [one.status, sorted(work.store.batches.ids(one.batch_id))]
                for one in batches
            },
            "models": sorted(model.model_hash for model in models),
            "champion": work.champion(),
            "history": [[one.event, one.data] for one in work.deployments.history()],
            "trajectories": work.store.count(),
            "problems": list(work.registry.verify()),
        }


def tried(source, point):
    """Kill once at a point, go on, and return what came of it."""
    place = source.parent / f"point-{point}"
    shutil.copytree(source, place)
    first = forked(place, work_on, point)
    last = forked(place, work_on, None) if first is None else first
    found = {"point": point, "killed": first is None, **last, "state": state(place)}
    shutil.rmtree(place)
    return found


def main(folder, gain, points, first, step):
    workspace.make_executor = Inline
    stages.duel = fixed_duel(gain)
    stages.replay_equal = lambda model, snapshot: True
    source = folder / "source"
    prepare(source)
    forked(source, launch)
    plain = tried(source, None)
    places = [1 + k * plain["effects"] // points for k in range(points)]
    chosen = places[first:] if first < 0 else places[first::step]
    json.dump({"plain": plain, "points": [tried(source, one) for one in chosen]}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:6]))
