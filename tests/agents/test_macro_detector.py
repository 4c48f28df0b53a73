import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.umc.macro import MacroConfig, MacrostateDetector
from agent_gym.agents.umc.macro.fitting import fit_from, fit_states
from agent_gym.agents.umc.macro.hmm import follow, look_back
from agent_gym.agents.umc.macro.scaling import Scaling
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.seeds import Seeds
from tests.agents.macro_samples import CLEAR, FAINT, accuracy, iid, planted

QUICK = MacroConfig(min_states=3, max_states=3)


@pytest.fixture(scope="module")
def fitted():
    detector = MacrostateDetector(QUICK)
    detector.fit(planted(CLEAR, 0, 1500).inputs, Seeds(0))
    return detector


def with_gaps(inputs):
    """Some numbers are not known, and one row has none."""
    gappy = inputs.copy()
    gappy[Seeds(5).rng().random(gappy.shape) < 0.1] = np.nan
    gappy[40] = np.nan
    gappy[41, 1] = np.inf
    return gappy


@pytest.mark.parametrize("law", [CLEAR, FAINT], ids=["clear", "faint"])
@pytest.mark.parametrize("seed", [0, 1, 10, 19])  # the last two fool a single held-out part
def test_a_fit_is_nearly_as_right_as_who_knows_the_law(law, seed):
    series, cut = planted(law, seed, 6000), 4000
    detector = MacrostateDetector(MacroConfig(max_states=5))
    report = detector.fit(series.inputs[:cut], Seeds(seed))
    memory = detector.begin()
    detector.filter(series.inputs[:cut], memory)
    ours = detector.filter(series.inputs[cut:], memory).argmax(axis=1)
    knower, _ = law.filtered(series.inputs, law.shares())
    best = float((knower[cut:].argmax(axis=1) == series.states[cut:]).mean())
    assert report.states == 3
    assert 0.75 < best < 0.99  # the task is neither hopeless nor trivial
    assert accuracy(ours, series.states[cut:]) >= 0.95 * best


def test_guessing_is_far_below_that_line():
    series = planted(CLEAR, 0, 8000)
    guess = Seeds(0).rng().integers(3, size=8000)
    assert accuracy(guess, series.states) < 0.5


def looks_ahead(view, inputs):
    """Whether what a view says of a bar changes with later bars: other ones, absurd ones, none."""
    whole = view(inputs)
    for t in (0, 1, 57, len(inputs) - 2):
        for later in (np.nan, 1e9, -1e300, 0.0):
            poisoned = inputs.copy()
            poisoned[t + 1 :] = later
            if not np.array_equal(view(poisoned)[: t + 1], whole[: t + 1]):
                return True
        if not np.array_equal(view(np.ascontiguousarray(inputs[: t + 1])), whole[: t + 1]):
            return True
    return False


def test_d23_beliefs_and_scores_never_look_ahead(fitted):
    inputs = with_gaps(planted(CLEAR, 7, 120).inputs)
    assert not looks_ahead(lambda rows: fitted.filter(rows, fitted.begin()), inputs)
    score = np.nan_to_num(fitted.score(inputs, fitted.begin()), nan=9.0)
    again = np.nan_to_num(fitted.score(inputs[:60].copy(), fitted.begin()), nan=9.0)
    assert np.array_equal(score[:60], again)


def test_d37_a_smoother_is_caught_looking_ahead(fitted):
    known = fitted._known

    def smoothed(inputs):
        rows = known.scaling.applied(inputs, 8.0)
        likelihoods, peaks = known.model.weighed(rows)
        beliefs, chances = np.empty_like(likelihoods), np.empty_like(likelihoods)
        start = known.model.shares()
        follow(likelihoods, peaks, known.model.transition, start.copy(), beliefs, peaks.copy())
        moves = np.empty((3, 3))
        look_back(likelihoods, known.model.transition, start, beliefs, chances, moves)
        return chances

    assert looks_ahead(smoothed, planted(CLEAR, 7, 120).inputs)


