from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sk_log_loss
from threadpoolctl import threadpool_limits

from agent_gym.agents.desk import DeskView, Holdings, Quote, RecentContext, RejectCode, SignalFilter
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk import TrainingModule, load_model
from agent_gym.training.desk.calibration import fit_calibration
from agent_gym.training.desk.fitting import break_even, build, grow
from agent_gym.training.desk.forest import Forest
from agent_gym.training.desk.planted import PlantedLaw, draw, planted_dataset
from agent_gym.training.desk.scores import auc, brier, ece, log_loss
from agent_gym.training.desk.splitting import purged_split
from tests.training.learning_samples import QUICK, START, signal_at

DATA = planted_dataset(draw(PlantedLaw(), 900, Seeds(2)), QUICK)
HOLED = replace(DATA, X=np.where(Seeds(1).rng().random(DATA.X.shape) < 0.1, np.nan, DATA.X))


@pytest.fixture(scope="module")
def model():
    split = purged_split(HOLED)
    return build(split.fit, split.calibrate, QUICK, Seeds(0))


@pytest.mark.parametrize("data", [DATA, HOLED, replace(DATA, X=np.round(DATA.X))])
def test_the_forest_says_what_the_estimator_says_to_the_bit(data):
    trees = grow(data, QUICK, Seeds(0))
    forest = Forest.grown(trees.estimator, trees.steps)
    rows = np.concatenate([data.X, np.full((1, data.X.shape[1]), np.nan), 1e9 * data.X[:5]])
    assert np.array_equal(forest.raw(rows), trees.raw(rows))
    assert np.ptp(forest.raw(rows)) > 0.5


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.filterwarnings("ignore:Since FrozenEstimator")
def test_calibration_says_what_the_library_says(method):
    split = purged_split(DATA)
    trees = grow(split.fit, QUICK, Seeds(0))
    coded = replace(split.calibrate, X=trees.steps.code(split.calibrate.X))
    ours = fit_calibration(trees.estimator, coded, method).apply(trees.raw(split.test.X))
    library = CalibratedClassifierCV(FrozenEstimator(trees.estimator), method=method)
    with threadpool_limits(limits=1):
        library.fit(coded.X, coded.y, sample_weight=coded.weight)
        theirs = library.predict_proba(trees.steps.code(split.test.X))[:, 1]
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_scores_agree_with_the_library():
    rng = Seeds(5).rng()
    p, weight = rng.random(500), rng.random(500)
    y = (rng.random(500) < p).astype(np.int8)
    assert log_loss(p, y, weight) == pytest.approx(sk_log_loss(y, p, sample_weight=weight))
    parts = brier(p, y, weight)
    assert parts.score == pytest.approx(brier_score_loss(y, p, sample_weight=weight))
    found = auc(p, y)
    assert found.estimate == pytest.approx(roc_auc_score(y, p))
    picks = rng.integers(500, size=(150, 500))
    spread = np.std([roc_auc_score(y[i], p[i]) for i in picks])
    assert (found.high - found.low) / 3.92 == pytest.approx(spread, rel=0.2)
    assert auc(p, np.ones(500, dtype=np.int8)) is None
    in_bins = np.repeat([0.2, 0.6], 250)
    parts = brier(in_bins, y, np.ones(500), bins=2)
    whole = parts.reliability - parts.resolution + parts.uncertainty
    assert parts.score == pytest.approx(whole)
    assert ece(in_bins, y, np.ones(500), 2) == pytest.approx(
        abs(y[:250].mean() - 0.2) / 2 + abs(y[250:].mean() - 0.6) / 2
    )


def test_a_stored_model_comes_back_the_same(model, tmp_path):
    model.save(tmp_path, {"about": "test"})
    back = load_model(tmp_path)
    assert back.version == model.version
    assert np.array_equal(back.probabilities(HOLED.X), model.probabilities(HOLED.X))
    before = [(p.name, p.read_bytes()) for p in sorted(tmp_path.iterdir())]
    back.save(tmp_path, {"about": "test"})
    assert [(p.name, p.read_bytes()) for p in sorted(tmp_path.iterdir())] == before
    assert {name for name, _ in before} == {"model.npz", "manifest.json"}
    assert not any(b"pickle" in body or b"\x80\x04" in body[:2] for _, body in before)


