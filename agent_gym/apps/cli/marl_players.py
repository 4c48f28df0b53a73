"""What the commands about battles share: who plays, on which map, from which starts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.envs.battle import MAPS, SCRIPTS, BattleMap, battle_map
from agent_gym.envs.battle.maps import RewardKind
from agent_gym.evaluation.battle import Player, PolicyPlayer, ScriptPlayer, open_team

FIRST_MAP = "3m"
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


class Battles(Config):
    """Who plays which battles."""

    policy: Path | None = Field(
        default=None, description="folder of a training, or of the policy in it"
    )
    script: str | None = Field(default=None, description=f"one of {', '.join(SCRIPTS)}")
    map: str | None = Field(
        default=None,
        description=f"one of {', '.join(MAPS)} (default the policy's own, {FIRST_MAP} for scripts)",
    )
    reward: RewardKind = Field(default="dense", description="dense, kills or sparse")
    drawn: bool = Field(
        default=False, description="draw actions by their chances, not always the likeliest"
    )
    seed: int = Field(default=0, ge=0, description="where starts come from")

    def player(self) -> Player:
        """Return who plays: the team in a folder, or a script."""
        if (self.policy is None) == (self.script is None):
            raise ConfigError(
                "either a policy plays or a script",
                where="--policy, --script",
                found="none of them" if self.policy is None else "both",
                remedy="Name one of them",
            )
        if self.policy is not None:
            return open_team(self.policy, greedy=not self.drawn)
        if self.drawn:
            raise ConfigError("a script has no chances to draw by", where="--drawn")
        return ScriptPlayer(str(self.script))

    def battle(self, player: Player) -> BattleMap:
        """Return the map that was named, or the one that suits the player."""
        own = player.policy.contract.map if isinstance(player, PolicyPlayer) else FIRST_MAP
        return battle_map(self.map or own).paying(self.reward)
