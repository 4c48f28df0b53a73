"""How large a run of the loop is, and what it came to."""

from __future__ import annotations

from typing import Any

from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.job import JobOutcome
from agent_gym.pipeline.harness.asked import HarnessOptions
from agent_gym.training.grpo.config import AdamConfig, AlarmLimits, EntropySchedule, GRPOConfig
from agent_gym.training.grpo.loss_config import ClipSurrogate, LossConfig

__all__ = ["LEARNING", "READING", "HarnessOptions", "HarnessOutcome"]

LEARNING = GRPOConfig(
    updates=1,
    epochs=8,
    minibatches=4,
    credit="reward_to_go",
    discount=0.9,
    adam=AdamConfig(learning_rate=0.03),
    alarms=AlarmLimits(max_kl=1.0),
    loss=LossConfig(surrogate=ClipSurrogate(low=0.75, high=3.0, dual=None)),
    entropy=EntropySchedule(start=0.0),
)
"""Chosen on snapshots of seed 100; those of the harness had no part in it.

What pays is drawn seldom at first, because the first champion keeps what it holds; the usual limit
of a fifth would let its chance grow by a fifth in a round, so the ratio may go further here.
"""


READING = LEARNING.model_copy(update={"adam": AdamConfig(learning_rate=0.001)})
"""For language models, whose adapters learn at a smaller rate."""


class HarnessOutcome(Config):
    """What a run came to; ``answered`` names the model behind each agent's tick at the end.

    ``cut_off`` says that it was begun by an earlier process, and only finished by this one.
    """

    run_id: str
    cut_off: bool = False
    snapshots: dict[str, int]
    trajectories: dict[str, int]
    steps: int
    played: list[dict[str, Any]]
    champion_before: str
    readiness_before: dict[str, Any]
    readiness_after: dict[str, Any]
    job: JobOutcome | None
    answered: dict[str, str | None]
    rollout_verified: bool
    rollout_words: str
    report: str

    @property
    def promoted(self) -> bool:
        """Return whether another model serves now."""
        return self.job is not None and self.job.ending == "promoted"
