"""Figures for Prometheus: counted as things happen, or read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.automation.pipeline import TrainingStatus, Triggered
from agent_gym.pipeline.runtime import TickRound

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Figures(Protocol):
    """What is read when it is asked for."""

    @property
    def trajectories(self) -> dict[str, int]: ...
    @property
    def agents(self) -> dict[str, int]: ...
    @property
    def points(self) -> int: ...
    @property
    def champion(self) -> str | None: ...


class ServiceMetrics:
    """The figures of one service; names are few and fixed, whatever agents are called."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._ticks = Counter(
            "agent_gym_agent_ticks", "Ticks of agents", ["status"], registry=self._registry
        )
        self._asked = Counter(
            "agent_gym_trainings_asked", "Trainings asked for", ["status"], registry=self._registry
        )
        self._ended = Counter(
            "agent_gym_trainings_ended", "Trainings ended", ["ending"], registry=self._registry
        )

    def watch(self, read: Callable[[], Figures]) -> None:
        """Read these figures, too, whenever somebody asks."""
        self._registry.register(_Readings(read))

    def count_round(self, told: TickRound) -> None:
        """Count a round of ticks."""
        for row in told.rows:
            self._ticks.labels(row.status).inc()

    def count_asked(self, told: Triggered) -> None:
        """Count that a training was asked for."""
        self._asked.labels("started" if told.started else told.status).inc()

    def count_ended(self, told: TrainingStatus) -> None:
        """Count that a training has ended."""
        ending = told.outcome.ending if told.outcome is not None else "failed"
        self._ended.labels(ending.replace(" ", "_")).inc()

    def page(self) -> bytes:
        """Return all figures as text."""
        return generate_latest(self._registry)


class _Readings(Collector):
    def __init__(self, read: Callable[[], Figures]) -> None:
        self._read = read

    @override
    def collect(self) -> Iterable[GaugeMetricFamily | InfoMetricFamily]:
        """Read the figures; ``up`` is 0 while the database is away."""
        try:
            now = self._read()
        except AgentGymError:
            yield GaugeMetricFamily("agent_gym_up", "Whether the database answers", 0)
            return
        yield GaugeMetricFamily("agent_gym_up", "Whether the database answers", 1)
        for name, words, by in (
            ("agent_gym_trajectories", "Stored trajectories", now.trajectories),
            ("agent_gym_agents", "Agents of the service", now.agents),
        ):
            gauge = GaugeMetricFamily(name, words, labels=["kind"])
            for kind, count in by.items():
                gauge.add_metric([kind], count)
            yield gauge
        yield GaugeMetricFamily("agent_gym_points", "Points left to all agents", now.points)
        served = {"model": now.champion or ""}
        yield InfoMetricFamily("agent_gym_champion", "The model that serves", value=served)
