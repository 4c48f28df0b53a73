"""Tidying the folder of results: first what would go and why the rest stays, then the removal.

Never touched: baselines, models and their champions, what a report or a results page refers to,
and what is under way. A link is never followed.
"""

from agent_gym.pipeline.cleanup.findings import Item, Kind
from agent_gym.pipeline.cleanup.plan import CleanupPlan, CleanupRules, plan_cleanup
from agent_gym.pipeline.cleanup.removal import CleanupResult, carry_out

__all__ = [
    "CleanupPlan",
    "CleanupResult",
    "CleanupRules",
    "Item",
    "Kind",
    "carry_out",
    "plan_cleanup",
]
