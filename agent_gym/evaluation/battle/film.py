"""A battle tick by tick: where everybody was, what was left of them, and whom they aimed at.

The engine shows a battle once a decision, which is every eight ticks. Here the same battle is
played on the same map with steps of a single tick, each repeating the decision that holds. After
every decision both must agree to the bit, so a film cannot show another battle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import VenueError
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import BattleBatch, BattleMap
from agent_gym.envs.battle.layout import Records
from agent_gym.envs.exact import EnvState
from agent_gym.evaluation.battle.replay import Replay
from agent_gym.evaluation.battle.starts import Start, begun
from agent_gym.evaluation.battle.verification import verify


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """One battle, ``[ticks + 1, units]``, agents first; row 0 is the start.

    ``decisions[t]`` is the tick before which step t was decided, ``actions`` are
    ``[steps, agents]``. ``target`` is whom a unit fights, as a row of units, or -1.
    """

    battle: BattleMap
    units: Records
    decisions: NDArray[np.int64]
    actions: NDArray[np.int64]
    rewards: FloatArray
    won: bool

    @property
    def ticks(self) -> int:
        """Return how many ticks the battle lasted."""
        return len(self.units) - 1

    @property
    def agents(self) -> int:
        """Return how many units are agents."""
        return len(self.battle.agents)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Return who lives at each tick."""
        alive: NDArray[np.bool_] = self.units["hp"] > 0.0
        return alive


def film_of(replay: Replay) -> Film:
    """Return the film of a replay, which is verified first."""
    header, battle = replay.header, verify(replay)
    (film,) = films(battle, [Start(header.seed, header.episode)], [replay.actions])
    return film


def films(
    battle: BattleMap, starts: Sequence[Start], actions: Sequence[NDArray[np.int64]]
) -> list[Film]:
    """Return the films of whole battles, played side by side from their starts."""
    steps = begun(battle, starts)
    ticks = _in_ticks(steps)
    shots, rewards = [ticks.units.copy()], []
    longest = max(map(len, actions))
    for t in range(longest):
        now = np.stack([each[min(t, len(each) - 1)] for each in actions])
        rewards.append(steps.step(now).rewards.copy())
        for _ in range(battle.time.ticks_per_step):
            # An order holds for all ticks of a step, even if it would not be given any more.
            ticks.senses.legal[...] = True
            ticks.step(now)
            shots.append(ticks.units.copy())
        if ticks.units.tobytes() != steps.units.tobytes():
            raise VenueError(
                "ticks and steps of the engine disagree", where=f"{battle.name}, step {t + 1}"
            )
    every, paid = np.stack(shots), np.stack(rewards)
    return [
        Film(
            battle=battle,
            units=every[: int(ticks.clocks["steps"][e]) + 1, e],
            decisions=np.arange(len(each)) * battle.time.ticks_per_step,
            actions=each,
            rewards=paid[: len(each), e],
            won=bool(steps.results.won[e]),
        )
        for e, each in enumerate(actions)
    ]


def _in_ticks(steps: BattleBatch) -> BattleBatch:
    """Return the same battles on a map whose steps are ticks."""
    battle = steps.map
    fine = replace(
        battle,
        time=replace(battle.time, ticks_per_step=1),
        step_limit=battle.step_limit * battle.time.ticks_per_step,
    )
    ticks = BattleBatch(fine, steps.n_envs, auto_reset=False)
    ticks.set_state(EnvState(steps.get_state().arrays, ticks.get_state().values))
    return ticks
