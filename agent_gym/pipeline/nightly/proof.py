"""Whether the baseline's side still plays as it was recorded; if not, nothing it says is believed.

The frozen code is the baseline's, but libraries, data files and the machine are today's. If one of
them has changed what is played, fresh seeds have it on both sides, look alike and show nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.pipeline.nightly.baseline import Baseline
from agent_gym.pipeline.nightly.code_identity import also_hashes, library_versions
from agent_gym.pipeline.nightly.crew import Crew, Row, Task
from agent_gym.pipeline.nightly.libraries import library_hashes
from agent_gym.pipeline.nightly.run import CUT_SHORT

PROOF = "proved.json"
PROVED_SEEDS = 24  # of a scenario: all that differ, if it has the usual number of pinned seeds
OUTSIDE = (
    "Something outside of the frozen code has changed: a library, a data or prompt file, or the "
    "machine; fresh seeds would have it on both sides and show nothing. Undo it, or approve a new "
    "baseline (--update-baseline --uncompared). Count such a file with --also or a module with "
    "--import, or put it into your package, where it is frozen"
)


def prove(baseline: Baseline, crew: Crew, proof: Path) -> None:
    """See once that the frozen code plays one seed of each scenario as it was recorded.

    What was proved is kept until libraries, Python, the machine or files named beside the code
    change; what differs tonight is proved anew each time (see FreshRerun).
    """
    stamp = {
        "machine": platform.node(),
        "versions": library_versions(),
        "also": also_hashes([path for path in map(Path, baseline.setup.also) if path.exists()]),
        "libraries": library_hashes(baseline.setup.libraries),
    }
    if _is_proved(proof, stamp):
        return
    tasks = [
        Task(baseline.suite.scenario(each.name), (_first_good(each).seed,))
        for each in baseline.samples.scenarios
    ]
    check_played(baseline, crew, tasks)
    write_json(proof, stamp)


def check_played(baseline: Baseline, crew: Crew, tasks: Sequence[Task]) -> None:
    """Play recorded seeds on the baseline's side and raise DataError if one goes differently."""
    rows = crew.play(tasks, _unheard)
    recorded = {
        (scenario.name, sample.seed): sample
        for scenario in baseline.samples.scenarios
        for sample in scenario.samples
    }
    played = [(task.scenario.name, row) for task in tasks for row in rows[task.scenario.name]]
    if any(row["status"] in CUT_SHORT for _, row in played):
        raise KeyboardInterrupt
    wrong = [
        (name, row, recorded[name, row["seed"]])
        for name, row in played
        if not _is_same(row, recorded[name, row["seed"]])
    ]
    if wrong:
        name, row, sample = wrong[0]
        raise DataError(
            "the baseline's own code does not give the baseline's figures here",
            where=f"{baseline.folder} scenario {name} seed {sample.seed}",
            found=f"{row['error'] or 'hash ' + row['trajectory_hash']}; "
            f"{len(wrong)} of {len(played)} seeds differ",
            expected=f"hash {sample.trajectory_hash}",
            remedy=OUTSIDE,
        )


def _is_same(row: Row, sample: Sample) -> bool:
    return bool(
        row["trajectory_hash"] == sample.trajectory_hash and row["metrics"] == sample.metrics
    )


def most_different(old: ScenarioSamples, new: ScenarioSamples) -> tuple[int, ...]:
    """Return the seeds that went differently, at most PROVED_SEEDS: the worst of each metric."""
    then = {each.seed: each for each in old.samples if each.status == "ok"}
    pairs = [
        (then[now.seed], now)
        for now in new.samples
        if now.status == "ok"
        and now.seed in then
        and now.trajectory_hash != then[now.seed].trajectory_hash
    ]
    orders = [
        [pair[1].seed for pair in sorted(pairs, key=lambda pair: -_loss(metric, *pair))]
        for metric in new.metrics
        if metric.gates
    ]
    chosen = dict.fromkeys(seed for rank in zip(*orders, strict=True) for seed in rank)
    return tuple(sorted(list(chosen)[:PROVED_SEEDS]))


def _loss(metric: Metric, old: Sample, new: Sample) -> float:
    before, now = old.metrics.get(metric.name), new.metrics.get(metric.name)
    return 0.0 if before is None or now is None else metric.sign * (before - now)


def _is_proved(proof: Path, stamp: Mapping[str, object]) -> bool:
    try:
        said: object = msgspec.json.decode(proof.read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return said == stamp


def proof_of(baseline: Baseline, caches: Path) -> Path:
    """Return where it is written that the frozen code still plays as it did."""
    return caches / "frozen" / baseline.record.id / PROOF


def _first_good(scenario: ScenarioSamples) -> Sample:
    return next(sample for sample in scenario.samples if sample.status == "ok")


def _unheard(_scenario: str, _rows: list[Row]) -> None:
    """Tell nobody."""
