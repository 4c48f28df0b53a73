"""What an audit says: findings, what was found fine, and what could not be looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note", "fine", "unchecked"]
Figure: TypeAlias = int | float | str

SCHEMA_VERSION = 1
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "fine", "unchecked")


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of an audit, with the figures behind it.

    Attributes:
        severity: ``error`` (results cannot be trusted), ``warning`` (look at it before you do),
            ``note`` (good to know), ``fine`` (looked at, nothing wrong) or ``unchecked`` (could
            not be looked at; ``what`` says why).
        what: What was seen, in one or two sentences.
        evidence: Figures by name.
        fix: What to do about it; errors and warnings always say.
    """

    severity: Severity
    what: str
    evidence: Mapping[str, Figure] = field(default_factory=dict)
    fix: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "severity": self.severity,
            "what": self.what,
            "evidence": dict(self.evidence),
            "fix": self.fix,
        }


def error(what: str, fix: str, **evidence: Figure) -> Finding:
    """Return a finding that makes the results worthless."""
    return Finding("error", what, evidence, fix)


def warning(what: str, fix: str, **evidence: Figure) -> Finding:
    """Return a finding that somebody must look at."""
    return Finding("warning", what, evidence, fix)


def note(what: str, **evidence: Figure) -> Finding:
    """Return something good to know."""
    return Finding("note", what, evidence)


def fine(what: str, **evidence: Figure) -> Finding:
    """Return what was looked at and is as it should be."""
    return Finding("fine", what, evidence)


def unchecked(why: str, **evidence: Figure) -> Finding:
    """Return what could not be looked at, and why."""
    return Finding("unchecked", why, evidence)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What one check found."""

    name: str
    looks_for: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Severity:
        """Return the worst that was found; a note does not make a check less fine."""
        seen = {finding.severity for finding in self.findings}
        for severity in ("error", "warning", "fine"):
            if severity in seen:
                return severity
        return "fine" if "note" in seen else "unchecked"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "check": self.name,
            "looks_for": self.looks_for,
            "verdict": self.verdict,
            "findings": [finding.as_dict() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What all checks found in one subject."""

    subject: str
    market: Mapping[str, Any]
    seed: int
    checks: tuple[CheckReport, ...]

    def findings(self, *severities: Severity) -> tuple[Finding, ...]:
        """Return the findings of these severities, in the order of the checks."""
        return tuple(f for check in self.checks for f in check.findings if f.severity in severities)

    @property
    def failed(self) -> bool:
        """Say whether there is an error."""
        return bool(self.findings("error"))

    @property
    def summary(self) -> str:
        """Return the outcome in one sentence.

        Example:
            >>> AuditReport("rules/flat", {}, 0, ()).summary
            'No error and no warning in 0 checks.'
        """
        errors, warnings = len(self.findings("error")), len(self.findings("warning"))
        ran = [check for check in self.checks if check.verdict != "unchecked"]
        left = len(self.checks) - len(ran)
        words = (
            f"{_count(errors, 'error')} and {_count(warnings, 'warning')} "
            f"in {_count(len(ran), 'check')}".capitalize()
        )
        return words + (f"; {left} could not be made." if left else ".")

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        counts = Counter(f.severity for check in self.checks for f in check.findings)
        return {
            "schema_version": SCHEMA_VERSION,
            "subject": self.subject,
            "market": dict(self.market),
            "seed": self.seed,
            "summary": self.summary,
            "failed": self.failed,
            "counts": {severity: counts[severity] for severity in SEVERITIES},
            "checks": [check.as_dict() for check in self.checks],
        }


def _count(n: int, noun: str) -> str:
    amount = "no" if n == 0 and noun != "check" else str(n)
    return f"{amount} {noun}{'' if n == 1 or amount == 'no' else 's'}"
