"""Battles as they are played: one batch for many starts, and each of them as a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.manifest import installed_versions
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import BattleBatch, BattleMap
from agent_gym.envs.battle.maps import ENGINE_VERSION
from agent_gym.evaluation.battle.players import Decided, Player
from agent_gym.evaluation.battle.replay import Header, Replay, Row, scopes_of, told
from agent_gym.evaluation.battle.starts import Start, begun


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """One battle: what was done in it, ``[steps, agents]``, and what it brought.

    Actions are those that were played: what was not legal stands here as the stop it became.
    """

    start: Start
    actions: NDArray[np.int64]
    rewards: FloatArray
    won: bool
    signals: dict[str, FloatArray]

    @property
    def total_reward(self) -> float:
        """Return the sum of rewards, in the order in which they were paid."""
        return summed(self.rewards)


def summed(rewards: FloatArray) -> float:
    """Return the sum of rewards from first to last, as every other sum of them is made."""
    total = 0.0
    for reward in rewards.tolist():
        total += reward
    return total


def play(player: Player, battle: BattleMap, starts: Sequence[Start]) -> list[Episode]:
    """Play one battle from each start, all side by side."""
    batch = begun(battle, starts)
    decide = player.begin(batch, starts)
    diaries = [_Diary(start) for start in starts]
    going = np.ones(batch.n_envs, np.bool_)
    while going.any():
        decided = decide(batch)
        results = batch.step(decided.actions)
        for e in np.flatnonzero(going):
            diaries[e].note(batch, int(e), decided)
        going &= ~results.ended
    return [
        diary.episode(won=bool(won)) for diary, won in zip(diaries, batch.results.won, strict=True)
    ]


def record(player: Player, battle: BattleMap, start: Start) -> Replay:
    """Play one battle by itself and return it, sealed, with the hash of every state."""
    (episode,) = play(player, battle, [start])
    batch = begun(battle, [start])
    first, states = batch.digest(0), []
    for actions in episode.actions:
        batch.step(actions[None])
        states.append(batch.digest(0))
    header = Header(
        engine=ENGINE_VERSION,
        map=battle.name,
        reward=battle.reward.kind,
        map_hash=battle.content_hash,
        seed=start.seed,
        episode=start.episode,
        player=player.name,
        checkpoint=player.version,
        mode=player.mode,
        agents=batch.n_agents,
        steps=len(episode.actions),
        won=episode.won,
        total_reward=episode.total_reward,
        signals=scopes_of(episode.signals),
        start=first,
        versions=installed_versions(),
    )
    rows = tuple(
        Row(
            step=t + 1,
            actions=tuple(episode.actions[t].tolist()),
            state=state,
            signals=told(episode.signals, t),
        )
        for t, state in enumerate(states)
    )
    return Replay(header, rows, "").sealed()


class _Diary:
    """What one environment did, step after step."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._actions: list[NDArray[np.int64]] = []
        self._rewards: list[float] = []
        self._signals: dict[str, list[FloatArray]] = {}

    def note(self, batch: BattleBatch, e: int, decided: Decided) -> None:
        self._actions.append(batch.actions[e].copy())
        self._rewards.append(float(batch.results.rewards[e]))
        for name, array in decided.signals.items():
            self._signals.setdefault(name, []).append(np.array(array[e], np.float64))

    def episode(self, *, won: bool) -> Episode:
        return Episode(
            self._start,
            np.array(self._actions),
            np.array(self._rewards),
            won,
            {name: np.array(each) for name, each in self._signals.items()},
        )
