"""The sealed truth of a snapshot; envs, agents and rollouts must not import this package."""

from agent_gym.markets.snapshot.sealed.truth import (
    HiddenPost,
    OptimalAction,
    SocialOpportunity,
    Truth,
    load_truth,
    save_truth,
    truth_path,
)

__all__ = [
    "HiddenPost",
    "OptimalAction",
    "SocialOpportunity",
    "Truth",
    "load_truth",
    "save_truth",
    "truth_path",
]
