"""Who may do what: roles, and the role that each path and method needs.

What is not in the table needs the highest role, whether it exists or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["read", "run", "admin"]
ROLES: tuple[Role, ...] = ("read", "run", "admin")
_PART = "[^/]+"


@dataclass(frozen=True, slots=True)
class Rule:
    """The role that some methods on some path need; ``*`` stands for one part of the path."""

    methods: tuple[str, ...]
    path: str
    role: Role

    def covers(self, method: str, path: str) -> bool:
        """Return whether a request falls under it."""
        pattern = re.escape(self.path).replace(r"\*", _PART)
        return method in self.methods and re.fullmatch(pattern, path) is not None


_GET, _POST = ("GET",), ("POST",)
RULES: tuple[Rule, ...] = (
    Rule(_GET, "/api/health", "read"),
    Rule(_GET, "/api/status", "read"),
    Rule(_GET, "/api/training/*", "read"),
    Rule(_GET, "/api/models", "read"),
    Rule(_GET, "/api/models/*", "read"),
    Rule(_GET, "/api/trajectories", "read"),
    Rule(_GET, "/api/trajectories/*", "read"),
    Rule(_GET, "/api/trajectories/*/steps", "read"),
    Rule(_GET, "/api/benchmarks", "read"),
    Rule(_GET, "/api/benchmarks/*", "read"),
    Rule(_GET, "/api/agents", "read"),
    Rule(_GET, "/api/agents/*", "read"),
    Rule(_GET, "/api/verify", "read"),
    Rule(_GET, "/metrics", "read"),
    Rule(_GET, "/openapi.json", "read"),
    Rule(_POST, "/api/cron/agent-tick", "run"),
    Rule(_GET, "/api/cron/training-check", "run"),
    Rule(_POST, "/api/cron/training", "run"),
    Rule(_GET, "/.well-known/agent-card.json", "read"),
    Rule(_POST, "/a2a", "run"),
    Rule(_POST, "/a2a/sessions", "run"),
    Rule(("GET", "DELETE"), "/a2a/sessions/*", "run"),
    Rule(_POST, "/a2a/sessions/*/rpc", "run"),
    Rule(_GET, "/a2a/sessions/*/score", "run"),
    Rule(_POST, "/api/admin/training/trigger", "admin"),
    Rule(_POST, "/api/admin/models/deploy", "admin"),
    Rule(_POST, "/api/admin/models/rollback", "admin"),
    Rule(_POST, "/api/admin/agents", "admin"),
    Rule(_POST, "/api/admin/agents/*/points", "admin"),
    Rule(_POST, "/api/admin/agents/*/status", "admin"),
)


def role_for(method: str, path: str) -> Role:
    """Return the role that a request needs.

    Example:
        >>> role_for("GET", "/api/models"), role_for("DELETE", "/api/models")
        ('read', 'admin')
    """
    return next((rule.role for rule in RULES if rule.covers(method, path)), "admin")


def may(role: Role, needed: Role) -> bool:
    """Return whether a role is enough; each can do what those before it can.

    Example:
        >>> may("run", "read"), may("run", "admin")
        (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)
