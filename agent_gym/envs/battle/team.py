"""A script as a Team, so that the loop can play and record it."""

from __future__ import annotations

from collections.abc import Mapping

from agent_gym.core.errors import AgentError
from agent_gym.core.types import Decision, EpisodeStart, Observation, Role, Step
from agent_gym.envs.battle.scripts import Script, script
from agent_gym.envs.battle.world import BattleWorld


class ScriptedTeam:
    """Implements Team: plays a script in the world it was made for, whose battle it sees whole."""

    def __init__(self, world: BattleWorld, name: str) -> None:
        self._world, self._name = world, name
        self._script: Script | None = None

    @property
    def names(self) -> Mapping[Role, str]:
        """Return the script behind each role."""
        return dict.fromkeys(self._world.roles, f"battle/{self._name}")

    def reset(self, starts: Mapping[Role, EpisodeStart]) -> None:
        """Begin an episode; what the script draws comes from the seeds of the first role."""
        self._script = script(self._name, starts[self._world.roles[0]].seeds)

    def act(self, obs: Mapping[Role, Observation]) -> Mapping[Role, Decision]:
        """Ask the script for everybody."""
        if self._script is None:
            raise AgentError("no episode has begun", remedy="Call reset() first")
        actions = self._script(self._world.batch)[0]
        return {role: Decision(int(actions[i])) for i, role in enumerate(self._world.roles)}

    def observe(self, steps: Mapping[Role, Step]) -> None:
        """A script learns nothing."""
