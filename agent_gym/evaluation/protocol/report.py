"""What an evaluation hands on: every arm with its entry, figures and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_gym.core.manifest import Manifest
from agent_gym.evaluation.protocol.failures import FailedArm
from agent_gym.evaluation.protocol.lockbox import Opening
from agent_gym.evaluation.protocol.nulls import Gate
from agent_gym.evaluation.protocol.paths import Paths
from agent_gym.evaluation.protocol.permutation import RandomDraws
from agent_gym.evaluation.protocol.standing import Standing
from agent_gym.evaluation.protocol.verdict import Verdict
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.statistics import Interval

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class ArmReport:
    """One arm.

    Attributes:
        label: How the table calls it.
        baseline: It is there to be compared with.
        agent: Name and parameters; of a grid all of them.
        standing: Figures from the registry.
        net: Net a bar in basis points, with its interval.
        gross: The same before costs.
        verdict: The word and why; for the agents that were asked about.
        p_random: How rare such a growth is among random positions with the same turnover.
        p_unknown: Why that cannot be said of an agent, where it cannot.
        random: What these random positions came to; over several seeds, summed up.
        versus: Difference of the nets to each baseline.
        share: Share of the attainable, where that is known.
        lucky: Seeds with PSR above .95, where seeds were drawn.
        gates: What it passed on a market without anything to find.
        folds: Net a bar on the test of each fold, and what was chosen for it or for a combination.
        lockbox_growth: Log growth in the lockbox, if that was opened for it.
        run: The ledger over the tested rows, where there is one.
        paths: Every path, where groups were combined; the other figures are of the middle one.
    """

    label: str
    baseline: bool
    agent: dict[str, Any]
    standing: Standing
    net: Interval
    gross: Interval
    verdict: Verdict | None = None
    p_random: float | None = None
    p_unknown: str | None = None
    random: RandomDraws | None = None
    versus: Mapping[str, Interval] = field(default_factory=dict)
    share: Interval | None = None
    lucky: int | None = None
    gates: tuple[Gate, ...] = ()
    folds: tuple[dict[str, Any], ...] = ()
    lockbox_growth: float | None = None
    run: BacktestResults | None = None
    paths: Paths | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; nothing depends on the clock or the number of workers."""
        return {
            "label": self.label,
            "baseline": self.baseline,
            "agent": self.agent,
            "net_bp_per_bar": self.net.as_dict(),
            "gross_bp_per_bar": self.gross.as_dict(),
            "standing": self.standing.as_dict(),
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
            "p_random": self.p_random,
            "p_unknown": self.p_unknown,
            "random_growth": None if self.random is None else asdict(self.random),
            "versus": {label: gap.as_dict() for label, gap in self.versus.items()},
            "share_of_attainable": None if self.share is None else self.share.as_dict(),
            "seeds_with_psr_above_95": self.lucky,
            "gates": [gate.as_dict() for gate in self.gates],
            "folds": list(self.folds),
            "paths": None if self.paths is None else self.paths.as_dict(),
            "lockbox_growth": self.lockbox_growth,
            "metrics": None if self.run is None else self.run.metrics.as_dict(),
            "equity_hash": None if self.run is None else self.run.equity_hash,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What ``agent-gym evaluate`` prints; the tear sheet takes it too.

    Attributes:
        protocol: Name and segments.
        market: What was traded, from when to when it was tested.
        unit: ``growth`` (mean log return of equity) or ``gain`` (mean return of equity), a bar.
        arms: The agents first, then the baselines.
        manifest: What makes the same numbers again.
        attainable: The optimum on the same paths, where the market is known.
        lockbox: What is held out, how often it was opened and looked at.
        opening: The record, if it was opened now.
        spa: Hansen's p-values: might the best of all agents be no better than this baseline?
        failed: Agents that could not be judged, such as those that decided with later bars.
    """

    protocol: dict[str, Any]
    market: dict[str, Any]
    unit: str
    arms: Sequence[ArmReport]
    manifest: Manifest
    attainable: dict[str, Any] | None = None
    lockbox: dict[str, Any] | None = None
    opening: Opening | None = None
    spa: Mapping[str, dict[str, float]] = field(default_factory=dict)
    failed: tuple[FailedArm, ...] = ()

    @property
    def agents(self) -> list[ArmReport]:
        """Return the arms that were asked about."""
        return [arm for arm in self.arms if not arm.baseline]

    @property
    def passed(self) -> bool:
        """Say whether no agent failed and all passed every gate; true where there is none."""
        return not self.failed and all(gate.passed for arm in self.agents for gate in arm.gates)

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "protocol": self.protocol,
            "market": self.market,
            "unit": self.unit,
            "arms": [arm.as_dict() for arm in self.arms],
            "failed": [each.as_dict() for each in self.failed],
            "gates_passed": self.passed,
            "attainable": self.attainable,
            "lockbox": self.lockbox,
            "spa": dict(self.spa),
            "manifest": self.manifest.model_dump(mode="json"),
        }
