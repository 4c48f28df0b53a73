"""How recordings reach the database: at once, or through the outbox while it is away."""

from __future__ import annotations

import logging

from agent_gym.core.clock import Clock
from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database.connection import Database, DatabaseDown
from agent_gym.rollouts.database.outbox import DeliveryReport, Document, Outbox, insert

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0

log = logging.getLogger(__name__)


class Delivery:
    """Puts documents into the database, each row once, and loses none.

    While the database is away it is asked again after a second, then after two, and so on; what
    waits follows as soon as it answers.
    """

    def __init__(self, database: Database, outbox: Outbox, clock: Clock) -> None:
        self._database, self._outbox, self._clock = database, outbox, clock
        self._pause_s = FIRST_PAUSE_S
        self._ask_at_s: float | None = None

    def record(self, document: Document) -> bool:
        """Put a document into the database, or into the outbox; True if it is delivered."""
        if self._ask_at_s is not None and self._clock.monotonic_s() < self._ask_at_s:
            self._outbox.keep(document)
            return False
        try:
            insert(self._database, document)
        except DatabaseDown as error:
            path = self._outbox.keep(document)
            log.warning("a recording waits in %s: %s", path.parent, error)
            self._ask_later()
            return False
        except StoreError:
            self._outbox.keep(document)  # whatever is wrong, what was played is not lost
            raise
        self._pause_s, self._ask_at_s = FIRST_PAUSE_S, None
        if self._outbox.waiting():
            self.deliver()
        return True

    def deliver(self) -> DeliveryReport:
        """Bring what waits into the database."""
        report = self._outbox.deliver(lambda document: insert(self._database, document))
        for name in report.refused:
            log.error("%s is no recording of ours, or was changed; it is set aside", name)
        if report.waiting:
            self._ask_later()
        return report

    def _ask_later(self) -> None:
        self._ask_at_s = self._clock.monotonic_s() + self._pause_s
        self._pause_s = min(2.0 * self._pause_s, LONGEST_PAUSE_S)
