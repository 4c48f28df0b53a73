"""The first champion of language models: a model as it is, that prefers to hold nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_gym.agents.llm.adapter import Lora, layers_of
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.core.seeds import Seeds
from agent_gym.training.llm.snapshots import NEWS_ANSWERS, NEWS_PROMPT, stage_of

LOOKED_AT = 2
NOTHING = "FLAT"
LEAN_NATS = 1.5


def untaught(base: str, snapshots: Sequence[Path], seeds: Seeds) -> LanguagePolicy:
    """Return a policy on a model that has been taught nothing.

    What it prefers whatever it reads is taken off, and a lean towards holding nothing is put in its
    place: its best answers earn nothing and lose nothing.

    Args:
        base: A folder, the name of a model that was prepared, or a hub id.
        snapshots: What it will learn from; the first few are looked at.
        seeds: Where the first numbers of its adapter are drawn from.
    """
    model = load_base(base)
    adapter = Lora(layers=min(Lora().layers, len(layers_of(model.network))))
    config = LanguageConfig(prompt=NEWS_PROMPT, answers=NEWS_ANSWERS, adapter=adapter)
    policy = LanguagePolicy(model, config, seeds.child("adapter"))
    prompts = dict.fromkeys(one for path in snapshots[:LOOKED_AT] for one in stage_of(path).prompts)
    policy.calibrate(list(prompts))
    policy.lean(NOTHING, LEAN_NATS)
    return policy
