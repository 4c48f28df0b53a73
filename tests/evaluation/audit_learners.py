"""Learners with one planted defect each, and their healthy twin: a line fitted with NumPy."""

from __future__ import annotations

import pickle  # noqa: TID251 (a planted defect)

import numpy as np

from agent_gym.core.types import Decision
from tests.evaluation.audit_samples import Follower


class Linear(Follower):
    """Healthy: fits the next return to two columns by least squares; saves what it found."""

    name = "sample/linear"
    inputs = ("return_z", "momentum_4")
    needs = ("close", *inputs, *(f"{name}_known" for name in inputs))
    targets = None

    def __init__(self):
        self._fitted = {}

    def reset(self, start):
        self._columns = [start.column(name) for name in self.inputs]
        self._known = [start.column(f"{name}_known") for name in self.inputs]

    def fit(self, start, columns):
        x = np.column_stack([columns[n] * columns[f"{n}_known"] for n in self.inputs])[:-1]
        y = np.diff(np.log(columns["close"])) * 100.0
        slope, *_ = np.linalg.lstsq(x, y, rcond=None)
        self._fitted = {"slope": slope, "scale": np.array([y.std()])}
        self._loss = float(np.mean((x @ slope - y) ** 2))

    def act(self, obs):
        row = obs.features[self._columns] * obs.features[self._known]
        guess = row @ self._fitted["slope"] / self._fitted["scale"][0]
        return Decision(float(np.clip(2.0 * guess, -1.0, 1.0)))

    def weights(self):
        return dict(self._fitted)

    def losses(self):
        return {"squared": self._loss}

    def save(self, folder):
        np.savez(folder / "linear.npz", **self._fitted)

    def load(self, folder):
        with np.load(folder / "linear.npz") as file:
            self._fitted = {name: file[name] for name in file.files}


class StillLoss(Linear):
    """Shows a loss that it never computes."""

    def losses(self):
        return {"squared": 0.0}


class ClippedWeights(Linear):
    """Clips what it learns to next to nothing."""

    def weights(self):
        drawn = np.linspace(-1.0, 1.0, 20) * float(self._fitted["slope"][0])
        bound = np.abs(drawn).max() / 2.0
        return {"slope": np.clip(drawn, -bound, bound)}


class Pickler(Linear):
    """Saves a pickle."""

    def save(self, folder):
        (folder / "linear.pkl").write_bytes(pickle.dumps(self._fitted))

    def load(self, folder):
        self._fitted = pickle.loads((folder / "linear.pkl").read_bytes())
