"""The audit: what is silently broken in an agent, or in a world.

A ``Subject`` is an agent that can be made anew at will, with bars and a world. ``audit`` runs
registered checks on it (kind ``check``); each gives findings with figures and a remedy, says what
it found fine, and what it could not look at. A check of your own is one class with a ``run``; see
``run.Check``.
"""

from agent_gym.evaluation.audit.finding import (
    AuditReport,
    CheckReport,
    Finding,
    Severity,
    error,
    fine,
    note,
    unchecked,
    warning,
)
from agent_gym.evaluation.audit.run import Check, Plain, audit
from agent_gym.evaluation.audit.stream import Stream, record, replay
from agent_gym.evaluation.audit.subject import Books, Greedy, Subject, market_world

__all__ = [
    "AuditReport",
    "Books",
    "Check",
    "CheckReport",
    "Finding",
    "Greedy",
    "Plain",
    "Severity",
    "Stream",
    "Subject",
    "audit",
    "error",
    "fine",
    "market_world",
    "note",
    "record",
    "replay",
    "unchecked",
    "warning",
]
