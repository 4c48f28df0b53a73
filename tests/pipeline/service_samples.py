"""A small loop's folder: short snapshots, a champion, and the way to the next one."""

from pathlib import Path

from agent_gym.agents.artifact import write_artifact
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.neural.policy import NeuralConfig, NeuralPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.promotion import judge_promotion
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.runtime import AgentRuntime, RuntimeConfig
from tests.pipeline.moody_samples import MOODY
from tests.pipeline.registry_samples import QUICK, evidence_of, gains_of

TICKS = 20
CONFIG = SnapshotConfig(duration_minutes=TICKS * 15, tick_interval_s=900)
MOODS = "tests.pipeline.moody_samples"


def make_snapshots(folder: Path, count: int = 2, first: int = 0) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    generator = BenchmarkDataGenerator(CONFIG)
    return [generator.generate(seed=first + k).save(folder) for k in range(count)]


def policy(snapshot: Path, seed: int) -> NeuralPolicy:
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=snapshot))
    inputs = FeatureLayout.of(world.start(TRADER, Seeds(0)).feature_names).inputs
    return NeuralPolicy.create(NeuralConfig(), inputs, Seeds(seed))


class Loop:
    """A folder with snapshots and a champion, open."""

    def __init__(self, path: Path, snapshots: int = 2, url: str | None = None) -> None:
        self.folder = LoopFolder(path)
        self.paths = make_snapshots(self.folder.snapshots("train"), snapshots)
        self._open = self.folder.opened(AutomationConfig(workers=1), rollout=QUICK, url=url)
        self.stages = self._open.__enter__()
        self.store, self.deployments = self.stages.store, self.stages.deployments

    def policy(self, seed: int) -> NeuralPolicy:
        return policy(self.paths[0], seed)

    def register(self, seed: int) -> str:
        made = self.policy(seed)
        source = self.folder.path / "made" / made.version[:12]
        if not source.exists():
            made.save(source)
        return self.stages.registry.add(source).model_hash

    def install(self, seed: int = 1) -> str:
        model = self.register(seed)
        self.deployments.install(model)
        return model

    def install_moody(self) -> str:
        source = self.folder.path / "made" / "moody"
        write_artifact(source, MOODY, {"mood.json": b"{}"})
        model = self.stages.registry.add(source).model_hash
        self.deployments.install(model)
        return model

    def judged(self, seed: int) -> str:
        """Register another model and let the gate pass it against the champion of now."""
        model = self.register(seed)
        registry = self.stages.registry
        look = registry.sealed.spend(f"sealed-{seed}", model)
        champion = self.deployments.state().champion
        evidence = evidence_of(gains_of(0.02), champion, model, f"sealed-{seed}")
        registry.sealed.record(look, judge_promotion(evidence, look))
        return model

    def promote(self, seed: int) -> str:
        """Make another model the champion."""
        model = self.judged(seed)
        self.deployments.deploy(model)
        self.deployments.advance("canary")
        self.deployments.advance("full")
        return model

    def runtime(self, **given) -> AgentRuntime:
        usual = {"start_timeout_s": 200.0, "timeout_s": 100.0, "explore": 1.0}
        config = RuntimeConfig(**(usual | given))
        return AgentRuntime(self.store, self.deployments, self.folder.snapshots("train"), config)

    def close(self) -> None:
        self._open.__exit__(None, None, None)
