"""Has the world changed? Losses that rise, features that move, probabilities that lie.

Every alarm is set so that a world that stays the same hardly ever raises it: what is compared many
times is corrected for that, and a calibration error must be larger than chance alone would show.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from river.drift import ADWIN
from scipy.stats import ks_2samp

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.desk.config import DriftConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.online import Companion
from agent_gym.training.desk.scores import bin_of, losses
from agent_gym.training.desk.significance import benjamini_hochberg

Sensor: TypeAlias = Literal["loss", "companion_loss", "psi", "ks", "ece"]
BINS = 10
NULL_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class DriftAlarm:
    """What a sensor saw, and after how many labelled signals."""

    sensor: Sensor
    after: int
    at: float
    detail: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the alarm as plain values."""
        return {"sensor": self.sensor, "after": self.after, "at": self.at, "detail": self.detail}


class LossSensor:
    """ADWIN on capped log losses; it speaks only when they rise."""

    def __init__(self, config: DriftConfig) -> None:
        self._cap = config.loss_cap
        make: Any = ADWIN
        self._adwin = make(delta=config.adwin_delta, clock=config.adwin_clock)

    def rises(self, loss: float) -> bool:
        """Take in one loss and return whether the level has just been found higher."""
        before = float(self._adwin.estimation)
        self._adwin.update(min(loss, self._cap) / self._cap)
        return bool(self._adwin.drift_detected) and float(self._adwin.estimation) > before


class DriftMonitor:
    """Follows labelled signals and collects alarms.

    Args:
        model: The champion; without one only the companion's losses are followed.
        feature_names: Columns of the rows that come.
        config: The limits.
        seeds: Where the draws behind the calibration alarm come from.
    """

    def __init__(
        self,
        model: DeskModel | None,
        feature_names: tuple[str, ...],
        config: DriftConfig | None = None,
        seeds: Seeds | None = None,
    ) -> None:
        self._config = config or DriftConfig()
        self._model = model
        self._names = feature_names
        self._rng = (seeds or Seeds(0)).child("drift").rng()
        self._companion = Companion(feature_names)
        self._loss = LossSensor(self._config)
        self._companion_loss = LossSensor(self._config)
        self._rows: deque[FloatArray] = deque(maxlen=self._config.window)
        self._said: deque[tuple[float, int]] = deque(maxlen=self._config.ece_window)
        self.seen = 0

    def follow(self, data: Dataset) -> list[DriftAlarm]:
        """Take in a table in the order of time and return all alarms."""
        p = None
        if self._model is not None:
            p = self._model.probabilities(self._model.aligned(data.X, data.feature_names))
        alarms = []
        for i in range(len(data)):
            said = None if p is None else float(p[i])
            alarms += self.step(data.X[i], int(data.y[i]), said, float(data.t[i]))
        return alarms

    def step(self, row: FloatArray, y: int, said: float | None, at: float) -> list[DriftAlarm]:
        """Take in one labelled signal and return the alarms that it raises."""
        self.seen += 1
        self._rows.append(row)
        found: list[tuple[Sensor, dict[str, Any]]] = []
        label = np.array([y], dtype=np.int8)
        followed = self._companion.step(row, bool(y))
        if self._companion_loss.rises(float(losses(np.array([followed]), label)[0])):
            found.append(("companion_loss", {}))
        if said is not None:
            self._said.append((said, y))
            if self._loss.rises(float(losses(np.array([said]), label)[0])):
                found.append(("loss", {}))
        if self.seen % self._config.check_every == 0:
            found += self._looks()
        return [DriftAlarm(sensor, self.seen, at, detail) for sensor, detail in found]

    def _looks(self) -> list[tuple[Sensor, dict[str, Any]]]:
        found: list[tuple[Sensor, dict[str, Any]]] = []
        if self._model is not None and len(self._rows) == self._config.window:
            recent = self._model.aligned(np.array(self._rows), self._names)
            moved = feature_drift(self._model.reference, recent, self._model.feature_names)
            moved = {n: d for n, d in moved.items() if n not in self._config.ignored}
            over = {n: d["psi"] for n, d in moved.items() if d["psi"] > self._config.psi_limit}
            if len(over) >= self._config.psi_features:
                found.append(("psi", over))
            far = {
                n: d["ks_p_bh"] for n, d in moved.items() if d["ks_p_bh"] < self._config.ks_alpha
            }
            if far:
                found.append(("ks", far))
        if len(self._said) == self._config.ece_window:
            wrong = self._calibration()
            if wrong is not None:
                found.append(("ece", wrong))
        return found

    def _calibration(self) -> dict[str, float] | None:
        p = np.array([said for said, _ in self._said])
        y = np.array([label for _, label in self._said], dtype=np.float64)
        error = float(binned_errors(p, y[None, :])[0])
        if error <= self._config.ece_limit:
            return None
        drawn = (self._rng.random((NULL_DRAWS, p.size)) < p).astype(np.float64)
        chance = float(np.mean(binned_errors(p, drawn) >= error))
        if chance > self._config.ece_alpha:
            return None
        return {"ece": error, "chance": chance}


def binned_errors(p: FloatArray, labels: FloatArray) -> FloatArray:
    """Return the calibration error of each row of labels, in ten bins of equal count."""
    where = bin_of(p, BINS)
    member = np.zeros((p.size, BINS))
    member[np.arange(p.size), where] = 1.0
    return np.asarray(np.abs((labels - p) @ member).sum(axis=1) / p.size)


def feature_drift(
    reference: FloatArray, recent: FloatArray, names: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Return for each feature its stability index and a corrected Kolmogorov-Smirnov p-value."""
    found: dict[str, dict[str, float]] = {}
    for column, name in enumerate(names):
        old, new = _known(reference[:, column]), _known(recent[:, column])
        if old.size >= BINS and new.size >= BINS:
            p = float(ks_2samp(old, new, method="asymp").pvalue)
            found[name] = {"psi": psi(old, new), "ks_p_bh": min(max(p, 0.0), 1.0)}
    adjusted = benjamini_hochberg([entry["ks_p_bh"] for entry in found.values()])
    for entry, p in zip(found.values(), adjusted.tolist(), strict=True):
        entry["ks_p_bh"] = p
    return found


def psi(reference: FloatArray, recent: FloatArray, bins: int = BINS) -> float:
    """Return the population stability index, in bins of equal count of the reference.

    Example:
        >>> psi(np.arange(100.0), np.arange(100.0))
        0.0
    """
    values = np.unique(reference)
    edges = np.unique(np.quantile(reference, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    if values.size <= bins:  # flags and constants: one bin a value, and others beside them
        edges = np.sort(np.concatenate([np.nextafter(values, -np.inf), values]))
    counts = [
        np.bincount(np.searchsorted(edges, v), minlength=edges.size + 1)
        for v in (reference, recent)
    ]
    filled = (counts[0] + counts[1]) > 0
    old, new = _shares(counts[0][filled]), _shares(counts[1][filled])
    return float(((new - old) * np.log(new / old)).sum())


def _shares(counts: NDArray[np.int64]) -> FloatArray:
    # Half a count more in each bin: an empty one must not make the index infinite.
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * counts.size))


def _known(values: FloatArray) -> FloatArray:
    return np.asarray(values[~np.isnan(values)])
