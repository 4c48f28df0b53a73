"""A trajectory from its first step to the file: taken in, and added up."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from agent_gym.rollouts.database.encoding import LOG_PROB, Layout, StepRows, encode, layout_of
from agent_gym.rollouts.database.raw_steps import RawSteps, writer

MOST_RAW_STEPS = 16_384


class StepBuffer:
    """Takes the steps of one role in one episode.

    Attributes:
        write: Takes one step.
        raw: The steps that are not columns yet: all of them, unless there are very many.
        tally: What is known of those that are.
    """

    def __init__(self, *, observations: bool, version: str | None) -> None:
        self.raw = RawSteps(versions=[(0, version)])
        self.tally = Tally()
        self.write = writer(
            self.raw, observations=observations, most=MOST_RAW_STEPS, when_full=self._make_room
        )

    @property
    def is_over(self) -> bool:
        """Whether the last step said that the episode had ended."""
        if self.raw.steps:
            last = self.raw.steps[-1].after
            return bool(last.terminated or last.truncated)
        return self.tally.terminated or self.tally.truncated

    @property
    def n_steps(self) -> int:
        """How many steps were taken."""
        return self.tally.n_steps + len(self.raw.steps)

    def use_version(self, version: str | None) -> None:
        """Say that the decisions from here on come from another version of the policy."""
        self.raw.versions.append((len(self.raw.steps), version))

    def layout(self) -> Layout | None:
        """Return what the steps look like; None if there are none."""
        if self.tally.layout is not None:
            return self.tally.layout
        return layout_of(self.raw) if self.raw.steps else None

    def _make_room(self) -> None:
        """Make columns of a long trajectory's steps, so that not all of them are kept raw."""
        rows = encode([self.raw], self.layout() or Layout(1, None))
        self.tally.add(self.raw, rows, slice(0, len(self.raw.steps)))
        self.tally.blocks.append(rows.batch())
        self.raw.clear()


class Tally:
    """What can be said of a trajectory in short."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._every_log_prob = True
        self.blocks: list[Any] = []
        self.layout: Layout | None = None
        self.n_steps = 0
        self.total_reward = 0.0
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.terminated = self.truncated = False
        self.versions: dict[str | None, None] = {}

    @property
    def has_log_probs(self) -> bool:
        """Whether every decision has the log-probability with which it was made."""
        return self.n_steps > 0 and self._every_log_prob

    @property
    def digest(self) -> str:
        """Hash of all steps."""
        return self._hash.hexdigest()

    def add(self, raw: RawSteps, rows: StepRows, part: slice) -> None:
        """Count some more steps: those of ``raw``, which are a part of the rows."""
        first, last = raw.steps[0], raw.steps[-1].after
        if self.start_ns is None:
            self.start_ns, self.layout = first.before.ts, rows.layout
        self.n_steps += len(raw.steps)
        self.end_ns = last.observation.ts
        self.terminated, self.truncated = bool(last.terminated), bool(last.truncated)
        rewards = np.concatenate([[self.total_reward], rows.numbers["reward"][part]])
        self.total_reward = float(np.cumsum(rewards)[-1])  # one after the other, as the loop does
        self._every_log_prob &= not np.isnan(rows.numbers[LOG_PROB][part]).any()
        self.versions |= dict.fromkeys(rows.versions[part])
        self._hash.update(rows.digest_of(part))
