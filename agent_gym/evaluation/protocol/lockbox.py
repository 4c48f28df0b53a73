"""The lockbox: the last stretch of the data, opened once for each release, and it is written down.

Whoever looks twice at the last months tunes to them. So the opening is recorded, with who and when
and on which bytes, before anything in there is computed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.protocol.journal import Record
from agent_gym.evaluation.protocol.trials import Stretch, TrialRegistry

OPENING = "lockbox"
LOCKBOX = "lockbox"  # the name of the protocol of a trial in there


@dataclass(frozen=True, slots=True)
class Opening:
    """One opening: for which release, by whom, when, of what, and how often before."""

    release: str
    who: str
    at_ns: int
    agents: tuple[str, ...]
    market: Stretch
    before: int
    seal: str

    def words(self) -> str:
        """Return the record as a sentence."""
        when = datetime.fromtimestamp(self.at_ns // SECOND_NS, tz=UTC)
        return (
            f"release {self.release!r}, by {self.who}, {when:%Y-%m-%d %H:%M:%SZ}, "
            f"for {', '.join(self.agents)}, record {self.seal}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return asdict(self) | {
            "agents": list(self.agents),
            "market": self.market.as_dict(),
        }


class Lockbox:
    """The held-out stretch of a market, under the registry that watches over it."""

    def __init__(self, registry: TrialRegistry, market: Stretch) -> None:
        self._registry = registry
        self.market = market

    def openings(self) -> list[Opening]:
        """Return every opening of this stretch or of a part of it, oldest first."""
        return self._among(self._registry.journal.records())

    def peeks(self) -> int:
        """Return how many trials of other protocols have tested rows of this stretch."""
        return sum(
            trial.plan.protocol.get("name") != LOCKBOX and trial.plan.market.meets(self.market)
            for trial in self._registry.trials()
        )

    def facts(self, rows: int) -> dict[str, Any]:
        """Return what is held out and how often it was looked at; nothing of the clock."""
        openings = self.openings()
        return {
            "rows": rows,
            "first_ns": self.market.first_ns,
            "last_ns": self.market.last_ns,
            "openings": len(openings),
            "releases": [opening.release for opening in openings],
            "peeks": self.peeks(),
        }

    def refuse_again(self, release: str) -> None:
        """Raise ConfigError if it was opened for this release before; nothing is recorded."""
        self._refuse(release, self.openings())

    def open(self, release: str, who: str, agents: tuple[str, ...]) -> Opening:
        """Record the opening for a release; a second one for the same release is refused."""
        with self._registry.journal.writing() as pen:
            earlier = self._among(pen.records)
            self._refuse(release, earlier)
            body = {
                "release": release,
                "who": who,
                "agents": list(agents),
                "market": self.market.model_dump(mode="json"),
                "before": len(earlier),
            }
            return _opening(pen.add(OPENING, body))

    def _refuse(self, release: str, earlier: list[Opening]) -> None:
        if not release.strip():
            raise ConfigError("a lockbox is opened for a release", expected="--release LABEL")
        for opening in earlier:
            if opening.release == release:
                raise ConfigError(
                    "the lockbox was opened for this release before",
                    where=str(self._registry.path),
                    found=opening.words(),
                    expected="one opening a release",
                    remedy="See what was found with `agent-gym trials`, or make a new release",
                )

    def _among(self, records: list[Record]) -> list[Opening]:
        return [opening for opening in _openings(records) if opening.market.meets(self.market)]


def openings_in(registry: TrialRegistry) -> list[Opening]:
    """Return every opening of any lockbox, oldest first."""
    return _openings(registry.journal.records())


def _openings(records: list[Record]) -> list[Opening]:
    return [_opening(record) for record in records if record.kind == OPENING]


def _opening(record: Record) -> Opening:
    body = record.body
    return Opening(
        release=body["release"],
        who=body["who"],
        at_ns=record.at_ns,
        agents=tuple(body["agents"]),
        market=Stretch.model_validate(body["market"]),
        before=body["before"],
        seal=record.hash,
    )
