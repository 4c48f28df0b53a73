"""The growing files of one run, kept in step with its checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from agent_gym.core.files import write_json
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.loop import TrainingEpisode
from agent_gym.training.rl.metrics import metrics_columns
from agent_gym.training.rl.result import Episode, RunFolder
from agent_gym.training.rl.tables import Seen, Table


class Records:
    """The CSV files of a run: losses, episodes of training, greedy episodes."""

    def __init__(self, folder: RunFolder, config: TrainerConfig) -> None:
        self._folder = folder
        self._config = config
        self.metrics = Table(folder.metrics, metrics_columns(config.algo))
        self.episodes = Table(folder.episodes, TrainingEpisode._fields)
        self.evaluations = Table(folder.evaluations, Episode._fields)
        self._tables = {
            table.path.name: table for table in (self.metrics, self.episodes, self.evaluations)
        }

    def begin(self) -> None:
        """Remove what an earlier run has left and write the config and the headers."""
        folder = self._folder
        for path in (folder.checkpoints, folder.best, folder.last, folder.tensorboard):
            shutil.rmtree(path, ignore_errors=True)
        for path in (folder.result, folder.final_episodes):
            path.unlink(missing_ok=True)
        write_json(folder.config, self._config.model_dump(mode="json"))
        for table in self._tables.values():
            table.begin()

    def seen(self) -> dict[str, dict[str, Any]]:
        """Bring all rows to the disk and return size and hash of each file."""
        return {name: table.sync()._asdict() for name, table in self._tables.items()}

    def cut(self, seen: Mapping[str, Any]) -> None:
        """Drop the rows that came after a checkpoint, for they will come again."""
        self._folder.result.unlink(missing_ok=True)
        self._folder.final_episodes.unlink(missing_ok=True)
        for name, table in self._tables.items():
            kept = seen[name]  # a plain size in checkpoints of old
            table.cut(Seen(**kept) if isinstance(kept, Mapping) else Seen(int(kept), None))
