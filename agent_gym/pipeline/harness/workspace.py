"""Everything of the loop in one folder: snapshots, trajectories, models, jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.files import home
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.benchmark.runner import IMPORTS
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.listening import Listener, Silence
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.registry import ModelDeploymentService, ModelRegistry, RolloutPolicy
from agent_gym.rollouts.choice import make_executor
from agent_gym.rollouts.database import TrajectoryStore


@dataclass(frozen=True, slots=True)
class LoopFolder:
    """Where the parts of the loop lie."""

    path: Path

    @classmethod
    def at(cls, path: Path | None) -> LoopFolder:
        """Return a folder that was asked for, or else that of the results."""
        return cls(home() if path is None else path)

    @property
    def trajectories(self) -> Path:
        """Return where steps and waiting recordings lie."""
        return self.path / "trajectories"

    @property
    def models(self) -> Path:
        """Return where artifacts and keys lie."""
        return self.path / "models"

    def snapshots(self, name: str) -> Path:
        """Return the folder of a set of snapshots."""
        return self.path / "snapshots" / name

    def workflows(self, store: TrajectoryStore) -> Path:
        """Return the database of the workflow engine; each store has one of its own.

        It lies with the trajectories, so who begins anew without them begins anew with the jobs.
        """
        url, folder = store.database.url, self.trajectories
        own = store.database.is_sqlite and Path(url.database or "").parent == folder.absolute()
        return folder / ("workflows.db" if own else f"workflows-{fingerprint(str(url))[:12]}.db")

    @property
    def reports(self) -> Path:
        """Return where the pages of runs lie."""
        return self.path / "reports" / "harness"

    @contextmanager
    def opened(
        self,
        config: AutomationConfig,
        *,
        rollout: RolloutPolicy | None = None,
        url: str | None = None,
        clock: Clock | None = None,
        listener: Listener | None = None,
    ) -> Iterator[Stages]:
        """Open store and registry, and close them again; processes that play live as long.

        Args:
            config: The settings of the loop.
            rollout: How carefully models go live.
            url: Of the database; SQLite in the folder if it is not given.
            clock: Tells the time.
            listener: Told how far the work is.
        """
        now = clock or SystemClock()
        with (
            TrajectoryStore.open(url, folder=self.trajectories, clock=now) as store,
            make_executor(config.workers, imports=IMPORTS) as executor,
        ):
            registry = ModelRegistry.open(store.database, self.models, clock=now)
            yield Stages(
                store=store,
                registry=registry,
                deployments=ModelDeploymentService(registry, rollout),
                training=self.snapshots("train"),
                sealed=self.snapshots("sealed"),
                rehearsal=self.snapshots("rehearsal"),
                folder=self.path / "jobs",
                executor=executor,
                config=config,
                clock=now,
                listener=listener or Silence(),
            )
