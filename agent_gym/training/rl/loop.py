"""The library's training loop, cut where a run can be stopped and gone on with.

``.learn()`` cannot go on exactly: it resets the environments, or else moves the end of training
and with it every schedule. Here its parts are called in its order with the original total, so
that a run is equal, bit by bit, to one of ``.learn()``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import TrainFreq
from typing_extensions import override

from agent_gym.core.errors import ConfigError

LOSSES = "train/"


class TrainingEpisode(NamedTuple):
    """One episode of training; ``step`` is how many steps had been taken when it ended."""

    step: int
    lane: int
    reward: float
    length: int


class EpisodeRecorder(BaseCallback):
    """Notes every episode that ends while steps are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: list[TrainingEpisode] = []

    @override
    def _on_step(self) -> bool:
        dones = self.locals["dones"]
        if dones.any():
            infos = self.locals["infos"]
            for lane in dones.nonzero()[0].tolist():
                told = infos[lane]["episode"]
                self._ended.append(
                    TrainingEpisode(self.num_timesteps, lane, float(told["r"]), int(told["l"]))
                )
        return True

    def take(self) -> list[TrainingEpisode]:
        """Return the episodes since the last call."""
        ended, self._ended = self._ended, []
        return ended


class Loop:
    """Drives a model from its first step to the last, an iteration at a time.

    Args:
        model: As it was built; it is set up to learn, which resets its environments.
        total: Steps of the whole training, from which schedules are reckoned.
    """

    def __init__(self, model: BaseAlgorithm, total: int) -> None:
        if not isinstance(model, OnPolicyAlgorithm | OffPolicyAlgorithm):
            raise ConfigError("no loop is known for this kind of model", found=type(model).__name__)
        self._model = model
        self._total = total
        self.recorder = EpisodeRecorder()
        model.set_logger(Logger(None, []))
        _, self._callback = model._setup_learn(total, self.recorder, reset_num_timesteps=True)
        self._callback.on_training_start({}, {})

    @property
    def step(self) -> int:
        """Return how many steps have been taken."""
        return int(self._model.num_timesteps)

    @property
    def done(self) -> bool:
        """Return whether the last step has been taken."""
        return self.step >= self._total

    def iterate(self) -> dict[str, float]:
        """Take steps, learn from them, and return what the library logs of its losses."""
        if isinstance(self._model, OnPolicyAlgorithm):
            self._on_policy(self._model)
        else:
            self._off_policy(self._model)
        logger = self._model.logger
        losses = {
            name.removeprefix(LOSSES): float(value)
            for name, value in logger.name_to_value.items()
            if name.startswith(LOSSES)
        }
        logger.dump()  # to nobody: it forgets what was told, so that no loss is told twice
        return losses

    def _on_policy(self, model: OnPolicyAlgorithm) -> None:
        assert model.env is not None  # it was given one when it was built
        model.collect_rollouts(
            model.env, self._callback, model.rollout_buffer, n_rollout_steps=model.n_steps
        )
        model._update_current_progress_remaining(model.num_timesteps, self._total)
        with np.errstate(all="ignore"):  # whether numbers are finite is judged after the iteration
            model.train()

    def _off_policy(self, model: OffPolicyAlgorithm) -> None:
        assert model.env is not None  # it was given one when it was built
        assert model.replay_buffer is not None  # made when it was built
        assert isinstance(model.train_freq, TrainFreq)  # made from a number when it was built
        rollout = model.collect_rollouts(
            model.env,
            train_freq=model.train_freq,
            action_noise=model.action_noise,
            callback=self._callback,
            learning_starts=model.learning_starts,
            replay_buffer=model.replay_buffer,
            log_interval=None,
        )
        if model.num_timesteps <= model.learning_starts:
            return
        wanted = model.gradient_steps
        updates = wanted if wanted >= 0 else rollout.episode_timesteps
        if updates > 0:
            with np.errstate(all="ignore"):
                model.train(batch_size=model.batch_size, gradient_steps=updates)
