"""What a training run hands back."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config


class GroupTotals(Config):
    """What became of the groups: trained on, dropped as all equal, refused."""

    kept: int = 0
    dropped: int = 0
    refused: int = 0


class UpdateMetrics(Config):
    """One update: what came in, what was left of it, and how far the policy went.

    A figure that there was no step to take it from is None.
    """

    update: int
    trajectories: int
    return_mean: float
    groups: GroupTotals
    zero_share: float = Field(description="groups dropped as all equal, of those compared")
    entropy_coefficient: float
    ess: float | None = Field(description="effective share of trajectories, recorded to now")
    steps: int = Field(description="steps of the optimiser")
    loss: float | None = None
    entropy: float | None = None
    approx_kl: float | None = None
    clip_share: float | None = None
    ratio_max: float | None = None
    reference_kl: float | None = None
    grad_norm: float | None = None
    stopped: str | None = Field(default=None, description="why the update ended early")


class TrainingResult(Config):
    """How a training run went; the policy itself is where it was."""

    method: str
    model_before: str
    model_after: str
    data_hash: str = Field(description="hash of the ids of every trajectory that was trained on")
    trained_ids: tuple[str, ...]
    groups: GroupTotals
    refused: dict[str, int] = Field(description="trajectories left out, by reason")
    updates: tuple[UpdateMetrics, ...]

    @property
    def changed(self) -> bool:
        """Return whether the policy is another one now."""
        return self.model_before != self.model_after

    @property
    def stops(self) -> dict[str, int]:
        """Return how often an update ended early, by reason."""
        counts: dict[str, int] = {}
        for update in self.updates:
            if update.stopped is not None:
                reason = update.stopped.split(":")[0]
                counts[reason] = counts.get(reason, 0) + 1
        return counts
