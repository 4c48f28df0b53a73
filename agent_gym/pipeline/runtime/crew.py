"""The processes of the agents, as many as may live at a time, and the models they may load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from agent_gym.core.clock import Clock
from agent_gym.pipeline.registry import ModelRegistry
from agent_gym.pipeline.runtime.config import RuntimeConfig
from agent_gym.pipeline.runtime.process import AgentProcess


@dataclass(frozen=True, slots=True)
class LoadableModel:
    """A model whose hashes and signature were checked in this process."""

    kind: str
    folder: Path


class Crew:
    """A process for each agent; those that were not asked for longest are ended."""

    def __init__(self, config: RuntimeConfig, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._processes: dict[str, AgentProcess] = {}
        self._models: dict[str, LoadableModel] = {}
        self._lock = Lock()

    def of(self, agent_id: str) -> AgentProcess:
        """Return the process of an agent."""
        with self._lock:
            found = self._processes.get(agent_id)
            if found is None:
                self._make_room()
                found = self._processes[agent_id] = AgentProcess(self._config, self._clock)
            return found

    def artifact(self, model: str, registry: ModelRegistry) -> LoadableModel:
        """Return a model to load; hashes and signature are checked when it is first asked for.

        Should its files be changed later, the agent that loads them has another hash, and its
        decision is refused.
        """
        with self._lock:
            if model not in self._models:
                artifact = registry.load(model)
                self._models[model] = LoadableModel(
                    artifact.manifest.kind, artifact.folder.absolute()
                )
            return self._models[model]

    def pids(self) -> dict[str, int]:
        """Return the processes that live, by agent."""
        return {
            name: process.pid
            for name, process in self._processes.items()
            if process.pid is not None
        }

    def close(self) -> None:
        """End them all."""
        with self._lock:
            for process in self._processes.values():
                process.close()
            self._processes.clear()

    def _make_room(self) -> None:
        idle = [name for name, process in self._processes.items() if process.idle]
        idle.sort(key=lambda name: self._processes[name].used_s)
        while idle and len(self._processes) >= self._config.processes:
            self._processes.pop(idle.pop(0)).close()
