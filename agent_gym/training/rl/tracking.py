"""Others who are told how training goes: TensorBoard, and Weights & Biases if it is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from torch.utils.tensorboard.writer import SummaryWriter

from agent_gym.training.rl.callbacks import Callback, Progress, Verdict
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.setup import Plan


class Tracker(Callback, Protocol):
    """A callback that must be closed."""

    def close(self) -> None: ...


def make_trackers(plan: Plan, folder: RunFolder, start: int) -> list[Tracker]:
    """Return those that the config asks for; ``start`` is the step from which the run goes on."""
    asked, found = plan.config.trackers, list[Tracker]()
    if asked.tensorboard:
        found.append(TensorBoardTracker(folder, start))
    if asked.wandb != "off":
        found.append(WandbTracker(plan, folder, asked.wandb))
    return found


def scalars(progress: Progress) -> dict[str, float]:
    """Return what is told of an iteration, by the names the library uses."""
    told = {f"train/{name}": value for name, value in progress.losses.items()}
    ended = progress.episodes
    if ended:
        told["rollout/ep_rew_mean"] = sum(each.reward for each in ended) / len(ended)
        told["rollout/ep_len_mean"] = sum(each.length for each in ended) / len(ended)
    if progress.evaluations and progress.evaluations[-1][0] == progress.step:
        told["eval/mean_reward"] = progress.evaluations[-1][1]
    return told


class TensorBoardTracker:
    """Writes event files; what an earlier process wrote after its checkpoint is marked as void."""

    def __init__(self, folder: RunFolder, start: int) -> None:
        self._writer = SummaryWriter(
            str(folder.tensorboard), purge_step=start + 1 if start else None
        )

    def on_iteration(self, progress: Progress) -> Verdict:
        """Write the figures of an iteration, a thousand times a run at most."""
        if progress.crossed(max(1, progress.total // 1000)) or progress.last:
            for name, value in scalars(progress).items():
                self._writer.add_scalar(name, value, progress.step)
        return None

    def close(self) -> None:
        """Bring everything to the disk."""
        self._writer.close()


class WandbTracker:
    """Tells Weights & Biases; ``offline`` sends nothing anywhere."""

    def __init__(self, plan: Plan, folder: RunFolder, mode: str) -> None:
        wandb: Any = import_module("wandb")  # that it is there was checked with the plan
        self._run = wandb.init(
            project="agent-gym",
            name=f"{plan.config.algo}-{plan.recipe.env}-{plan.seed}",
            dir=str(folder.path),
            config=plan.config.model_dump(mode="json"),
            mode=mode,
        )

    def on_iteration(self, progress: Progress) -> Verdict:
        """Log the figures of an iteration."""
        if progress.crossed(max(1, progress.total // 1000)) or progress.last:
            self._run.log(scalars(progress), step=progress.step)
        return None

    def close(self) -> None:
        """End the run there."""
        self._run.finish()
