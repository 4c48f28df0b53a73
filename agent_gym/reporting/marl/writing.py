"""Three files a study: the figures, the page, the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_gym.core.files import write_json, write_text
from agent_gym.reporting.marl.ablation_page import ablation_markdown
from agent_gym.reporting.marl.comparison_page import comparison_markdown
from agent_gym.reporting.marl.diagnosis_page import diagnosis_markdown
from agent_gym.reporting.marl.pictures import ablation_svg, comparison_svg, diagnosis_svg

COMPARISON, ABLATION, DIAGNOSIS = "marl", "marl_ablation", "marl_diagnosis"


def places(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Return where the JSON, the page and the picture of a study go."""
    return folder / f"{name}.json", folder / f"{name}.md", folder / f"{name}.svg"


def write_comparison(folder: Path, document: Mapping[str, Any], name: str = COMPARISON) -> None:
    """Write the document of a comparison and what is made from it."""
    _write(folder, name, document, comparison_markdown, comparison_svg)


def write_ablation(folder: Path, document: Mapping[str, Any], name: str = ABLATION) -> None:
    """Write the document of an ablation and what is made from it."""
    _write(folder, name, document, ablation_markdown, ablation_svg)


def write_diagnosis(folder: Path, document: Mapping[str, Any], name: str = DIAGNOSIS) -> None:
    """Write the document of a diagnosis and what is made from it."""
    _write(folder, name, document, diagnosis_markdown, diagnosis_svg)


def _write(
    folder: Path,
    name: str,
    document: Mapping[str, Any],
    page_of: Callable[[Mapping[str, Any], str], str],
    picture_of: Callable[[Mapping[str, Any]], str],
) -> None:
    data, page, picture = places(folder, name)
    text, drawn = page_of(document, picture.name), picture_of(document)
    write_json(data, document)
    write_text(page, text)
    write_text(picture, drawn)
