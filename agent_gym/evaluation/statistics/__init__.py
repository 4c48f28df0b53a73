"""Statistics: how far a figure can be trusted, and how much of it luck alone would show.

Belongs here: intervals, tests and probabilities of figures, from plain numbers. Everything that
draws takes ``core.seeds.Seeds`` and gives the same answer for the same seeds.
May import: core.
Hands on: ``Interval`` and p-values; None where something is not defined for the numbers given. What
cannot be asked at all (too few values, numbers that are not finite) is a ``DataError``.
"""

from agent_gym.evaluation.statistics.intervals import (
    bootstrap_interval,
    mean_interval,
    paired_interval,
    seeds_interval,
    wilson,
)
from agent_gym.evaluation.statistics.overfitting import Overfitting, effective_trials, pbo
from agent_gym.evaluation.statistics.pairs import Alternative, holm, sign_flip
from agent_gym.evaluation.statistics.profiles import Profile, performance_profile
from agent_gym.evaluation.statistics.resampling import block_length
from agent_gym.evaluation.statistics.samples import Interval
from agent_gym.evaluation.statistics.scores import (
    iqm,
    iqm_interval,
    probability_of_improvement,
    probability_of_improvement_interval,
)
from agent_gym.evaluation.statistics.superiority import Spa, spa
from agent_gym.evaluation.statistics.survival import (
    LogRank,
    MedianTime,
    Survival,
    kaplan_meier,
    log_rank,
)
from agent_gym.evaluation.statistics.time_ratios import TimeRatio, time_ratio
from agent_gym.evaluation.statistics.track_record import (
    Moments,
    dsr,
    expected_max_sharpe,
    lo_factor,
    lo_factor_of,
    min_track_record,
    moments,
    psr,
)

__all__ = [
    "Alternative",
    "Interval",
    "LogRank",
    "MedianTime",
    "Moments",
    "Overfitting",
    "Profile",
    "Spa",
    "Survival",
    "TimeRatio",
    "block_length",
    "bootstrap_interval",
    "dsr",
    "effective_trials",
    "expected_max_sharpe",
    "holm",
    "iqm",
    "iqm_interval",
    "kaplan_meier",
    "lo_factor",
    "lo_factor_of",
    "log_rank",
    "mean_interval",
    "min_track_record",
    "moments",
    "paired_interval",
    "pbo",
    "performance_profile",
    "probability_of_improvement",
    "probability_of_improvement_interval",
    "psr",
    "seeds_interval",
    "sign_flip",
    "spa",
    "time_ratio",
    "wilson",
]
