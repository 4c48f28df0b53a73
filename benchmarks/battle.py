"""(f) How fast are battles: agent-steps a second in 256 environments of ``3m``, one thread.

The limit is the compiled step with no check of the actions. The peer is SMAX, the battle of
JaxMARL. It is another game of the same size (other figures, observations and enemies), so speed is
compared and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import MAPS, BattleBatch, kernel, script
from benchmarks.contest import LIMIT, OURS, Entry, PeerEntry, contest
from benchmarks.peers import Fleet
from benchmarks.report import Goal, Row, rate_row

ENVS, CALLS, REPEATS = 256, 128, 4
LEAST = 1.5e6
OTHER_MAPS = ("2s_vs_1sc", "2s3z", "8m")


def _dice(name: str, shape: tuple[int, ...], choices: int) -> np.ndarray:
    return Seeds(3).child("battle", name).rng().integers(1, choices, shape)


def _stepping(step: Callable[[np.ndarray], object], actions: np.ndarray) -> Entry:
    def run() -> None:
        for chosen in actions:
            step(chosen)

    return Entry(run, actions.size, REPEATS)


def random_play(name: str) -> Entry:
    """Return an entry that steps a map with actions drawn beforehand, legal or not."""
    batch = BattleBatch(MAPS[name], ENVS)
    batch.reset(Seeds(4))
    shape = (CALLS, ENVS, batch.n_agents)
    return _stepping(batch.step, _dice(name, shape, len(batch.contract.actions)))


def kernel_alone(name: str) -> Entry:
    """Return the limit: the same without any check of the actions."""
    batch = BattleBatch(MAPS[name], ENVS)
    batch.reset(Seeds(4))

    def step(actions: np.ndarray) -> None:
        batch.actions[...] = actions
        kernel.step(batch.address)

    shape = (CALLS, ENVS, batch.n_agents)
    return _stepping(step, _dice(name, shape, len(batch.contract.actions)))


def fighting(name: str) -> Entry:
    """Return an entry that plays a script's battles again, with its actions written down."""
    batch, decide = BattleBatch(MAPS[name], ENVS), script("nearest", Seeds(0))
    batch.reset(Seeds(4))
    start, actions = batch.get_state(), np.empty((CALLS, ENVS, batch.n_agents), np.int64)
    for chosen in actions:
        chosen[...] = decide(batch)
        batch.step(chosen)
    batch.set_state(start)
    entry = _stepping(batch.step, actions)
    return Entry(entry.run, entry.units, REPEATS, after=lambda _: batch.set_state(start))


def battles(fleet: Fleet, rounds: int) -> Iterator[Row]:
    """Yield the row of this work."""
    own = {
        LIMIT: kernel_alone("3m"),
        OURS: random_play("3m"),
        "ours, fighting": fighting("3m"),
    }
    own |= {f"ours, {name}": random_play(name) for name in OTHER_MAPS}
    peers = {"smax": PeerEntry("steps", CALLS, CALLS, repeats=2)}
    standings = contest(own, peers, fleet, rounds)
    note = f"{ENVS} environments, one thread, actions drawn at random; 'fighting' replays a script"
    row = rate_row("battle", "agent-steps/s", standings, Goal(to_limit=0.9), note)
    row.goal += f", at least {LEAST / 1e6:g} million a second"
    row.met = row.met if row.ours >= LEAST else False
    yield row
