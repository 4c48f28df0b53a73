"""Where battles begin: episode n under a seed, the same however many are played side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import BattleBatch, BattleMap


class Start(NamedTuple):
    """An episode under a seed, counted from 1, as ``BattleParallelEnv`` counts them."""

    seed: int
    episode: int

    @property
    def seeds(self) -> Seeds:
        """Return the node that all randomness of the episode comes from."""
        return Seeds(self.seed).child("episode", self.episode)


def begun(battle: BattleMap, starts: Sequence[Start]) -> BattleBatch:
    """Return a batch with one environment for each start, which stays as it ends.

    Every environment is put where a batch of one begins, so nothing depends on the others.
    """
    one = BattleBatch(battle, 1, auto_reset=False)
    batch = BattleBatch(battle, len(starts), auto_reset=False)
    for e, start in enumerate(starts):
        one.reset(start.seeds.child("battle"))
        batch.restore(e, one.capture(0))
    return batch
