"""From trajectories in memory to a file of steps and the rows that name it."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from typing import Any

from agent_gym.core.errors import StoreError
from agent_gym.core.manifest import fingerprint
from agent_gym.rollouts.database.encoding import Layout, encode
from agent_gym.rollouts.database.outbox import Document
from agent_gym.rollouts.database.records import (
    EpisodeFigures,
    LlmCallRecord,
    TrajectoryContext,
    plain_values,
    storable,
    window_of,
)
from agent_gym.rollouts.database.step_files import StepFiles, WrittenFile
from agent_gym.rollouts.database.tally import StepBuffer, Tally
from agent_gym.rollouts.play import Failure, Status, describe_error

ID_LETTERS = 32

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Finished:
    """One role of an episode that has ended."""

    episode: str
    role: str
    agent: str
    context: TrajectoryContext
    status: Status
    error: Failure | None
    steps: StepBuffer | None
    wall_ms: float
    calls: list[LlmCallRecord]
    figures: EpisodeFigures = field(default_factory=EpisodeFigures)

    @property
    def n_steps(self) -> int:
        """How many steps it has."""
        return 0 if self.steps is None else self.steps.n_steps

    @property
    def tally(self) -> Tally:
        """What is known of its steps, once they are columns."""
        return Tally() if self.steps is None else self.steps.tally

    @property
    def final_status(self) -> str:
        """The status of the row; an episode without steps is never a completed one."""
        if self.status != "ok":
            return self.status
        return "completed" if self.tally.n_steps else "empty"

    @property
    def trainable(self) -> bool:
        """Whether something can be learned from it at all."""
        return (
            self.final_status == "completed"
            and self.context.purpose == "training"
            and self.context.group is not None
            and len(self.tally.versions) == 1
        )

    @property
    def trajectory_id(self) -> str:
        """What was played, by whom and how it went: the same again is the same trajectory."""
        said = self.context.model_dump(mode="json", exclude={"details"})
        steps = [self.tally.n_steps, self.tally.digest]
        whole = [self.episode, self.role, self.agent, self.final_status, said, steps]
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:ID_LETTERS]


def documents(batch: list[Finished], files: StepFiles, now_ns: int) -> Iterator[Document]:
    """Write the steps and yield the rows, one document for each layout of steps."""
    layouts: dict[Layout | None, list[Finished]] = {}
    for one in batch:
        layouts.setdefault(None if one.steps is None else one.steps.layout(), []).append(one)
    for layout, alike in layouts.items():
        blocks = [] if layout is None else _blocks(alike, layout)
        ids = [one.trajectory_id for one in alike]
        sizes = [one.tally.n_steps for one in alike]
        written = None
        if layout is not None and blocks:
            written = files.write(list(zip(ids, sizes, strict=True)), blocks, layout.schema())
        firsts = list(accumulate(sizes[:-1], initial=0))
        yield {
            "step_files": [] if written is None else [_file_row(written, len(alike), now_ns)],
            "trajectories": [
                _trajectory_row(one, made, _place(one, first, written), now_ns)
                for one, made, first in zip(alike, ids, firsts, strict=True)
            ],
            "llm_calls": [
                row
                for one, made in zip(alike, ids, strict=True)
                for row in _call_rows(one, made, now_ns)
            ],
        }


def _blocks(alike: list[Finished], layout: Layout) -> list[Any]:
    """Make columns of all steps, in the order of the trajectories.

    If they do not all fit, each trajectory is tried alone, and one that does not fit has failed.
    """
    try:
        return _encoded(alike, layout)
    except StoreError:
        return [block for one in alike for block in _encoded_alone(one, layout)]


def _encoded(alike: list[Finished], layout: Layout) -> list[Any]:
    buffers = [one.steps for one in alike if one.steps is not None and one.steps.raw.steps]
    if not buffers:
        return [block for one in alike for block in one.tally.blocks]
    rows = encode([buffer.raw for buffer in buffers], layout)
    whole, blocks, start, cut = rows.batch(), [], 0, 0
    for buffer in buffers:
        if buffer.tally.blocks:  # its earlier steps come before those in the rows
            blocks += [whole.slice(cut, start - cut), *buffer.tally.blocks]
            cut = start
        part = slice(start, start + len(buffer.raw.steps))
        buffer.tally.add(buffer.raw, rows, part)
        start = part.stop
    return [*blocks, whole.slice(cut)]


def _encoded_alone(one: Finished, layout: Layout) -> list[Any]:
    try:
        return _encoded([one], layout)
    except StoreError as error:
        log.warning("episode %s, role %s: %s", one.episode, one.role, error)
        one.status, one.error = "error", one.error or describe_error(error)
        return list(one.tally.blocks)


def _place(one: Finished, first: int, written: WrittenFile | None) -> tuple[str | None, int | None]:
    """Return the file of a trajectory and its first row there."""
    if written is None or not one.tally.n_steps:
        return None, None
    return written.file_hash, first


def _file_row(written: WrittenFile, n_trajectories: int, now_ns: int) -> dict[str, Any]:
    return {
        "file_hash": written.file_hash,
        "n_rows": written.n_rows,
        "n_bytes": written.n_bytes,
        "n_trajectories": n_trajectories,
        "state": "whole",
        "created_ns": now_ns,
    }


def _trajectory_row(
    one: Finished, made: str, place: tuple[str | None, int | None], now_ns: int
) -> dict[str, Any]:
    context, steps = one.context, one.tally
    told = context.model_dump(
        include={"agent_version", "snapshot_id", "rules_version", "seed", "run_id", "window_hours"}
    )
    window = context.window_id
    if window is None and steps.start_ns is not None:
        window = window_of(steps.start_ns, context.window_hours)
    return (
        told
        | one.figures.model_dump()
        | {
            "trajectory_id": made,
            "episode_id": storable(one.episode),
            "role": storable(one.role),
            "agent": storable(one.agent),
            "scenario_id": context.scenario,
            "group_key": context.group,
            "window_id": window,
            "purpose": context.purpose,
            "start_ns": steps.start_ns,
            "end_ns": steps.end_ns,
            "wall_ms": one.wall_ms,
            "status": one.final_status,
            "terminated": steps.terminated,
            "truncated": steps.truncated,
            "error": plain_values(one.error),
            "n_steps": steps.n_steps,
            "total_reward": steps.total_reward if math.isfinite(steps.total_reward) else None,
            "has_log_probs": steps.has_log_probs,
            "n_policy_versions": len(steps.versions),
            "trainable": one.trainable,
            "details": context.details,
            "judge_score": None,
            "judge_reasoning": None,
            "judged_ns": None,
            "used_in_training": False,
            "trained_in_batch": None,
            "step_file": place[0],
            "first_row": place[1],
            "steps_hash": steps.digest,
            "created_ns": now_ns,
        }
    )


def _call_rows(one: Finished, made: str, now_ns: int) -> Iterator[dict[str, Any]]:
    for number, call in enumerate(one.calls):
        yield call.model_dump() | {
            "call_id": fingerprint([made, number]),
            "trajectory_id": made,
            "at_ns": now_ns,
        }
