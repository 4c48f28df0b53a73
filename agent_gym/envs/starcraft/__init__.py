"""StarCraft II itself as a world, for those who have the game.

The game is played by a worker in a process and an interpreter of its own, so its old libraries stay
out of this package. What agents see and may do is that of ``envs.battle``; win rates are never
compared between the two.
Hands on: ``examine`` (what this machine lacks). The world is in ``envs.starcraft.world`` and is not
imported here, because looking at a machine must not compile an engine.
"""

from agent_gym.envs.starcraft.examination import Fact, examine

__all__ = ["Fact", "examine"]