def test_d37_a_fit_sees_only_the_rows_it_is_given():
    inputs = planted(CLEAR, 3, 900).inputs
    detectors = []
    for later in (None, 1e9):
        table = inputs.copy()
        if later is not None:
            table[600:] = later
        detector = MacrostateDetector(QUICK)
        detector.fit(table[:600], Seeds(1))
        table[:] = -7.0  # nothing of the table is kept
        detectors.append(detector.weights())
    whole = MacrostateDetector(QUICK)
    whole.fit(inputs, Seeds(1))
    assert all(np.array_equal(detectors[0][name], detectors[1][name]) for name in detectors[0])
    assert not np.array_equal(detectors[0]["means"], whole.weights()["means"])


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=6))
def test_pieces_are_the_whole_bit_for_bit(fitted, cuts):
    inputs = with_gaps(planted(CLEAR, 9, 200).inputs)
    memory, scored = fitted.begin(), fitted.begin()
    edges = [0, *sorted(cuts), 200]
    parts = [inputs[low:high] for low, high in itertools.pairwise(edges)]
    told = np.concatenate([fitted.filter(part, memory) for part in parts])
    scores = np.concatenate([fitted.score(part, scored) for part in parts])
    end = fitted.begin()
    assert np.array_equal(told, fitted.filter(inputs, end))
    assert np.array_equal(memory, end)
    assert np.array_equal(scores, fitted.score(inputs, fitted.begin()), equal_nan=True)


def test_following_changes_nothing_that_was_fitted(fitted):
    before = {name: part.copy() for name, part in fitted.weights().items()}
    inputs = planted(CLEAR, 2, 300).inputs
    kept = inputs.copy()
    fitted.filter(inputs, fitted.begin())
    fitted.cycles(inputs, Seeds(1))
    assert all(np.array_equal(before[name], part) for name, part in fitted.weights().items())
    assert np.array_equal(inputs, kept)


def test_the_filter_is_bayes_rule():
    rows = planted(FAINT, 1, 60).inputs
    told, scores = FAINT.filtered(rows, FAINT.shares())
    belief = FAINT.shares()
    for t, row in enumerate(rows):
        spread = 2 * np.pi * FAINT.variances
        density = np.exp(-((row - FAINT.means) ** 2) / (2 * FAINT.variances)) / np.sqrt(spread)
        joint = (belief @ FAINT.transition) * density.prod(axis=1)
        belief = joint / joint.sum()
        assert np.allclose(told[t], belief, rtol=0, atol=1e-12)
        assert abs(scores[t] - np.log(joint.sum())) < 1e-10


def test_looking_back_is_the_sum_over_all_paths():
    rows = planted(FAINT, 1, 5).inputs
    likelihoods, peaks = FAINT.weighed(rows)
    start = np.array([0.2, 0.5, 0.3])
    beliefs, chances, moves = np.empty((5, 3)), np.empty((5, 3)), np.empty((3, 3))
    follow(likelihoods, peaks, FAINT.transition, start.copy(), beliefs, np.empty(5))
    look_back(likelihoods, FAINT.transition, start, beliefs, chances, moves)
    right, counted, total = np.zeros((5, 3)), np.zeros((3, 3)), 0.0
    for path in itertools.product(range(3), repeat=6):
        weight = start[path[0]]
        for t in range(5):
            weight *= FAINT.transition[path[t], path[t + 1]] * likelihoods[t, path[t + 1]]
        total += weight
        for t in range(5):
            right[t, path[t + 1]] += weight
            counted[path[t], path[t + 1]] += weight
    assert np.allclose(chances, right / total, rtol=0, atol=1e-12)
    assert np.allclose(moves, counted / total, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_step_of_a_fit_makes_it_worse(seed):
    table = planted(CLEAR, seed, 600).inputs
    rows = Scaling.of(table).applied(with_gaps(table), 8.0)
    config = MacroConfig(tolerance=0.0, max_iterations=25)
    start = fit_states(rows, 3, config.model_copy(update={"max_iterations": 1}), Seeds(seed)).model
    steps = np.array(fit_from(start, rows, config, 25).objective)
    assert (np.diff(steps) > -1e-8 * np.abs(steps[:-1])).all()
    assert steps[-1] > steps[0]


def test_weights_round_trip(fitted):
    other = MacrostateDetector(QUICK)
    other.restore(fitted.weights())
    inputs = with_gaps(planted(CLEAR, 4, 200).inputs)
    assert np.array_equal(
        other.filter(inputs, other.begin()), fitted.filter(inputs, fitted.begin())
    )
    assert other.labels == fitted.labels
    assert other.ids == fitted.ids


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("ids", lambda part: part[:2], "do not fit"),
        ("ids", lambda part: part * 0, "do not fit"),
        ("ids", lambda part: part + 5, "do not fit"),
        ("means", lambda part: part[:, :2], "do not fit"),
        ("means", lambda part: part * np.nan, "not finite"),
        ("variances", lambda part: part * 0.0, "not positive"),
        ("scale", lambda part: -part, "not positive"),
        ("transition", lambda part: 2.0 * part, "sum to 1"),
        ("transition", lambda part: np.eye(3) + 0 * part, "above 0"),
    ],
)
def test_broken_weights_are_refused(fitted, name, change, words):
    weights = dict(fitted.weights())
    weights[name] = change(weights[name])
    with pytest.raises(DataError, match=words):
        MacrostateDetector(QUICK).restore(weights)
    del weights[name]
    with pytest.raises(DataError, match="missing"):
        MacrostateDetector(QUICK).restore(weights)


