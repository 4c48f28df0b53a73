"""Past nights: what each metric was, how noisy, and what went wrong with the gate itself."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
from msgspec import Struct

from agent_gym.core.files import to_json
from agent_gym.evaluation.gate.diff import Diff
from agent_gym.evaluation.gate.samples import SuiteSamples


class Night(Struct, frozen=True, kw_only=True):
    """One finished run. Keys are ``scenario/metric``; those of ``identities`` are scenarios.

    ``values`` are means over the pinned seeds, ``noise`` the standard deviations of the paired
    losses where there were any, ``false_alarms`` what was called a regression although both sides
    were the same code.
    """

    run_id: str
    created_at: str
    values: Mapping[str, float]
    noise: Mapping[str, float] = {}
    identities: Mapping[str, str] = {}
    false_alarms: tuple[str, ...] = ()
    nondeterministic: tuple[str, ...] = ()


class History(Struct, frozen=True):
    """Nights in the order in which they were run."""

    nights: tuple[Night, ...] = ()

    def series(self, name: str, identity: str | None = None) -> list[tuple[str, float]]:
        """Return run and value of the latest unbroken stretch in which a metric meant the same.

        A night that says nothing of the identity is taken to be of the same one.
        """
        scenario = name.split("/", 1)[0]
        found: list[tuple[str, float]] = []
        for night in reversed(self.nights):
            was = night.identities.get(scenario)
            if identity is not None and was is not None and was != identity:
                break
            if name in night.values:
                found.append((night.run_id, night.values[name]))
        return found[::-1]

    def usual_noise(self, name: str, nights: int, least: int = 5) -> float | None:
        """Return the median noise of the last nights that had any; None if fewer than ``least``."""
        known = [night.noise[name] for night in self.nights if name in night.noise][-nights:]
        return float(np.median(known)) if len(known) >= least else None


def identity_of(identity: Mapping[str, str]) -> str:
    """Return a short digest of what makes a scenario comparable."""
    return blake2b(to_json(dict(identity)).encode(), digest_size=8).hexdigest()


def night_of(
    candidate: SuiteSamples, diff: Diff | None, created_at: str, *, same_code: bool = False
) -> Night:
    """Return the record of tonight, to be kept for the nights to come.

    Args:
        candidate: Tonight's samples on the pinned seeds.
        diff: What the gate said; None if there was no baseline.
        created_at: When the run began, ISO 8601 in UTC.
        same_code: Whether both sides were the same code; then each regression is a false alarm.
    """
    values = {}
    for scenario in candidate.scenarios:
        for metric in scenario.metrics:
            known = [sample.metrics.get(metric.name) for sample in scenario.samples]
            finite = [value for value in known if value is not None and np.isfinite(value)]
            if finite and metric.gates:
                values[f"{scenario.name}/{metric.name}"] = float(np.mean(finite))
    findings = () if diff is None else diff.findings
    return Night(
        run_id=candidate.run_id,
        created_at=created_at,
        values=values,
        noise={finding.id: finding.sd for finding in findings if finding.sd},
        identities={
            scenario.name: identity_of(scenario.identity) for scenario in candidate.scenarios
        },
        false_alarms=tuple(
            finding.id
            for finding in findings
            if same_code and finding.word == "regression" and not finding.must_be_zero
        ),
        nondeterministic=tuple(
            finding.id for finding in findings if finding.word == "nondeterministic"
        ),
    )
