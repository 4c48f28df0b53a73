"""Logs of a user's own system as the source of a scenario.

Belongs here: reading SQLite, JSONL and Parquet logs of signals, orders, fills and protections,
foreign names by a mapping file, every unreadable row counted and named, and the figures of a log.
Hands on: ``read_log`` and ``recorded_metrics``; the desk scenarios replay what was read.
"""

from agent_gym.evaluation.scenarios.recorded.figures import (
    RECORDED_METRICS,
    recorded_metrics,
    with_recorded,
)
from agent_gym.evaluation.scenarios.recorded.log import read_log
from agent_gym.evaluation.scenarios.recorded.records import (
    RecordedFill,
    RecordedLog,
    RecordedOrder,
    RecordedProtection,
    RecordedSignal,
    UnreadRow,
)
from agent_gym.evaluation.scenarios.recorded.source import (
    STREAMS,
    LogNames,
    RecordedSource,
    StreamNames,
)

__all__ = [
    "RECORDED_METRICS",
    "STREAMS",
    "LogNames",
    "RecordedFill",
    "RecordedLog",
    "RecordedOrder",
    "RecordedProtection",
    "RecordedSignal",
    "RecordedSource",
    "StreamNames",
    "UnreadRow",
    "read_log",
    "recorded_metrics",
    "with_recorded",
]
