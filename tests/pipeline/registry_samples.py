"""A small registry for the tests: artifacts of a few bytes and verdicts of known outcome."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from sqlalchemy import event

from agent_gym.agents.artifact import write_artifact
from agent_gym.core.clock import ManualClock
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import Evidence, Figures, Integrity, Pair, judge_promotion
from agent_gym.pipeline.registry import ModelDeploymentService, ModelRegistry, RolloutPolicy
from agent_gym.rollouts.database import TrajectoryStore

GOOD = Integrity(
    artifact_hash_ok=True,
    policy_loads=True,
    replay_equal=True,
    snapshots_hash_ok=True,
    data_manifest_ok=True,
)
WELL = Figures(
    max_drawdown=0.1, ruined=0, invalid_rate=0.0, latency_ms=2.0, entropy=0.4, kl_to_champion=0.2
)
QUICK = RolloutPolicy(min_pairs_shadow=0, min_pairs_canary=0, cooldown_s=60.0)


def pairs_of(gains, slices=2, paths=0.05, seed=0):
    drawn = Seeds(seed).child("paths").rng().normal(0.0, paths, len(gains))
    return tuple(
        Pair(
            snapshot_id=f"s{i}",
            slice=f"slice-{i % slices}",
            champion=float(c),
            challenger=float(c + g),
        )
        for i, (c, g) in enumerate(zip(drawn, gains, strict=True))
    )


def gains_of(mean, n=20, sd=0.02, seed=0):
    drawn = Seeds(seed).child("gains").rng().normal(0.0, 1.0, n)
    drawn = (drawn - drawn.mean()) / drawn.std(ddof=1)
    return (mean + sd * drawn).tolist()


def evidence_of(gains, champion="champion", challenger="challenger", sealed_set="sealed", **given):
    values = {"integrity": GOOD, "figures": WELL} | given
    slices = values.pop("slices", 2)
    return Evidence(
        champion=champion,
        challenger=challenger,
        sealed_set=sealed_set,
        pairs=pairs_of(gains, slices),
        **values,
    )


def artifact(folder, name, weights=b"weights"):
    files = {"policy.json": b'{"name": "%s"}' % name.encode(), "policy.safetensors": weights}
    write_artifact(folder / name, "neural/market", files)
    return folder / name


def _unhurried(raw, _record):
    """Do not wait for the disk: a kill loses nothing that was written, only a power cut does."""
    if hasattr(raw, "in_transaction"):  # SQLite
        raw.execute("pragma synchronous = off")


@cache
def blank():
    """Return a folder with an empty store; making one takes longer than all that is tested."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    TrajectoryStore.open(folder=folder / "db").close()
    return folder / "db"


class Site:
    """A registry in a folder, with a clock that moves when told."""

    def __init__(self, folder, policy=QUICK, **given):
        self.folder, self.clock = folder, ManualClock(1_000_000_000)
        if not (folder / "db").exists():
            shutil.copytree(blank(), folder / "db")
        self.store = TrajectoryStore.open(
            given.pop("url", None), folder=folder / "db", clock=self.clock
        )
        engine = self.store.database.engine
        engine.dispose()
        event.listen(engine, "connect", _unhurried)
        self.registry = ModelRegistry.open(
            self.store.database, folder / "models", clock=self.clock, **given
        )
        self.service = ModelDeploymentService(self.registry, policy)

    def add(self, name):
        return self.registry.add(artifact(self.folder / "trained", name)).model_hash

    def judge(self, model, mean=0.02, sealed_set="sealed", champion=None):
        look = self.registry.sealed.spend(sealed_set, model)
        champion = champion or self.service.state().champion
        evidence = evidence_of(gains_of(mean), champion, model, sealed_set)
        verdict = judge_promotion(evidence, look)
        self.registry.sealed.record(look, verdict)
        return verdict

    def ready(self, *names):
        """Install the first model and let the gate pass the others."""
        hashes = [self.add(name) for name in names]
        self.service.install(hashes[0])
        for number, model in enumerate(hashes[1:]):
            assert self.judge(model, sealed_set=f"sealed-{number}").promoted
        return hashes

    def close(self):
        self.store.close()
