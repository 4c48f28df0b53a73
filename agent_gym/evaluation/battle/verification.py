"""The proof of a replay: the same battle again, held against it step by step."""

from __future__ import annotations

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.envs.battle import MAPS, BattleBatch, BattleMap
from agent_gym.envs.battle.maps import ENGINE_VERSION
from agent_gym.evaluation.battle.players import Player
from agent_gym.evaluation.battle.recording import play, summed
from agent_gym.evaluation.battle.replay import Header, Replay, Row
from agent_gym.evaluation.battle.starts import Start, begun

DAMAGED = "Take another copy of the replay, or record it again"
OTHER = "Play it with the version of agent-gym that recorded it"


def verify(replay: Replay) -> BattleMap:
    """Play a replay again and return its map; what does not fit is refused with its step.

    The battle is asked first, so that a changed action or hash is named with the step it is in.
    What the engine cannot know (signals, the name and the checkpoint of the player) is held
    against the seal.
    """
    header, place = replay.header, replay.place
    battle = map_of(header, place)
    batch = begun(battle, [Start(header.seed, header.episode)])
    _same("the battle begins elsewhere", f"{place}, step 0", header.start, batch.digest(0))
    rewards = np.array([_again(batch, row, place) for row in replay.rows])
    if not batch.results.ended[0]:
        raise DataError(
            "the replay ends before the battle does",
            where=f"{place}, step {header.steps}",
            found="both sides alive, and time left",
            remedy=DAMAGED,
        )
    told = header.won, header.total_reward
    really = bool(batch.results.won[0]), summed(rewards)
    _same("the battle ended in another way", f"{place}, header", told, really)
    _same("something was changed since it was recorded", place, replay.seal, replay.right_seal)
    return battle


def verify_player(replay: Replay, player: Player) -> None:
    """Let a player decide again in the battle of a replay; the first other action is refused."""
    header, place = replay.header, replay.place
    known = header.checkpoint, header.mode
    if known != (player.version, player.mode):
        raise DataError(
            "somebody else played this",
            where=f"{place}, header",
            found=f"{header.mode}, checkpoint {header.checkpoint}",
            expected=f"{player.mode}, checkpoint {player.version}",
        )
    battle = map_of(header, place)
    (again,) = play(player, battle, [Start(header.seed, header.episode)])
    for row, actions in zip(replay.rows, again.actions.tolist(), strict=False):
        _same("the player decides otherwise", f"{place}, step {row.step}", row.actions, (*actions,))


def map_of(header: Header, place: str = "replay") -> BattleMap:
    """Return the map of a replay; that of another engine, or one that is not known, is refused."""
    if header.engine != ENGINE_VERSION:
        raise DataError(
            "this was played by another version of the engine",
            where=f"{place}, header",
            found=header.engine,
            expected=ENGINE_VERSION,
            remedy=OTHER,
        )
    if header.map not in MAPS:
        raise DataError(
            "no map has this name",
            where=f"{place}, header",
            found=header.map,
            expected=", ".join(MAPS),
            remedy=OTHER,
        )
    battle = MAPS[header.map].paying(header.reward)
    if header.map_hash != battle.content_hash:
        raise DataError(
            "the map has changed since",
            where=f"{place}, header",
            found=header.map_hash,
            expected=battle.content_hash,
            remedy=OTHER,
        )
    if header.agents != len(battle.agents):
        raise DataError(
            "the map has another team",
            where=f"{place}, header",
            found=f"{header.agents} agents",
            expected=len(battle.agents),
        )
    return battle


def _again(batch: BattleBatch, row: Row, place: str) -> float:
    """Play one step again and return what it paid."""
    where, choices = f"{place}, step {row.step}", len(batch.contract.actions)
    if batch.results.ended[0]:
        raise DataError(
            "the replay goes on after the battle has ended",
            where=where,
            found=f"an end at step {row.step - 1}",
            remedy=DAMAGED,
        )
    if not all(0 <= action < choices for action in row.actions):
        raise DataError(
            "not an action", where=where, found=row.actions, expected=f"0 to {choices - 1}"
        )
    batch.step(np.array([row.actions], np.int64))
    _same("an action was not legal", where, row.actions, tuple(batch.actions[0].tolist()))
    _same("the battle goes another way", where, row.state, batch.digest(0))
    return float(batch.results.rewards[0])


def _same(what: str, where: str, found: object, expected: object) -> None:
    if found != expected:
        raise DataError(what, where=where, found=found, expected=expected, remedy=DAMAGED)
