"""An evaluation as a tear sheet: the first agent is its subject, everything else stands beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.figures import FIGURES
from agent_gym.evaluation.protocol.figures import EVALUATION_FIGURES, figures_of
from agent_gym.evaluation.protocol.report import ArmReport, Evaluation
from agent_gym.evaluation.statistics import Interval
from agent_gym.evaluation.tearsheet import Regime, Sheet, Versus, regime_spans, sheet_of


def evaluation_sheet(evaluation: Evaluation, regimes: Sequence[Regime] | None = None) -> Sheet:
    """Return the sheet of an evaluation; every arm needs the ledger that its curve comes from."""
    subject = evaluation.agents[0]
    runs = {arm.label: arm.run for arm in evaluation.arms if arm.run is not None}
    if subject.run is None or subject.verdict is None:
        raise ConfigError("there is no path to draw", where=subject.label)
    verdict = subject.verdict
    base = sheet_of(
        subject.run,
        label=subject.label,
        title=f"Evaluation of {subject.label}",
        verdict=(verdict.word, verdict.why),
        regimes=regimes,
    )
    manifest = evaluation.manifest
    return replace(
        base,
        equity={label: run.equity for label, run in runs.items()},
        figures={arm.label: figures_of(arm) for arm in evaluation.arms},
        command=manifest.command,
        intervals={**base.intervals, **_intervals(subject)},
        versus=tuple(
            Versus(label, gap, f"bp a bar of {evaluation.unit}")
            for label, gap in subject.versus.items()
        ),
        provenance=dict(base.provenance) | _provenance(evaluation),
        manifest=manifest.model_dump(mode="json"),
        notes=(*_others(evaluation), *_held_out(evaluation), *base.notes),
        kind="Evaluation",
        shown=(*EVALUATION_FIGURES, *FIGURES),
    )


def _intervals(arm: ArmReport) -> dict[str, Interval]:
    found: dict[str, Interval] = {"net_bp_per_bar": arm.net, "gross_bp_per_bar": arm.gross}
    if arm.share is not None:
        found["share_of_attainable"] = arm.share
    return found


def _provenance(evaluation: Evaluation) -> dict[str, str]:
    standing = evaluation.agents[0].standing
    protocol = evaluation.protocol
    return {
        "protocol": ", ".join(f"{name} {value}" for name, value in protocol.items()),
        "trials on this market": f"{standing.trials}, {standing.effective_trials} of them apart",
        "config hash": evaluation.manifest.config_hash,
        "commit": evaluation.manifest.commit or "not known",
        "seeds": ", ".join(map(str, evaluation.manifest.seeds)),
    }


def _others(evaluation: Evaluation) -> list[str]:
    return [
        f"{arm.label}: {arm.verdict.word} ({arm.verdict.why})."
        for arm in evaluation.agents[1:]
        if arm.verdict is not None
    ] + [f"{each.label}: failed ({each.words()})." for each in evaluation.failed]


def _held_out(evaluation: Evaluation) -> list[str]:
    box = evaluation.lockbox
    if box is None:
        return []
    return [
        f"The last {box['rows']:,} bars are a lockbox: opened {box['openings']} times, tested by "
        f"{box['peeks']} other trials."
    ]


def regimes_of(
    evaluation: Evaluation, truth: Mapping[str, FloatArray] | None
) -> list[Regime] | None:
    """Return the hidden states of the path that is drawn, None where there are none."""
    run = evaluation.agents[0].run
    if truth is None or run is None or "regime" not in truth:
        return None
    names = [f"state {int(state)}" for state in truth["regime"]]
    return regime_spans(run.ts, run.bars.period_ns, names)
