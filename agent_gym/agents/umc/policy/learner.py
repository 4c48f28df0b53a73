"""The actor's learner in the registry: it needs torch, so it is loaded by those who ask for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from agent_gym.agents.umc.policy.config import ActorConfig
from agent_gym.agents.umc.policy.learning import ActorFit
from agent_gym.agents.umc.policy.lessons import Lessons
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds


class ActorLearner:
    """Trains actors."""

    def __init__(self, config: ActorConfig) -> None:
        self._config = config

    def start(
        self,
        lessons: Lessons,
        seeds: Seeds,
        start_from: Mapping[str, NDArray[Any]] | None = None,
    ) -> ActorFit:
        """Return a fit that was not run yet, from earlier weights if there are any."""
        return ActorFit(self._config, lessons, seeds, start_from)


@register("learner", "umc/actor", ActorConfig)
def actor_learner(config: ActorConfig) -> ActorLearner:
    """Train an actor by expected free energy and by realised growth after costs."""
    return ActorLearner(config)
