"""The door of a sandbox exchange for agents that speak in tools, such as language models.

It asks the exchange as any bot does, by ccxt with a key and a signature, and hands on what it says
in short: names, codes and messages are the exchange's own. It trades nothing and counts nothing.
"""

from agent_gym.apps.sandbox_door.client import SandboxClient
from agent_gym.apps.sandbox_door.desk import ExchangeDesk

__all__ = ["ExchangeDesk", "SandboxClient"]
