"""Samples as JSON and back, without loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from agent_gym.core.errors import DataError
from agent_gym.evaluation.gate.samples import Sample, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric

SCHEMA = "agent_gym.samples/1"


def samples_document(samples: SuiteSamples) -> dict[str, Any]:
    """Return samples as plain values."""
    return {
        "schema": SCHEMA,
        "run_id": samples.run_id,
        "suite_id": samples.suite_id,
        "suite_version": samples.suite_version,
        "scenarios": [_scenario(scenario) for scenario in samples.scenarios],
    }


def read_samples(document: Mapping[str, Any], *, where: str) -> SuiteSamples:
    """Return the samples that samples_document() described; anything else is a DataError."""
    try:
        if document["schema"] != SCHEMA:
            raise DataError(
                "samples of another kind", where=where, found=document["schema"], expected=SCHEMA
            )
        return SuiteSamples(
            run_id=str(document["run_id"]),
            suite_id=str(document["suite_id"]),
            suite_version=int(document["suite_version"]),
            scenarios=tuple(_read_scenario(each) for each in document["scenarios"]),
        )
    except (KeyError, TypeError, ValueError, msgspec.ValidationError, ValidationError) as error:
        raise DataError(
            "these are no samples of a run", where=where, found=repr(error)[:200]
        ) from error


def _scenario(scenario: ScenarioSamples) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "identity": dict(scenario.identity),
        "metrics": [metric.model_dump(mode="json") for metric in scenario.metrics],
        "samples": [msgspec.to_builtins(sample) for sample in scenario.samples],
        "repeated": {str(seed): digest for seed, digest in scenario.repeated.items()},
    }


def _read_scenario(said: Mapping[str, Any]) -> ScenarioSamples:
    return ScenarioSamples(
        name=str(said["name"]),
        identity={str(key): str(value) for key, value in said["identity"].items()},
        metrics=tuple(Metric.model_validate(each) for each in said["metrics"]),
        samples=tuple(msgspec.convert(each, Sample) for each in said["samples"]),
        repeated={int(seed): str(digest) for seed, digest in said["repeated"].items()},
    )