@pytest.mark.parametrize("what", ["arrays", "threshold", "schema", "gone", "garbage"])
def test_a_changed_model_is_refused(model, tmp_path, what):
    model.save(tmp_path, {})
    manifest = tmp_path / "manifest.json"
    said = json.loads(manifest.read_text())
    if what == "arrays":
        body = bytearray((tmp_path / "model.npz").read_bytes())
        body[len(body) // 2] ^= 1
        (tmp_path / "model.npz").write_bytes(bytes(body))
    elif what == "threshold":
        said["model"]["threshold"] = 0.0
        manifest.write_text(json.dumps(said))
    elif what == "schema":
        said["model"]["schema"] = "agent_gym.desk_model/99"
        manifest.write_text(json.dumps(said))
    elif what == "gone":
        (tmp_path / "model.npz").unlink()
    else:
        manifest.write_text("{")
    with pytest.raises(StoreError):
        load_model(tmp_path)


def test_trees_that_lead_in_circles_are_refused(model):
    arrays = model.forest.arrays()
    n = len(model.feature_names)
    Forest.read(arrays, 0.0, n)
    for name, value in (("left", 0), ("right", 10**9), ("feature", n), ("feature", -1)):
        broken = arrays | {name: arrays[name].copy()}
        broken[name][0] = value
        with pytest.raises(StoreError):
            Forest.read(broken, 0.0, n)


def test_score_by_name_and_absent_features(model):
    features = dict(zip(model.feature_names, [0.1] * 6, strict=True))
    said = model.score(features)
    assert said.score == model.probabilities(np.full((1, 6), 0.1))[0]
    assert (said.threshold, said.version, said.hold) == (model.threshold, model.version, None)
    assert np.isfinite(model.score({}).score)
    backwards = dict(reversed(features.items())) | {"other": 5.0}
    assert model.score(backwards).score == said.score
    flagged = replace(model, feature_names=("strategy=a", *model.feature_names[1:]))
    row = flagged.row({})
    assert (row[0, 0], np.isnan(row[0, 1:]).all()) == (0.0, True)


def test_the_threshold_is_where_expected_utility_crosses_zero():
    split = purged_split(planted_dataset(draw(PlantedLaw(win=0.01, loss=0.03), 900, Seeds(0))))
    assert break_even(split.calibrate) == pytest.approx(0.75, abs=0.02)


def test_conformal_sets_hold_the_truth_as_often_as_asked():
    config = QUICK.model_copy(update={"conformal_alpha": 0.2})
    kept = []
    for seed in range(4):
        drawn = draw(PlantedLaw((3.0, -2.0), 0.0), 3000, Seeds(seed))
        split = purged_split(planted_dataset(drawn, config))
        model = build(split.fit, split.calibrate, config, Seeds(0))
        p = model.probabilities(split.test.X)
        said = np.where(split.test.y == 1, p, 1.0 - p)
        kept.append([np.mean(said[split.test.y == i] >= model.conformal[i]) for i in (0, 1)])
    assert np.mean(kept, axis=0) == pytest.approx([0.8, 0.8], abs=0.04)
    holds = [
        model.score(dict(zip(model.feature_names, row, strict=True))).hold
        for row in split.test.X[:200]
    ]
    assert {RejectCode.MODEL_UNCERTAIN, None} == {*holds}


def test_the_desk_takes_the_model_as_its_acceptor(model):
    quote = Quote(START, 99.99, 100.01, 1e6, 0.001)
    view = DeskView(START, {"BTC/USDT": quote}, Holdings(1e4, 1e4, {}, 0.0, 0.0))
    signal = signal_at(START, "s", amount=1.0, confidence=0.9)

    def check(acceptor):
        return SignalFilter(acceptor=acceptor).check(signal, view, RecentContext())

    low, high = replace(model, threshold=0.0), replace(model, threshold=1.0)
    assert check(low).accepted
    assert check(low).model_version == low.version
    assert check(high).code is RejectCode.MODEL_LOW_SCORE
    assert check(low.held(True)).code is RejectCode.MODEL_DRIFT_HOLD
    # A rule's no stays a no, whatever the model says.
    stale = signal_at(START - 1000.0, "s", confidence=0.9)
    refused = SignalFilter(acceptor=low).check(stale, view, RecentContext())
    assert refused.code is RejectCode.TIME_STALE


def test_training_reports_every_figure_and_repeats_itself():
    config = QUICK.model_copy(update={"stability_folds": 2})
    training = TrainingModule(RecentContext(), config=config, seeds=Seeds(1))
    first, again = training.train_model(DATA), training.train_model(DATA)
    assert first.status == "trained"
    assert first.model.version == again.model.version
    assert first.metrics == again.metrics
    named = {
        "log_loss", "brier", "ece", "auc", "precision", "utility", "gain_over_accept_all",
        "acceptance_rate", "slices", "stability", "parts",
    }  # fmt: skip
    assert named <= {*first.metrics}
    assert len(first.metrics["stability"]["auc"]) == 2
    assert {*first.metrics["slices"]} == {"carry", "momentum", "reversal"}
    with_champion = training.train_model(DATA, first.model)
    assert {*with_champion.baselines} == {"prevalence", "accept_all", "logistic", "champion"}
    assert with_champion.baselines["champion"]["log_loss"] == first.metrics["log_loss"]
    assert first.perf["predict_p99_ms"] > 0.0
    assert first.manifest["data"]["hash"] == DATA.hash
    json.dumps(first.as_dict(), allow_nan=False)
