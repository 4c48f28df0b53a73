"""When there is a reason to train again."""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.core.clock import SECOND_NS
from agent_gym.markets.periods import parse_period
from agent_gym.training.desk.config import DAY_S, RetrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.drift import DriftAlarm
from agent_gym.training.desk.store import LoopState

HOUR_S = 3600.0


def triggers(
    config: RetrainingConfig,
    state: LoopState,
    now: float,
    dataset: Dataset,
    alarms: Sequence[DriftAlarm],
    reason: str | None,
) -> tuple[str, ...]:
    """Return every reason to train, in words.

    While a challenger is in shadow, neither time nor volume asks for another one: each new one
    would begin its shadow anew and none would ever come to its end.
    """
    found = []
    last = state.trained_at
    if state.shadow is None:
        if last is None or now - last >= config.every_days * DAY_S:
            found.append("time: never trained" if last is None else "time: a period has passed")
        # What was too young for a label at the last training has one now.
        horizon_s = parse_period(dataset.horizon) / SECOND_NS
        fresh = len(dataset) if last is None else int((dataset.t + horizon_s > last).sum())
        if fresh >= config.new_labels:
            found.append(f"volume: {fresh} new labels")
    if alarms:
        found.append(f"drift: {', '.join(sorted({alarm.sensor for alarm in alarms}))}")
    if reason is not None:
        found.append(f"manual: {reason}")
    return tuple(found)


def cooling(config: RetrainingConfig, state: LoopState, now: float) -> bool:
    """Return whether the last attempt is too recent to try again."""
    last = state.attempted_at
    return last is not None and now - last < config.cool_down_hours * HOUR_S
