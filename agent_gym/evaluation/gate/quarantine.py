"""Quarantine: metrics that cannot be trusted for now. Shown, not gating, and never for long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agent_gym.core.clock import DAY_NS, Clock
from agent_gym.core.errors import DataError
from agent_gym.evaluation.gate.diff import Finding
from agent_gym.evaluation.gate.history import History
from agent_gym.evaluation.gate.policy import GatePolicy


class QuarantineEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric (``scenario/metric``), why it is held, who looks after it, from when to when."""

    id: str
    reason: str
    owner: str
    since_ns: int
    until_ns: int


class Quarantine:
    """The entries that are in force now; an entry ends by itself.

    Args:
        entries: What has been put into quarantine, ended or not; of one metric the latest counts.
        clock: Says what "now" is.
    """

    def __init__(self, entries: Iterable[QuarantineEntry], clock: Clock) -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: (entry.id, entry.until_ns)))
        self._clock = clock
        for entry in self.entries:
            if not entry.owner or not entry.reason or entry.until_ns <= entry.since_ns:
                raise DataError(
                    "a quarantine has an owner, a reason and an end after its beginning",
                    where=entry.id,
                    found=entry,
                )

    @classmethod
    def from_document(cls, document: Mapping[str, Any], clock: Clock) -> Quarantine:
        """Read what ``document`` wrote: ``{"entries": [...]}``; anything else is an error."""
        try:
            entries = msgspec.convert(document, dict[str, list[QuarantineEntry]])["entries"]
        except (msgspec.ValidationError, KeyError) as error:
            raise DataError("this is no list of quarantines", found=str(error)) from error
        return cls(entries, clock)

    def document(self) -> dict[str, Any]:
        """Return the entries as plain values for a JSON file."""
        return {"entries": [msgspec.to_builtins(entry) for entry in self.entries]}

    def holding(self, name: str) -> QuarantineEntry | None:
        """Return the entry that holds a metric now."""
        now = self._clock.now_ns()
        held = [
            entry
            for entry in self.entries
            if entry.id == name and entry.since_ns <= now < entry.until_ns
        ]
        return held[-1] if held else None

    def ended(self) -> tuple[QuarantineEntry, ...]:
        """Return the entries whose time is over; their metrics gate again."""
        now = self._clock.now_ns()
        return tuple(entry for entry in self.entries if entry.until_ns <= now)

    def with_entries(self, added: Iterable[QuarantineEntry]) -> Quarantine:
        """Return a quarantine with more entries."""
        return Quarantine((*self.entries, *added), self._clock)


def proposals(
    findings: Sequence[Finding], history: History, policy: GatePolicy
) -> tuple[tuple[str, str], ...]:
    """Return metric and reason of what ought to go into quarantine tonight.

    Two false alarms in twenty nights, a trajectory that cannot be repeated, or noise that has
    tripled. A metric that must be zero is never among them.
    """
    found = []
    for finding in findings:
        if finding.must_be_zero or finding.word == "quarantined":
            continue
        reason = _reason(finding, history, policy)
        if reason:
            found.append((finding.id, reason))
    return tuple(found)


def entries_for(
    proposed: Iterable[tuple[str, str]], owner: str, clock: Clock, policy: GatePolicy
) -> tuple[QuarantineEntry, ...]:
    """Return the entries that put proposals into force from now on, with their end."""
    now = clock.now_ns()
    return tuple(
        QuarantineEntry(
            id=name,
            reason=reason,
            owner=owner,
            since_ns=now,
            until_ns=now + policy.quarantine_days * DAY_NS,
        )
        for name, reason in proposed
    )


def _reason(finding: Finding, history: History, policy: GatePolicy) -> str:
    if finding.word == "nondeterministic":
        return "its trajectory cannot be repeated"
    nights = history.nights[-policy.quarantine_nights :]
    alarms = sum(finding.id in night.false_alarms for night in nights)
    if alarms >= policy.quarantine_alarms:
        return f"{alarms} false alarms in {len(nights)} nights"
    usual = history.usual_noise(finding.id, policy.noise_nights)
    if usual and finding.sd and finding.sd >= policy.quarantine_noise * usual:
        return f"its noise grew from {usual:.6g} to {finding.sd:.6g}"
    return ""
