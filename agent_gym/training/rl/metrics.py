"""What the library logs of its learning and the episodes it learns from, as rows of CSV files."""

from __future__ import annotations

from statistics import fmean

from agent_gym.training.rl.callbacks import Progress, Verdict
from agent_gym.training.rl.tables import Cell, Table

ROWS = 1000
"""About how many rows a run has at most; short iterations are thinned out."""

COMMON = ("step", "iteration", "ep_reward_mean", "ep_length_mean", "learning_rate", "n_updates")
ON_POLICY = ("policy_loss", "value_loss", "entropy_loss", "explained_variance", "std")
ENTROPY = ("actor_loss", "critic_loss", "ent_coef", "ent_coef_loss")
LOSSES: dict[str, tuple[str, ...]] = {
    "ppo": (
        "loss",
        "policy_gradient_loss",
        "value_loss",
        "entropy_loss",
        "approx_kl",
        "clip_fraction",
        "clip_range",
        "explained_variance",
        "std",
    ),
    "a2c": ON_POLICY,
    "sac": ENTROPY,
    "tqc": ENTROPY,
    "td3": ("actor_loss", "critic_loss"),
    "dqn": ("loss",),
    "qrdqn": ("loss",),
}


class MetricsCallback:
    """Writes the losses of an iteration as a row, and the means of the last 100 episodes."""

    def __init__(self, table: Table, total: int) -> None:
        self._table = table
        self._every = max(1, total // ROWS)

    def on_iteration(self, progress: Progress) -> Verdict:
        """Add a row, if it is time."""
        if progress.crossed(self._every) or progress.last:
            self._table.append([self.row(progress)])
        return None

    def row(self, progress: Progress) -> list[Cell]:
        """Return the cells of an iteration; what was not measured is empty."""
        known: dict[str, Cell] = dict(progress.losses)
        known |= {"step": progress.step, "iteration": progress.iteration}
        ended = progress.model.ep_info_buffer
        if ended:
            known["ep_reward_mean"] = fmean(each["r"] for each in ended)
            known["ep_length_mean"] = fmean(each["l"] for each in ended)
        if "n_updates" in known:
            known["n_updates"] = int(progress.losses["n_updates"])
        return [known.get(name) for name in self._table.columns]


class PPOMetricsCallback(MetricsCallback):
    """The rows of PPO: its losses, the KL divergence, the clipped share, the explained variance."""


def metrics_columns(algo: str) -> tuple[str, ...]:
    """Return the columns of an algorithm.

    Example:
        >>> metrics_columns("td3")[-2:]
        ('actor_loss', 'critic_loss')
    """
    return COMMON + LOSSES[algo]


class EpisodesCallback:
    """Writes every episode of training as a row."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def on_iteration(self, progress: Progress) -> Verdict:
        """Add the episodes that ended in this iteration."""
        self._table.append(progress.episodes)
        return None
