"""What the registry refuses, by whose fault it is."""

from __future__ import annotations

from agent_gym.core.errors import AgentGymError, DataError


class RefusedArtifact(DataError):
    """An artifact is not what was signed: it must not be loaded."""


class RefusedDeployment(AgentGymError):
    """A model may not be deployed, advanced or rolled back as things stand."""


class SealedSetSpent(AgentGymError):
    """A sealed set has been looked at as often as it may be."""
