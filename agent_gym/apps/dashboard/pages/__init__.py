"""The pages, in the order of the navigation: what is shown; what is asked stands in ``figures``."""

from agent_gym.apps.dashboard.pages import (
    backtests,
    battles,
    compare,
    data,
    home,
    models,
    replay,
    runs,
    scenarios,
    settings,
    training,
    trajectories,
)

PAGES = (
    home.PAGE,
    runs.PAGE,
    runs.ONE,
    compare.PAGE,
    scenarios.PAGE,
    backtests.PAGE,
    trajectories.PAGE,
    replay.PAGE,
    training.PAGE,
    models.PAGE,
    battles.PAGE,
    data.PAGE,
    settings.PAGE,
)
__all__ = ["PAGES"]
