"""What a night would do, without doing it."""

from __future__ import annotations

from typing import Any

from agent_gym.core.clock import Clock
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.nightly import read_references
from agent_gym.pipeline.nightly.options import RunOptions
from agent_gym.pipeline.nightly.prepare import Prepared, prepare
from agent_gym.pipeline.nightly.run import SILENCE
from agent_gym.pipeline.nightly.workspace import Workspace


def plan_of(options: RunOptions, workspace: Workspace, clock: Clock) -> dict[str, Any]:
    """Return what would be played and compared; nothing is written."""
    references = read_references(workspace, None)
    baseline = None if references.baseline is None else references.baseline.record.id
    prepared = prepare(options, clock, baseline)
    known = _known(prepared, workspace)
    return {
        "suite": options.suite.id,
        "code_hash": prepared.code.code_hash,
        "commit": prepared.code.commit,
        "dirty": prepared.code.dirty,
        "date": prepared.setup.date,
        "subject": prepared.setup.subject,
        "baseline": baseline,
        "problem": references.problem,
        "scenarios": [
            {
                "name": task.scenario.name,
                "seeds": len(task.seeds),
                "known": known.get(task.scenario.name, 0),
                "to_play": len(task.seeds) - known.get(task.scenario.name, 0),
            }
            for task in prepared.tasks
        ],
    }


def _known(prepared: Prepared, workspace: Workspace) -> dict[str, int]:
    if not workspace.ledger.exists():
        return {}
    with Ledger(workspace.ledger, read_only=True) as ledger:
        found = prepared.player(ledger, SILENCE).found(prepared.tasks)
    return {name: sum(row["status"] == "ok" for row in rows) for name, rows in found.rows.items()}
