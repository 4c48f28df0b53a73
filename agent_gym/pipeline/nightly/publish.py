"""Writes what a night gave: the run's own folder first, then the files that show the last night."""

from __future__ import annotations

from pathlib import Path

from agent_gym.core.files import write_json, write_text
from agent_gym.pipeline.nightly.folders import cannot_write, put_in_place, unfinished_folder
from agent_gym.pipeline.nightly.samples import samples_document
from agent_gym.pipeline.nightly.setup import Setup, setup_document
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import (
    NightlyResult,
    diff_document,
    document_text,
    html_page,
    junit_xml,
    markdown_summary,
    prometheus_text,
    report_document,
)


def texts(result: NightlyResult) -> dict[str, str]:
    """Return every output as text; all are made before the first is written."""
    return {
        "report": document_text(report_document(result.run)),
        "diff": document_text(diff_document(result)),
        "junit": junit_xml(result),
        "summary": markdown_summary(result),
        "page": html_page(result),
        "metrics": prometheus_text(result),
    }


def publish(
    workspace: Workspace, result: NightlyResult, setup: Setup, outputs: dict[str, str]
) -> dict[str, Path]:
    """Write the run's folder and the last night's files, each whole or not at all."""
    keep_run(workspace, result, setup, outputs)
    places = workspace.outputs(planted=setup.subject.get("plant") is not None)
    for name, path in places.items():
        write_whole(path, outputs[name])
    return places


def keep_run(
    workspace: Workspace, result: NightlyResult, setup: Setup, outputs: dict[str, str]
) -> Path:
    """Write the folder of a run, which holds what a replay or a comparison needs."""
    target = workspace.run_folder(result.run.run_id)
    with unfinished_folder(target) as folder:
        write_json(folder / "samples.json", samples_document(result.run.samples))
        write_json(folder / "setup.json", setup_document(setup))
        if result.fresh is not None:
            old, new = (samples_document(side) for side in result.fresh)
            write_json(folder / "fresh.json", {"baseline": old, "candidate": new})
        names = {
            "report": "report.json",
            "diff": "diff.json",
            "page": "nightly.html",
            "summary": "summary.md",
        }
        for name, file in names.items():
            if name in outputs:
                write_text(folder / file, outputs[name])
        put_in_place(folder, target)
    return target


def write_whole(path: Path, text: str) -> None:
    """Write a text atomically; a disk that refuses is a StoreError and the old file stays."""
    try:
        write_text(path, text)
    except OSError as error:
        raise cannot_write(path, error) from error
