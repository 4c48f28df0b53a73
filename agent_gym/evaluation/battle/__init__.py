"""Battles that can be watched again: replays, their proof, and how a team fights.

Belongs here: the file of a replay, recording and verifying one, a battle tick by tick, figures of
behaviour and their comparison on the same starts.
May import: core, envs (the battle), agents (teams), the statistics.
Hands on: ``Replay``, ``Film`` and ``Comparison``; pages and videos are in ``reporting.battle``.
"""

from agent_gym.evaluation.battle.behaviour import METRICS, BehaviourMetric, behaviour
from agent_gym.evaluation.battle.comparison import Comparison, compare, lead_of_wins, measured
from agent_gym.evaluation.battle.film import Film, film_of, films
from agent_gym.evaluation.battle.players import (
    ENTROPY,
    INFORMATION,
    VALUE,
    Player,
    PolicyPlayer,
    ScriptPlayer,
    open_team,
)
from agent_gym.evaluation.battle.recording import Episode, play, record
from agent_gym.evaluation.battle.replay import (
    ENDING,
    Header,
    Replay,
    Row,
    read_header,
    read_replay,
    replays_in,
    write_replay,
)
from agent_gym.evaluation.battle.shots import Shot, shots_of
from agent_gym.evaluation.battle.starts import Start
from agent_gym.evaluation.battle.verification import verify, verify_player

__all__ = [
    "ENDING",
    "ENTROPY",
    "INFORMATION",
    "METRICS",
    "VALUE",
    "BehaviourMetric",
    "Comparison",
    "Episode",
    "Film",
    "Header",
    "Player",
    "PolicyPlayer",
    "Replay",
    "Row",
    "ScriptPlayer",
    "Shot",
    "Start",
    "behaviour",
    "compare",
    "film_of",
    "films",
    "lead_of_wins",
    "measured",
    "open_team",
    "play",
    "read_header",
    "read_replay",
    "record",
    "replays_in",
    "shots_of",
    "verify",
    "verify_player",
    "write_replay",
]
