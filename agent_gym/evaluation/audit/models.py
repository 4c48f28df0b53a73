"""An audit of a trained model: in a market all that applies, in a game what makes sense there.

Training is over when a model is audited, so what asks whether it learns is told as not checked,
with the reason; so is what asks about prices and money where there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from agent_gym.core.registry import Ref, make
from agent_gym.core.types import World
from agent_gym.envs.gym_world import GymWorld, GymWorldConfig
from agent_gym.evaluation.audit.finding import AuditReport, CheckReport, unchecked
from agent_gym.evaluation.audit.run import Check, audit
from agent_gym.evaluation.audit.subject import Subject
from agent_gym.markets.bars import Bars

OF_MODELS = {
    "learning": "A trained model learns nothing while it acts; how it learned is in the files of "
    "its run (evaluations.csv, report.html).",
    "options": "It has no settings of its own: they were those of its training.",
}
OF_GAMES = OF_MODELS | {
    "accounting": "A game keeps no books: there is no cash, position or fee.",
    "features": "What a game shows is its own state, not figures made from bars.",
    "leak-canary": "A game has no prices that could leak into what is seen.",
    "look-ahead": "A game has no bars whose future could be changed.",
    "time-reversal": "A game cannot be played on bars in another order.",
}


@dataclass(frozen=True, slots=True)
class Game:
    """Makes the same game whatever the bars: what an audit calls a world."""

    config: GymWorldConfig

    def __call__(self, bars: Bars) -> World:
        """Return the game; bars are nothing to it."""
        return GymWorld(self.config)


def audit_model(
    subject: Subject,
    checks: Sequence[str],
    skipped: Mapping[str, str],
    place: Mapping[str, Any] | None = None,
) -> AuditReport:
    """Run the checks that apply and tell of each of the others why it does not.

    Args:
        subject: The model as an agent, and where it plays.
        checks: What was asked for, in order.
        skipped: Checks that do not apply, with the reason.
        place: What stands in the report for the market; None: the bars themselves.
    """
    report = audit(subject, [name for name in checks if name not in skipped])
    found = {check.name: check for check in report.checks}
    told = [check for check in report.checks if check.name not in checks]
    told += [found.get(name) or _not_made(name, skipped[name]) for name in checks]
    return replace(
        report, checks=tuple(told), market=report.market if place is None else dict(place)
    )


def _not_made(name: str, reason: str) -> CheckReport:
    check = cast(Check, make("check", Ref(use=name)))
    return CheckReport(name, check.looks_for, (unchecked(reason),))
