"""A run on its own: played, kept and shown, compared with nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.pipeline.nightly.ending import politely_ended, undisturbed
from agent_gym.pipeline.nightly.exits import FAILED, INTERRUPTED, OK
from agent_gym.pipeline.nightly.folders import sweep
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.lock import one_run
from agent_gym.pipeline.nightly.nightly import play_known
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.prepare import nightly_run, prepare
from agent_gym.pipeline.nightly.publish import keep_run, write_whole
from agent_gym.pipeline.nightly.run import SILENCE, Watch
from agent_gym.pipeline.nightly.times import iso
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import (
    NightlyResult,
    NightlyRun,
    document_text,
    report_document,
    troubles,
)


@dataclass(frozen=True, slots=True)
class SingleRun:
    """A run, its exit code, and where it was written."""

    exit_code: int
    run: NightlyRun
    places: dict[str, Path]
    played: int
    kept: int


def run_suite(
    options: RunOptions,
    workspace: Workspace,
    *,
    out: Path | None = None,
    clock: Clock | None = None,
    watch: Watch = SILENCE,
) -> SingleRun:
    """Play a suite and write its report to ``reports/run.json``, its folder, and ``out``."""
    clock = clock or SystemClock()
    with one_run(workspace.lock, clock, " ".join(options.command)), politely_ended():
        sweep(*workspace.folders())
        prepared = prepare(options, clock)
        with Ledger(workspace.ledger) as ledger:
            prepared, _, played = play_known(prepared, ledger, watch)
        run = nightly_run(prepared, played, iso(clock.now_ns()), {}, ())
        text = document_text(report_document(run))
        places = {"report": workspace.reports / "run.json"}
        if prepared.planted:
            places = {"report": workspace.reports / "self_test" / "run.json"}
        if out is not None:
            places["out"] = out
        with undisturbed():
            result = NightlyResult(run=run)
            places["folder"] = keep_run(workspace, result, prepared.setup, {"report": text})
            for name in ("report", "out"):
                if name in places:
                    write_whole(places[name], text)
    code = INTERRUPTED if run.status != "complete" else FAILED if troubles(run) else OK
    return SingleRun(code, run, places, played.played, played.kept)
