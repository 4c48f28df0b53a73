"""What ends a run that has gone wrong, before anything of it is kept."""

from __future__ import annotations

import math

from agent_gym.core.errors import AgentError
from agent_gym.training.rl.callbacks import Progress, Verdict
from agent_gym.training.rl.torch_state import parameters_are_finite

SPOILT = "a parameter that is NaN, infinite or beyond all bounds"


class FiniteCallback:
    """Ends a run whose losses or parameters are no numbers, before anything of it is kept."""

    def on_iteration(self, progress: Progress) -> Verdict:
        """Raise if a loss or a parameter is NaN or infinite."""
        for name, value in progress.losses.items():
            if not math.isfinite(value) and name != "explained_variance":
                raise diverged(progress.step, progress.iteration, f"{name} = {value}")
        if not parameters_are_finite(progress.model):
            raise diverged(progress.step, progress.iteration, SPOILT)
        return None


def diverged(step: int, iteration: int, found: str) -> AgentError:
    """Return the error for a run that has left the finite numbers."""
    return AgentError(
        "training has left the finite numbers",
        where=f"step {step} (iteration {iteration})",
        found=found,
        expected="finite losses and parameters",
        remedy="Lower agent.learning_rate or agent.max_grad_norm, normalise rewards, or look for "
        "rewards and observations that are not numbers; nothing of this iteration was kept",
    )
