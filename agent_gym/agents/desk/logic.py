"""LogicExecutor: a table of rules turns an accepted signal into a decision.

Rules are tried in the order of their priority. Each whose predicate holds changes the plan: it may
make the order smaller, choose who is asked, or end the matter by rejecting or deferring it. No rule
may make an order larger than the signal asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.logic_rules import DEFAULT_RULES
from agent_gym.agents.desk.logic_table import Plan, Rule, Situation
from agent_gym.agents.desk.schemas import Decision, FilterResult, RouteAction, Signal
from agent_gym.agents.desk.view import DeskView
from agent_gym.core.errors import AgentError, ConfigError

FINAL: frozenset[RouteAction] = frozenset({"reject", "defer"})


class LogicExecutor:
    """Applies a table of rules; the same situation always gives the same decision.

    Only ``coverage()`` remembers: it tells which rules have been tried, and which way they went.
    """

    def __init__(self, rules: Sequence[Rule] = DEFAULT_RULES) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (rule.priority, rule.id)))
        ids = [rule.id for rule in self.rules]
        if len(set(ids)) != len(ids):
            twice = sorted({name for name in ids if ids.count(name) > 1})
            raise ConfigError("two rules have the same id", found=", ".join(twice))
        self._held = dict.fromkeys(ids, 0)
        self._tried = dict.fromkeys(ids, 0)
        self._decided = 0

    def execute(
        self,
        signal: Signal,
        view: DeskView,
        context: ContextReader,
        result: FilterResult | None = None,
    ) -> Decision:
        """Return what is to be done with a signal that the filter accepted."""
        situation = Situation(signal, view, context, result)
        plan = Plan(signal.params.amount)
        applied: list[str] = []
        self._decided += 1
        for rule in self.rules:
            self._tried[rule.id] += 1
            if not rule.predicate(situation, plan):
                continue
            self._held[rule.id] += 1
            applied.append(rule.id)
            plan = _smaller(rule, plan, rule.effect(situation, plan))
            if plan.action in FINAL:
                break
        return Decision(
            signal.signal_id,
            plan.action,
            plan.size,
            plan.route,
            plan.code,
            tuple(applied),
            trace_id(signal.signal_id),
        )

    def coverage(self) -> dict[str, Any]:
        """Return how often each rule held and did not hold, and which have not done both."""
        rules = {
            rule.id: {
                "held": self._held[rule.id],
                "passed_over": self._tried[rule.id] - self._held[rule.id],
            }
            for rule in self.rules
        }
        branches = sum((row["held"] > 0) + (row["passed_over"] > 0) for row in rules.values())
        return {
            "decisions": self._decided,
            "rules": rules,
            "branch_share": branches / (2 * len(rules)) if rules else None,
            "never_held": [name for name, row in rules.items() if row["held"] == 0],
            "always_held": [
                name for name, row in rules.items() if row["held"] and not row["passed_over"]
            ],
        }


def trace_id(signal_id: str) -> str:
    """Return the name under which everything about a signal is traced; it follows from the id.

    Example:
        >>> trace_id("signal1") == trace_id("signal1")
        True
    """
    return blake2b(signal_id.encode(), digest_size=8).hexdigest()


def _smaller(rule: Rule, before: Plan, after: Plan) -> Plan:
    if 0.0 <= after.size <= before.size:
        return after
    raise AgentError(
        "a rule made an order larger",
        where=rule.id,
        found=after.size,
        expected=f"from 0 to {before.size}",
    )
