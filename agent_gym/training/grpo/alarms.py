"""When the rest of an update is left out: the policy has gone far enough, or is dying."""

from __future__ import annotations

from agent_gym.training.grpo.config import AlarmLimits
from agent_gym.training.grpo.loss import LossFigures


def alarm(figures: LossFigures, limits: AlarmLimits) -> str | None:
    """Return why to stop here, None to go on; looked at before a step is taken.

    Example:
        >>> calm = LossFigures(0.1, 0.0, 0.0, 1.0, 1.0, None)
        >>> alarm(calm, AlarmLimits()) is None
        True
        >>> alarm(LossFigures(0.1, 0.7, 0.0, 2.0, 1.0, None), AlarmLimits())
        'clip share: 0.7 > 0.5'
    """
    if limits.max_kl is not None and figures.approx_kl > limits.max_kl:
        return f"kl: {figures.approx_kl:.4g} > {limits.max_kl:g}"
    if limits.max_clip_share is not None and figures.clip_share > limits.max_clip_share:
        return f"clip share: {figures.clip_share:.4g} > {limits.max_clip_share:g}"
    entropy = figures.entropy
    if limits.min_entropy is not None and entropy is not None and entropy < limits.min_entropy:
        return f"entropy: {entropy:.4g} < {limits.min_entropy:g}"
    return None
