"""Local policies for the agent; apart, since their libraries take seconds to load."""

from __future__ import annotations

from pathlib import Path

from agent_gym.agents.llm.adapter import Lora
from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.core.seeds import Seeds


def policy_of(folder: Path, base: str | None, device: str) -> LanguagePolicy:
    """Read a trained policy."""
    return LanguagePolicy.load(folder, base, device)


def untrained(
    model: str,
    prompt: PromptConfig,
    answers: Answers,
    temperature: float,
    *,
    device: str = "cpu",
) -> LanguagePolicy:
    """Return a model as it is, with the same way of asking; nothing of it was trained."""
    config = LanguageConfig(
        prompt=prompt, answers=answers, temperature=temperature, adapter=Lora(layers=1)
    )
    return LanguagePolicy(load_base(model, device), config, Seeds(0))