def test_scores_are_densities_in_the_unit_of_the_inputs(fitted):
    inputs, unit = planted(CLEAR, 0, 1500).inputs, np.array([1.0, 10.0, 100.0, 0.1])
    scaled = MacrostateDetector(QUICK)
    scaled.fit(inputs * unit, Seeds(0))
    plain = fitted.score(inputs, fitted.begin())
    gap = plain - scaled.score(inputs * unit, scaled.begin())
    assert np.allclose(gap, np.log(unit).sum(), rtol=0, atol=1e-6)
    assert np.isnan(fitted.score(np.full((1, 4), np.nan), fitted.begin())).all()


def test_d38_no_level_and_no_unit_decides_what_a_state_is(fitted):
    """Raw levels as inputs once gave clusters of price levels."""
    inputs = planted(CLEAR, 0, 1500).inputs
    moved = MacrostateDetector(QUICK)
    moved.fit(5e4 + 300.0 * inputs, Seeds(0))
    told = moved.filter(5e4 + 300.0 * inputs, moved.begin())
    assert np.allclose(told, fitted.filter(inputs, fitted.begin()), rtol=0, atol=1e-6)


def test_noise_gets_no_more_states_than_it_must():
    report = MacrostateDetector(MacroConfig(max_states=3)).fit(iid(3, 1200), Seeds(3))
    assert report.states == 2
    assert set(report.validation_scores) == {2, 3}
    assert report.match is None


def test_inputs_are_picked_by_name(fitted):
    names = ("x", "volume_z", "momentum_168", "momentum_24", "volatility_ratio")
    table = np.arange(10.0).reshape(2, 5)
    assert fitted.pick(table, names).tolist() == [[3.0, 2.0, 4.0, 1.0], [8.0, 7.0, 9.0, 6.0]]
    with pytest.raises(ConfigError, match="missing"):
        fitted.pick(table, ("a", "b", "c", "d", "e"))


def test_misuse_is_told_plainly(fitted):
    with pytest.raises(AgentError, match="before any fit"):
        MacrostateDetector().begin()
    with pytest.raises(AgentError, match="memory"):
        fitted.filter(iid(0, 5), np.ones(2))
    with pytest.raises(DataError, match="another shape"):
        fitted.filter(iid(0, 5, 3), fitted.begin())
    with pytest.raises(DataError, match="too short"):
        MacrostateDetector().fit(iid(0, 40), Seeds(0))
    with pytest.raises(DataError, match="too short"):
        MacrostateDetector().fit(np.full((500, 4), np.nan), Seeds(0))
