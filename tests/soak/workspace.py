"""The workspace of a soak as it is before anything goes wrong: small, whole, with a champion."""

from pathlib import Path

from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.core.files import write_json
from agent_gym.core.registry import configure
from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.snapshot_set import seal
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.run import POINTS
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.database import AgentRecord

SIZES = {"train": 3, "rehearsal": 20, "sealed": 35}
SHORT = {"duration_minutes": 300, "tick_interval_s": 900}
AGENTS = {f"soak-{k}": 1_000_000 for k in range(3)}
HARNESS_AGENTS = {f"agent-{k}": POINTS for k in range(2)}
SUITE = {
    "id": "soak",
    "scenarios": [
        {
            "name": "signals",
            "type": "signal_throughput",
            "hours": 1,
            "n_seeds": 4,
            "params": {"rate_per_hour": 30},
        },
        {
            "name": "execution",
            "type": "execution_fallback",
            "n_seeds": 4,
            "params": {"orders": 20, "outages": []},
        },
    ],
}


def prepare(home: Path, url: str | None) -> str:
    """Make snapshots, a first champion, agents and a token; return the token."""
    home.mkdir(parents=True, exist_ok=True)
    folder = LoopFolder(home)
    paths = {name: _snapshots(folder, name, count) for name, count in SIZES.items()}
    write_json(home / "suite.json", SUITE)
    with folder.opened(AutomationConfig(workers=1), url=url) as stages:
        policy = untrained(paths["train"], Seeds(0))
        policy.save(home / "jobs" / "first")
        stages.deployments.install(stages.registry.add(home / "jobs" / "first").model_hash)
        for name, points in AGENTS.items():
            stages.store.agents.add(AgentRecord(agent_id=name, name=name, points=points))
    return TokenFile(home / FILE).add("soak", "admin")[1]


def _snapshots(folder: LoopFolder, name: str, count: int) -> list[Path]:
    place, scenarios = folder.snapshots(name), list(SCENARIOS)
    place.mkdir(parents=True, exist_ok=True)
    if name == "sealed":
        seal(place)
    made = []
    for k in range(count):
        said = {"scenario": scenarios[k % len(scenarios)], **SHORT}
        config = configure(SnapshotConfig, said, where="soak")
        seed = Seeds(0).child("soak", name, k).as_int()
        made.append(BenchmarkDataGenerator(config).generate(seed=seed).save(place))
    return made
