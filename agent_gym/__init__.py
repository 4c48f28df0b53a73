"""Agent Gym: the offline proving ground for trading agents.

Rooms, from the ground up: core, markets, exchange, (envs | agents | rollouts), evaluation, apps.
Each room's own door (its ``__init__``) says what belongs in it and what it hands on.
"""

__version__ = "0.1.0"
