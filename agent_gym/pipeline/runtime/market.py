"""The markets of living agents: each walks through a snapshot tick by tick, then the next one.

A market is not stored. It is a recording, and what an agent did in it is stored: replayed, that
gives the same market again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, Observation, Outcome, Step
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.markets.snapshot.public_file import SUFFIX
from agent_gym.pipeline.runtime.calls import TickCall

DICE = "living agents"


class Market:
    """The market of one agent, at some tick.

    Attributes:
        world: The market itself.
        t: The tick that comes next.
        seen: What the agent sees now.
        over: The market has ended.
    """

    def __init__(self, path: Path, *, text: bool) -> None:
        self.world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=path, text=text))
        self.t, self.over = 0, False
        self.seen: Observation = self.world.reset(Seeds(0))[TRADER]

    @property
    def n_targets(self) -> int:
        """Return how many markets there are to trade in."""
        return self.world.floor.n_markets

    def start(self, seeds: Seeds) -> EpisodeStart:
        """Describe the market to an agent; its dice are those of this tick alone."""
        return self.world.start(TRADER, seeds.child(self.t))

    def play(self, targets: Iterable[float] | None) -> Outcome:
        """Play a tick; without a decision what is held is kept."""
        action = np.nan if targets is None else np.array(tuple(targets))
        outcome = self.world.advance(action)
        self.t += 1
        self.over = outcome.terminated or outcome.truncated
        self.seen = outcome.observation
        return outcome

    def replay(self, call: TickCall, episode: str) -> Step:
        """Play a stored tick again and return it as a step.

        Raises:
            DataError: The market gives something else than it gave then.
        """
        before, t = self.seen, self.t
        outcome = self.play(call.action)
        if (call.t, call.reward, call.over) != (t, outcome.reward, self.over):
            raise DataError(
                "a stored tick cannot be played again",
                where=f"tick {call.tick}, snapshot {call.snapshot_id}",
                found=f"reward {outcome.reward} at {t}",
                expected=f"reward {call.reward} at {call.t}",
                remedy="See that snapshot and rules are those it was played with",
            )
        action = call.action or (np.nan,) * self.n_targets
        decision = Decision(np.array(action), dict(call.signals), call.rationale)
        return Step(episode, t, TRADER, call.kind, before, decision, outcome)


class Snapshots:
    """The snapshots of a folder, by their ids, walked through in the order of their names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, snapshot_id: str) -> Path:
        """Return the file of a snapshot."""
        return self.folder / f"{snapshot_id}{SUFFIX}"

    def ids(self) -> tuple[str, ...]:
        """Return what is there."""
        return tuple(sorted(path.name.removesuffix(SUFFIX) for path in self._files()))

    def after(self, snapshot_id: str | None) -> str:
        """Return the next one; after the last comes the first again.

        Snapshots may come and go meanwhile.
        """
        known = self.ids()
        if not known:
            raise DataError(
                "there is no snapshot to live in",
                where=str(self.folder),
                expected=f"files *{SUFFIX}",
                remedy="`agent-gym harness` makes them",
            )
        later = (name for name in known if snapshot_id is not None and name > snapshot_id)
        return next(later, known[0])

    def _files(self) -> Iterable[Path]:
        return self.folder.glob(f"*{SUFFIX}")
