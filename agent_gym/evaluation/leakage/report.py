"""All four checks of one learner, and the control that shows that they can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from agent_gym.agents.gate import AsymmetricGate, GateCounts, Projection, Tags
from agent_gym.core.errors import AgentError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.checks import (
    Figure,
    NonInterference,
    PredictiveLeakage,
    Weights,
    compare_weights,
    policy_influence,
    predictive_leakage,
    purity,
)
from agent_gym.evaluation.leakage.predictive import Predictive


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One thing that was learned: all its parameters by name, and the tags of its rows."""

    weights: Weights
    rows: Tags


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What a training left behind.

    Attributes:
        parts: Everything that was learned, by name.
        forecasts: What the model says on held-out primary states.
    """

    parts: Mapping[str, Part]
    forecasts: Predictive

    @property
    def weights(self) -> Weights:
        """Return the parameters of all parts."""
        return {
            f"{name}/{key}": array
            for name, part in self.parts.items()
            for key, array in part.weights.items()
        }

    @property
    def rows(self) -> Tags:
        """Return the tags of all training sets."""
        return Tags.concat([part.rows for part in self.parts.values()])


class Train(Protocol):
    """Trains one model from one seed, always the same one.

    ``gated=False`` is for the control alone: the same way of the data with the gate held open.
    """

    def __call__(self, *, echoes: bool, gated: bool) -> Trained: ...


class Live(Protocol):
    """Collects data where orders move prices, learns from them through the gate, and forecasts.

    ``trial`` changes what was left to chance in the collecting, and nothing else.
    """

    def __call__(self, *, echoes: bool, trial: int) -> Predictive: ...


@dataclass(frozen=True, slots=True)
class Control:
    """The first three numbers with the gate held open to a planted pattern; all must be broken.

    G1 and G2 are those of the part that others reached least: they must have reached every one.
    """

    purity: Figure
    non_interference: Figure
    predictive: Figure

    @property
    def missed(self) -> tuple[str, ...]:
        """Return the numbers that did not notice the leak."""
        seen = {"g1": self.purity, "g2": self.non_interference, "g3": self.predictive}
        return tuple(name for name, figure in seen.items() if figure.passed)

    @property
    def caught(self) -> bool:
        """Return whether every number noticed it."""
        return not self.missed


@dataclass(frozen=True, slots=True)
class LeakageReport:
    """The four numbers of one learner.

    Attributes:
        purity: G1, all training sets together.
        by_part: Rows of each part's training set that are not primary.
        non_interference: G2, with the digests of both trainings.
        predictive: G3 where prices are given.
        predictive_live: G3 where orders move prices; None if it was not asked for.
        influence: G4.
        projection: Its share, and what there was to hold back.
        counts: What came to the gate; one that withheld nothing was not tried.
        control: The same with the gate open.
    """

    purity: Figure
    by_part: Mapping[str, int]
    non_interference: NonInterference
    predictive: PredictiveLeakage
    predictive_live: PredictiveLeakage | None
    influence: Figure
    projection: Projection
    counts: GateCounts
    control: Control

    @property
    def figures(self) -> dict[str, Figure]:
        """Return the numbers by name."""
        figures = {
            "g1_purity": self.purity,
            "g2_non_interference": self.non_interference.figure,
            "g3_predictive_leakage": self.predictive.figure,
            "g4_policy_influence": self.influence,
        }
        if self.predictive_live:
            figures["g3_predictive_leakage_live"] = self.predictive_live.figure
        return figures

    @property
    def passed(self) -> bool:
        """Return whether every number is within its bound, and could have been otherwise."""
        within = all(figure.passed for figure in self.figures.values())
        return within and self.control.caught and not self.counts.idle

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        figures: dict[str, Any] = {name: f.as_dict() for name, f in self.figures.items()}
        figures["g1_purity"]["by_part"] = dict(self.by_part)
        figures["g2_non_interference"] |= {
            "sha256_with": self.non_interference.digest_with,
            "sha256_without": self.non_interference.digest_without,
        }
        figures["g4_policy_influence"] |= {
            "alpha": self.projection.alpha,
            "unbounded": self.projection.full_divergence,
        }
        if self.predictive_live:
            figures["g3_predictive_leakage_live"]["floor"] = self.predictive_live.floor
        control = self.control
        return figures | {
            "gate": asdict(self.counts),
            "control": {
                "g1_purity": control.purity.as_dict(),
                "g2_non_interference": control.non_interference.as_dict(),
                "g3_predictive_leakage": control.predictive.as_dict(),
                "caught": control.caught,
                "missed": list(control.missed),
            },
            "passed": self.passed,
        }


def check_leakage(
    train: Train,
    logits: Callable[[bool], FloatArray],
    gate: AsymmetricGate,
    live: Live | None = None,
) -> LeakageReport:
    """Measure the four numbers of a learner, and the control.

    Args:
        train: Trains it with others and without, through the gate and past it.
        logits: Its policy on held-out primary states; told whether others taught it as well.
        gate: The gate that ``train`` goes through.
        live: Trains it on data that its own orders moved.
    """
    alone = train(echoes=False, gated=True)
    beside = train(echoes=True, gated=True)
    leaky = train(echoes=True, gated=False)

    def leakage(other: Trained) -> PredictiveLeakage:
        arms = {True: other, False: alone}
        return predictive_leakage(lambda echoes: arms[echoes].forecasts, gate)

    influence, projection = policy_influence(logits, gate)
    return LeakageReport(
        purity=purity(beside.rows),
        by_part={name: int(purity(part.rows).value) for name, part in beside.parts.items()},
        non_interference=compare_weights(beside.weights, alone.weights),
        predictive=leakage(beside),
        predictive_live=_live_leakage(live, gate) if live else None,
        influence=influence,
        projection=projection,
        counts=gate.counts,
        control=_control(leaky, alone, leakage(leaky)),
    )


def _control(leaky: Trained, alone: Trained, predictive: PredictiveLeakage) -> Control:
    """Return the numbers of the part that others reached least."""
    rows = [purity(part.rows) for part in leaky.parts.values()]
    changes = [
        compare_weights(part.weights, alone.parts[name].weights).figure
        for name, part in leaky.parts.items()
    ]
    return Control(min(rows, key=_value), min(changes, key=_value), predictive.figure)


def _value(figure: Figure) -> float:
    return figure.value


def require_caught(report: LeakageReport) -> None:
    """Raise an AgentError unless the control broke all of its numbers."""
    if not report.control.caught:
        raise AgentError(
            "a planted leak was not noticed, so the leakage figures prove nothing",
            where=", ".join(report.control.missed),
            found="within their bounds with the gate open",
            expected="broken",
            remedy="See that others' rows reach the gate, and that the model can learn from them",
        )


def _live_leakage(live: Live, gate: AsymmetricGate) -> PredictiveLeakage:
    alone = live(echoes=False, trial=0)

    def forecast(echoes: bool) -> Predictive:
        return live(echoes=True, trial=0) if echoes else alone

    def floor(trial: int) -> Predictive:
        return live(echoes=False, trial=trial) if trial else alone

    return predictive_leakage(forecast, gate, floor)
