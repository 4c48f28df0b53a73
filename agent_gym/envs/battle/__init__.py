"""The battle: small teams of units against enemies that a script plays.

Its layout of observations, state and actions is that of SMAC; its rules are its own, compiled, so
win rates are never compared with those of another engine.
Hands on: ``BattleBatch`` (many at once), ``BattleWorld`` (one, by roles), ``BattleParallelEnv``
(PettingZoo), ``MAPS``, and the scripts that serve as yardsticks.
"""

from agent_gym.envs.battle.batch import BattleBatch, Results, Senses, Snapshot
from agent_gym.envs.battle.contract import Contract, contract_of
from agent_gym.envs.battle.maps import MAPS, BattleMap, RewardRule, TimeBase, battle_map
from agent_gym.envs.battle.parallel import BattleParallelEnv
from agent_gym.envs.battle.scripts import SCRIPTS, Script, script
from agent_gym.envs.battle.team import ScriptedTeam
from agent_gym.envs.battle.world import BattleConfig, BattleWorld

__all__ = [
    "MAPS",
    "SCRIPTS",
    "BattleBatch",
    "BattleConfig",
    "BattleMap",
    "BattleParallelEnv",
    "BattleWorld",
    "Contract",
    "Results",
    "RewardRule",
    "Script",
    "ScriptedTeam",
    "Senses",
    "Snapshot",
    "TimeBase",
    "battle_map",
    "contract_of",
    "script",
]
