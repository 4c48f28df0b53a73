"""Runs and baselines that were kept, read back by whatever name they are called."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent_gym.core.errors import AgentGymError, ConfigError, DataError
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric
from agent_gym.pipeline.nightly.baseline import Baseline, load_baseline, open_baseline
from agent_gym.pipeline.nightly.samples import SCHEMA, read_samples
from agent_gym.pipeline.nightly.setup import Setup, read_setup
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly.documents import REPORT_SCHEMA

LARGEST_BYTES = 2**30
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run of the workspace: what it was asked, and every seed that was recorded."""

    run_id: str
    setup: Setup
    samples: SuiteSamples
    fresh: tuple[SuiteSamples, SuiteSamples] | None = None

    def recorded(self, scenario: str, seed: int, side: int = 1) -> Sample | None:
        """Return what was recorded of a seed, of the candidate (1) or the baseline (0)."""
        fresh = None if self.fresh is None else self.fresh[side]
        for samples in (self.samples if side else None, fresh):
            found = None if samples is None else sample_in(samples, scenario, seed)
            if found is not None:
                return found
        return None


def open_run(workspace: Workspace, run_id: str) -> KeptRun:
    """Return a run by its id; ``latest`` is the last night's."""
    if run_id == LATEST:
        report = workspace.outputs(planted=False)["report"]
        run_id = str(_read(report).get("run_id", ""))
    folder = workspace.run_folder(run_id)
    if not folder.is_dir():
        known = sorted(path.name for path in workspace.runs.glob("[!.]*"))
        raise ConfigError(
            "no run has this id",
            found=run_id,
            where=str(workspace.runs),
            remedy=f"The last ones are: {', '.join(known[-5:]) or 'none'}",
        )
    fresh = None
    if (folder / "fresh.json").exists():
        said = _read(folder / "fresh.json")
        where = str(folder / "fresh.json")
        fresh = (
            read_samples(said.get("baseline", {}), where=where),
            read_samples(said.get("candidate", {}), where=where),
        )
    try:
        setup = read_setup(_read(folder / "setup.json"))
    except ValueError as error:
        raise DataError("a run cannot be read", where=str(folder), found=str(error)) from error
    samples = read_samples(_read(folder / "samples.json"), where=str(folder / "samples.json"))
    return KeptRun(run_id, setup, samples, fresh)


def find_baseline(workspace: Workspace, name: str) -> Baseline | None:
    """Return a baseline by its id, or by ``baseline`` or ``anchor``; None if it is no baseline."""
    if name in ("baseline", "current"):
        return load_baseline(workspace)
    if name == "anchor":
        return load_baseline(workspace, "anchor")
    if workspace.baseline_folder(name).is_dir():
        return open_baseline(workspace, name)
    return None


def samples_of(workspace: Workspace, name: str) -> SuiteSamples:
    """Return the samples that a run id, a baseline id or a file of either holds."""
    path = Path(name)
    if path.suffix == ".json" or "/" in name:
        return _from_file(path)
    baseline = find_baseline(workspace, name)
    return open_run(workspace, name).samples if baseline is None else baseline.samples


def sample_in(samples: SuiteSamples, scenario: str, seed: int) -> Sample | None:
    """Return one seed of one scenario, None if it is not there."""
    for each in samples.scenarios:
        if each.name == scenario:
            return next((sample for sample in each.samples if sample.seed == seed), None)
    return None


def _from_file(path: Path) -> SuiteSamples:
    document = _read(path)
    if document.get("schema") == SCHEMA:
        return read_samples(document, where=str(path))
    if document.get("schema") != REPORT_SCHEMA:
        raise DataError(
            "this file holds no run",
            where=str(path),
            found=str(document.get("schema"))[:80],
            expected=f"{REPORT_SCHEMA} or {SCHEMA}",
        )
    try:
        return SuiteSamples(
            run_id=str(document["run_id"]),
            suite_id=str(document["suite"]["id"]),
            suite_version=int(document["suite"]["version"]),
            scenarios=tuple(_scenario(each) for each in document["scenarios"]),
        )
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise DataError(
            "a report cannot be read", where=str(path), found=repr(error)[:200]
        ) from error


def _scenario(said: dict[str, Any]) -> ScenarioSamples:
    return ScenarioSamples(
        name=str(said["name"]),
        identity={str(key): str(value) for key, value in said["identity"].items()},
        metrics=tuple(
            Metric.model_validate(
                {"name": name} | {key: each[key] for key in _METRIC if key in each}
            )
            for name, each in sorted(said["metrics"].items())
        ),
        samples=tuple(
            Sample(
                seed=int(each["seed"]),
                status=each["status"],
                metrics=each.get("metrics") or {},
                trajectory_hash=each.get("trajectory_hash") or "",
                error=each.get("error"),
            )
            for each in said["samples"]
        ),
        repeated={int(seed): str(text) for seed, text in said.get("repeated", {}).items()},
    )


_METRIC = ("unit", "direction", "meaning", "gates", "must_be_zero", "tolerance", "floor")


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise DataError("this file is too large", where=str(path))
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError("there is no such file", where=str(path)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if not isinstance(found, dict):
        raise _unreadable(path, ValueError("it is no mapping"))
    return found


def _unreadable(path: Path, error: Exception) -> AgentGymError:
    return DataError("this file cannot be read", where=str(path), found=str(error)[:200])
