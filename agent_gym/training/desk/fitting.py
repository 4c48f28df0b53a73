"""Growing, calibrating and setting the threshold of an acceptor, on parts that are cut in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.desk.calibration import choose_calibration
from agent_gym.training.desk.config import DAY_S, TrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.forest import Forest, Steps
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.splitting import before

REFERENCE_ROWS = 1000
STOP_SHARE, STOP_ROWS, PATIENCE = 0.15, 40, 20
ITER_WITHOUT_STOP = 60


def fit_weight(data: Dataset, config: TrainingConfig) -> FloatArray:
    """Return the weights of a fit: those of the rows, halved with age, of mean 1."""
    age_days = (data.as_of - data.t) / DAY_S
    weight = data.weight * np.exp2(-age_days / config.half_life_days)
    return np.asarray(weight / weight.mean())


class Trees(NamedTuple):
    """A fitted estimator and the codes it was fitted on."""

    estimator: Any
    steps: Steps

    def raw(self, rows: FloatArray) -> FloatArray:
        """Return the estimator's own log odds for rows in units of the features."""
        with threadpool_limits(limits=1):
            return np.asarray(self.estimator.decision_function(self.steps.code(rows)))


def grow(data: Dataset, config: TrainingConfig, seeds: Seeds) -> Trees:
    """Fit the boosted trees; growth stops when the last rows of the part get no better."""
    steps = Steps.of(data.X)
    data = replace(data, X=steps.code(data.X))
    cut = round(len(data) * (1.0 - STOP_SHARE))
    held = data.take(slice(cut, len(data)))
    inner = before(data.take(slice(0, cut)), data.t[cut])
    stops = len(held) >= STOP_ROWS and _both(held) and _both(inner)
    model = HistGradientBoostingClassifier(
        max_leaf_nodes=config.max_leaf_nodes,
        learning_rate=config.learning_rate,
        max_iter=config.max_iter if stops else min(config.max_iter, ITER_WITHOUT_STOP),
        l2_regularization=config.l2,
        min_samples_leaf=config.min_samples_leaf,
        monotonic_cst=[config.monotonic.get(name, 0) for name in data.feature_names],
        early_stopping=stops,
        n_iter_no_change=PATIENCE,
        random_state=seeds.child("trees").as_int(),
    )
    # One thread: the table is small, and waiting for other threads costs more than they bring.
    with threadpool_limits(limits=1):
        if stops:
            model.fit(
                inner.X,
                inner.y,
                sample_weight=fit_weight(inner, config),
                X_val=held.X,
                y_val=held.y,
                sample_weight_val=fit_weight(held, config),
            )
        else:
            model.fit(data.X, data.y, sample_weight=fit_weight(data, config))
    return Trees(model, steps)


def build(fit: Dataset, calibrate: Dataset, config: TrainingConfig, seeds: Seeds) -> DeskModel:
    """Return the acceptor that two parts of a table make."""
    trees = grow(fit, config, seeds)
    with threadpool_limits(limits=1):
        coded = replace(calibrate, X=trees.steps.code(calibrate.X))
        calibration = choose_calibration(trees.estimator, coded, config.calibration)
    forest = Forest.grown(trees.estimator, trees.steps)
    p = calibration.apply(forest.raw(calibrate.X))
    some = np.unique(np.linspace(0, len(fit) - 1, min(len(fit), REFERENCE_ROWS)).astype(int))
    return DeskModel(
        feature_names=fit.feature_names,
        forest=forest,
        calibration=calibration,
        threshold=break_even(calibrate),
        as_of=fit.as_of,
        reference=np.ascontiguousarray(fit.X[some]),
        conformal=_conformal(p, calibrate, config.conformal_alpha),
    )


def break_even(data: Dataset) -> float:
    """Return the threshold with the largest expected net utility.

    A signal with probability p is worth p times the mean win less (1 - p) times the mean loss.
    The sum of that over all signals above a threshold is largest where it crosses 0. The means come
    from the calibration part; a search over realised sums would follow its noise instead.
    """
    won = data.y == 1
    win = float(np.average(data.payoff[won], weights=data.weight[won])) if won.any() else 0.0
    loss = -float(np.average(data.payoff[~won], weights=data.weight[~won])) if (~won).any() else 0.0
    return loss / (win + loss) if win + loss > 0.0 else 1.0


def logistic_baseline(fit: Dataset, test: Dataset, config: TrainingConfig) -> FloatArray:
    """Return the probabilities of a plain logistic regression."""
    model = make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression()
    )
    with threadpool_limits(limits=1):
        model.fit(fit.X, fit.y, logisticregression__sample_weight=fit_weight(fit, config))
        return np.asarray(model.predict_proba(test.X)[:, 1])


def _conformal(p: FloatArray, data: Dataset, alpha: float | None) -> tuple[float, float] | None:
    """Return the least probability at which each label stays in the set, by class."""
    if alpha is None:
        return None
    least = []
    for label, said in ((0, 1.0 - p), (1, p)):
        mine = np.sort(said[data.y == label])
        rank = int(np.floor(alpha * (mine.size + 1))) - 1
        least.append(float(mine[rank]) if rank >= 0 else 0.0)
    return least[0], least[1]


def _both(data: Dataset) -> bool:
    return 0 < int(data.y.sum()) < len(data)
