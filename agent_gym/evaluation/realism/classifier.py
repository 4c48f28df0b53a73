"""Can gradient boosting tell two series apart, window by window? 0.5 is no, 1.0 is always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.series import Indices
from agent_gym.evaluation.realism.threads import one_thread
from agent_gym.evaluation.realism.windows import (
    Features,
    candle_features,
    close_features,
    cut_windows,
    flow_features,
)
from agent_gym.markets.bars import Bars

FOLDS = 5
GROUP_WINDOWS = 7  # a week of days is held out together, so that neighbours do not leak

View = Literal["close", "full"]


@dataclass(frozen=True, slots=True)
class Sample:
    """The windows of one series as rows of features, by name."""

    close: Features
    full: Features

    def matrix(self, view: View, names: tuple[str, ...]) -> FloatArray:
        """Return one row a window with the named features."""
        features = self.close if view == "close" else self.full
        return np.column_stack([features[name] for name in names])


def sample(bars: Bars) -> Sample:
    """Return the features of every window of a series."""
    windows = cut_windows(bars)
    close = close_features(windows)
    return Sample(close, close | candle_features(windows) | flow_features(windows))


def auc(left: Sample, right: Sample, view: View) -> float:
    """Return how well five-fold gradient boosting tells two samples apart.

    Only features that both series have are used. The folds hold out whole groups of neighbouring
    windows, and the same samples always give the same number.
    """
    names = _shared(left, right, view)
    rows = [left.matrix(view, names), right.matrix(view, names)]
    label = np.repeat([0, 1], [len(rows[0]), len(rows[1])])
    group = np.concatenate([np.arange(len(part)) // GROUP_WINDOWS for part in rows])
    return cross_validated(np.vstack(rows), label, group)


def halves_auc(real: Sample, view: View) -> float:
    """Return how well the first half of a series is told from its second half: the control."""
    features = real.close if view == "close" else real.full
    rows = real.matrix(view, tuple(sorted(features)))
    label = (np.arange(len(rows)) >= len(rows) // 2).astype(np.int64)
    return cross_validated(rows, label, np.arange(len(rows)) // GROUP_WINDOWS)


def cross_validated(rows: FloatArray, label: Indices, group: Indices) -> float:
    """Return the area under the curve of predictions that never saw their own group."""
    if np.unique(group).size < FOLDS:
        raise DataError(
            "too few windows to train on some and test on others",
            found=f"{len(rows)} windows",
            expected=f"at least {FOLDS * GROUP_WINDOWS} of each series",
        )
    score = np.zeros(len(rows))
    with one_thread():
        _fill_scores(rows, label, group, score)
    return float(roc_auc_score(label, score))


def _fill_scores(rows: FloatArray, label: Indices, group: Indices, score: FloatArray) -> None:
    for train, test in GroupKFold(FOLDS).split(rows, label, group):
        model = HistGradientBoostingClassifier(
            max_iter=150,
            learning_rate=0.06,
            max_leaf_nodes=8,
            min_samples_leaf=20,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=0,
        )
        model.fit(rows[train], label[train])
        score[test] = model.predict_proba(rows[test])[:, 1]


def _shared(left: Sample, right: Sample, view: View) -> tuple[str, ...]:
    if view == "close":
        return tuple(sorted(left.close))
    return tuple(sorted(set(left.full) & set(right.full)))
