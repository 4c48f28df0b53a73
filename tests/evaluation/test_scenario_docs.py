from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_gym.core.registry import entry
from agent_gym.evaluation.scenarios import PLANTS, ScenarioConfig

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenarios.md").read_text("utf-8")
KINDS = ("signal_throughput", "execution_fallback", "protection_health", "sandbox_session")


def rows_of(heading: str) -> dict[str, list[str]]:
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(heading + "\n")]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_every_parameter_and_metric(kind: str) -> None:
    rows = rows_of(kind)
    fields = entry("scenario", kind).config.model_fields
    metrics = {m.name: m for m in ScenarioConfig(name="x", type=kind).metrics()}
    assert list(rows) == [*fields, *metrics]
    for name, field in fields.items():
        assert field.description, name
        assert rows[name][1] == field.description
    for name, metric in metrics.items():
        row = rows[name]
        assert row[:2] == [metric.unit, metric.direction]
        assert row[-1] == metric.meaning
        if metric.must_be_zero:
            assert row[2] == "must be 0"
        elif metric.gates:
            assert row[2:4] == [f"{metric.tolerance.rel:g}", f"{metric.tolerance.abs:g}"]
        else:
            assert row[2] == "does not gate"


def test_the_page_has_every_planted_fault() -> None:
    rows = rows_of("Planted faults")
    assert list(rows) == list(PLANTS)
    for name, plant in PLANTS.items():
        assert rows[name] == [plant.what, ", ".join(f"`{each}`" for each in plant.blamed)]
