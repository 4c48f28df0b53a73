"""RecentContext lives in ``agent_gym.agents.desk.context``."""

from agent_gym.agents.desk.context import RecentContext

__all__ = ["RecentContext"]
