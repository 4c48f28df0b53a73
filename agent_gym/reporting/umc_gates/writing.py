"""Three files a study: the figures, the page, the picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_gym.core.files import write_json, write_text
from agent_gym.reporting.umc_gates.ablation_page import ablation_markdown
from agent_gym.reporting.umc_gates.gates_page import gates_markdown
from agent_gym.reporting.umc_gates.pictures import ablation_svg, gates_svg

GATES, ABLATION = "umc_gates", "umc_ablation"


def places(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Return where the JSON, the page and the picture of a study go."""
    return folder / f"{name}.json", folder / f"{name}.md", folder / f"{name}.svg"


def write_gates(folder: Path, document: Mapping[str, Any]) -> None:
    """Write the document of the gates and what is made from it."""
    data, page, picture = places(folder, GATES)
    write_json(data, document)
    write_text(page, gates_markdown(document, picture.name))
    write_text(picture, gates_svg(document))


def write_ablation(folder: Path, document: Mapping[str, Any]) -> None:
    """Write the document of the ablation and what is made from it."""
    data, page, picture = places(folder, ABLATION)
    write_json(data, document)
    write_text(page, ablation_markdown(document, picture.name))
    write_text(picture, ablation_svg(document))
