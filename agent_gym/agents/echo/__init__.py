"""Echoes: a crowd of simple traders that a simulated market lives with.

Eight families of traders decide together in one compiled call a bar, move the price where a market
lets them, are judged by growth after costs, and are renewed by CMA-ES or MAP-Elites.
Hands on: ``EchoPopulation``, ``EchoConfig``, ``StrategyType``, ``Generation``, and ``Search``, the
CMA-ES that can be kept in a file.
"""

from agent_gym.agents.echo.config import EchoConfig
from agent_gym.agents.echo.evolution import Generation
from agent_gym.agents.echo.families import GENOME_SIZE, ORDER, StrategyType
from agent_gym.agents.echo.population import EchoPopulation
from agent_gym.agents.echo.search import Search

__all__ = [
    "GENOME_SIZE",
    "ORDER",
    "EchoConfig",
    "EchoPopulation",
    "Generation",
    "Search",
    "StrategyType",
]
