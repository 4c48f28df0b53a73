"""The sealed budget: every look at a sealed set is counted, and what it may spend is kept.

A look is kept before the set is opened, so one that a kill has cut short is spent all the same. A
candidate has one look at a set: asking again gives the same one, with the same verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, func, select

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.promotion import Look, Verdict, alpha_of
from agent_gym.pipeline.registry.ledger import Ledger
from agent_gym.pipeline.registry.refusals import SealedSetSpent
from agent_gym.pipeline.registry.tables import LOOKS

MAX_LOOKS = 20


class SealedBudget:
    """Looks at sealed sets; a set that was looked at too often is worn out."""

    def __init__(self, ledger: Ledger, max_looks: int = MAX_LOOKS) -> None:
        self._ledger, self.max_looks = ledger, max_looks

    def spend(
        self,
        sealed_set: str,
        candidate: str,
        alpha: float = 0.05,
        members: Collection[str] = (),
    ) -> Look:
        """Count a look of a candidate at a set; only then may the set be opened.

        Args:
            sealed_set: What the set is known by.
            candidate: Model hash of the challenger.
            alpha: Error rate over all candidates of this set; it cannot change later.
            members: Ids of its snapshots. A look at another set that shares one of them counts: a
                set is as worn as its most worn member, however it is put together.
        """
        with self._ledger.change() as change:
            connection = change.connection
            here = LOOKS.c.sealed_set == sealed_set
            row = connection.execute(
                select(LOOKS).where(here, LOOKS.c.candidate == candidate)
            ).one_or_none()
            if row is not None:
                return _look(row)
            agreed = connection.scalar(select(func.min(LOOKS.c.base_alpha)).where(here))
            spent = _spent(connection, sealed_set, members)
            if agreed is not None and agreed != alpha:
                raise ConfigError(
                    "a sealed set has one error rate for all its candidates",
                    where=sealed_set,
                    found=alpha,
                    expected=agreed,
                )
            if spent >= self.max_looks:
                raise SealedSetSpent(
                    "the sealed set is worn out",
                    where=sealed_set,
                    found=f"{spent} looks",
                    expected=f"at most {self.max_looks}",
                    remedy="Make a fresh sealed set: remove its files, then run `agent-gym "
                    "harness` with another --seed",
                )
            values = {
                "sealed_set": sealed_set,
                "number": spent + 1,
                "candidate": candidate,
                "base_alpha": alpha,
                "alpha": alpha_of(spent + 1, alpha),
                "verdict": None,
                "members": sorted(members),
                "at_ns": change.at_ns,
            }
            connection.execute(LOOKS.insert().values(values))
            change.say("sealed look", set=sealed_set, model=candidate, number=spent + 1)
            return Look(
                sealed_set=sealed_set,
                candidate=candidate,
                number=spent + 1,
                alpha=alpha_of(spent + 1, alpha),
            )

    def record(self, look: Look, verdict: Verdict) -> None:
        """Keep the verdict of a look; the same again has no effect, another one is refused."""
        told = (verdict.sealed_set, verdict.challenger, verdict.look, verdict.alpha)
        if told != (look.sealed_set, look.candidate, look.number, look.alpha):
            raise DataError("this verdict is of another look", found=told, expected=look)
        with self._ledger.change() as change:
            this = (LOOKS.c.sealed_set == look.sealed_set) & (LOOKS.c.number == look.number)
            row = change.connection.execute(select(LOOKS).where(this)).one_or_none()
            if row is None or _look(row) != look:
                raise DataError("this look was never counted", found=look)
            if row.verdict is None:
                change.connection.execute(
                    LOOKS.update().where(this).values(verdict=verdict.as_dict())
                )
                change.say(
                    "verdict",
                    set=look.sealed_set,
                    model=look.candidate,
                    promoted=verdict.promoted,
                    sentence=verdict.sentence,
                )
            elif Verdict.from_dict(row.verdict) != verdict:
                raise DataError(
                    "a candidate has one verdict on a sealed set, and it stands",
                    where=f"{look.sealed_set}, look {look.number}",
                    found=verdict.sentence,
                    expected=row.verdict["sentence"],
                )

    def verdict(self, candidate: str) -> Verdict | None:
        """Return the newest verdict on a candidate; None if there is none."""
        with self._ledger.look() as (connection, _):
            found = verdicts_of(connection, candidate)
        return found[-1] if found else None

    def looks(self, sealed_set: str) -> tuple[Look, ...]:
        """Return the looks at a set, in order."""
        asked = select(LOOKS).where(LOOKS.c.sealed_set == sealed_set).order_by(LOOKS.c.number)
        with self._ledger.look() as (connection, _):
            return tuple(_look(row) for row in connection.execute(asked))


def _spent(connection: Connection, sealed_set: str, members: Collection[str]) -> int:
    """Return how often the most worn member of a set was looked at, in whatever set."""
    looks: Counter[str] = Counter()
    here = 0
    for row in connection.execute(select(LOOKS.c.sealed_set, LOOKS.c.members)):
        here += row.sealed_set == sealed_set
        looks.update(row.members)
    return max([here, *(looks[member] for member in members)])


def verdicts_of(connection: Connection, candidate: str) -> tuple[Verdict, ...]:
    """Return the verdicts on a candidate over all sealed sets, oldest look first."""
    asked = select(LOOKS.c.verdict).where(LOOKS.c.candidate == candidate)
    rows = connection.execute(asked.order_by(LOOKS.c.at_ns, LOOKS.c.sealed_set)).all()
    return tuple(Verdict.from_dict(row.verdict) for row in rows if row.verdict is not None)


def _look(row: Row[Any]) -> Look:
    return Look(
        sealed_set=row.sealed_set, candidate=row.candidate, number=row.number, alpha=row.alpha
    )
