"""A tiny language model and a small benchmark snapshot that the tests of language models share."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch

from agent_gym.agents.llm.adapter import Adapter, Lora, Whole
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import BenchmarkWorld
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.training.llm.notes import PROMPT, training_notes
from agent_gym.training.llm.tiny import make_tiny

torch.set_num_threads(1)
LORA = Lora(layers=1)
WHOLE = Whole()
TEXTS = [note.text for note in training_notes(Seeds(5), 6)]
SMALL = SnapshotConfig(
    scenario="bull",
    duration_minutes=300,
    prediction_markets=1,
    perpetual_markets=1,
    posts_per_market=4.0,
)


@cache
def tiny_folder(seed: int = 0) -> Path:
    return make_tiny(Path(mkdtemp(prefix="agent-gym-tiny-")) / "tiny", Seeds(seed))


def policy(adapter: Adapter = LORA, seed: int = 0, **config: object) -> LanguagePolicy:
    settings = LanguageConfig.model_validate({"prompt": PROMPT, "adapter": adapter} | config)
    return LanguagePolicy(load_base(str(tiny_folder())), settings, Seeds(seed))


def moved(own: LanguagePolicy, seed: int = 1) -> LanguagePolicy:
    """Give an adapter numbers of its own, as training would."""
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in own.parameters.values():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=dice))
    return own


@cache
def snapshot_path() -> Path:
    folder = Path(mkdtemp(prefix="agent-gym-snapshot-"))
    return BenchmarkDataGenerator(SMALL).generate(3).save(folder)


def world(*, text: bool = True) -> BenchmarkWorld:
    return BenchmarkWorld(BenchmarkWorldConfig(snapshot=snapshot_path(), text=text))
