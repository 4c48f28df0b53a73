"""The learned policy: an actor that decides by what the rest of the trader believes.

It is trained with torch (``learning``) and decides without it (``actor``), so an actor that was
trained elsewhere can be used where torch is not installed. It sees arrays alone: nothing that it
learns can reach the models which made them.
"""

from agent_gym.agents.umc.policy.actor import Actor
from agent_gym.agents.umc.policy.config import ActorConfig
from agent_gym.agents.umc.policy.lessons import Lessons

__all__ = ["Actor", "ActorConfig", "Lessons"]
