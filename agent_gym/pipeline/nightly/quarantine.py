"""The quarantine of a workspace: a night proposes, a person puts in, time lets out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.gate import (
    Diff,
    GatePolicy,
    History,
    Quarantine,
    entries_for,
    proposals,
)
from agent_gym.evaluation.gate.quarantine import QuarantineEntry
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.publish import write_whole
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import document_text


def read_quarantine(workspace: Workspace, clock: Clock) -> Quarantine:
    """Return what is held; DataError if the file says something else."""
    try:
        text = workspace.quarantine.read_text(encoding="utf-8")
        return Quarantine.from_document(json.loads(text), clock)
    except FileNotFoundError:
        return Quarantine((), clock)
    except (OSError, ValueError, DataError) as error:
        raise DataError(
            "the quarantine cannot be read",
            where=str(workspace.quarantine),
            found=str(error),
            remedy="Mend or remove the file",
        ) from error


def proposed(
    diff: Diff, history: History, held: Quarantine, policy: GatePolicy, *, same_code: bool
) -> list[str]:
    """Return what ought to be held, each with its reason and the command that does it."""
    trusted = [each for each in diff.findings if same_code or each.word != "regression"]
    return [
        f"{name} ought to be in quarantine: {reason}. Nothing is put there by itself; to hold it "
        f"for {policy.quarantine_days} days: {_command(name, reason)}"
        for name, reason in proposals(trusted, history, policy)
        if held.holding(name) is None
    ]


def hold(
    workspace: Workspace, names: Sequence[str], reason: str, owner: str, clock: Clock
) -> tuple[QuarantineEntry, ...]:
    """Put metrics into quarantine from now on, and return their entries."""
    held = read_quarantine(workspace, clock)
    added = entries_for([(name, reason) for name in names], owner, clock, GatePolicy())
    write_whole(workspace.quarantine, document_text(held.with_entries(added).document()))
    return added


def check_holdable(name: str, suite: Suite) -> None:
    """Refuse a metric that must be zero: it can never be held."""
    scenario, _, metric = name.partition("/")
    for each in suite.scenarios:
        if each.name == scenario and any(
            figure.name == metric and figure.must_be_zero for figure in each.metrics()
        ):
            raise ConfigError(
                "a metric that must be zero can never be in quarantine",
                where="--quarantine",
                found=name,
            )


def _command(name: str, reason: str) -> str:
    return shlex.join(["agent-gym", "nightly", "--quarantine", name, "--reason", reason])
