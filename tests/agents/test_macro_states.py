import numpy as np
import pytest

from agent_gym.agents.umc.macro import MacroConfig, MacrostateDetector, Regime
from agent_gym.agents.umc.macro.labels import Traits, label_states, traits_of
from agent_gym.agents.umc.macro.matching import Emissions, divergences, match
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.core.seeds import Seeds
from tests.agents.macro_samples import CLEAR, EITHER, planted

QUICK = MacroConfig(min_states=3, max_states=4, restarts=1)


def emissions(*means, variance=1.0):
    table = np.array(means, dtype=np.float64)[:, None]
    return Emissions(table, np.full_like(table, variance))


def test_numbers_survive_a_refit_that_would_sort_them_anew():
    """The falling state begins to rise most of all; by volatility and volume it is the same."""
    means = np.array([[-0.8, -0.5, 1.5, 1.5], [0.0, 0.0, -1.5, -1.0], [0.8, 0.5, 0.0, 0.0]])
    turned = means.copy()
    turned[0, :2] = (1.6, 1.0)
    law, later = (Hmm(EITHER, table, np.full((3, 4), 0.5)) for table in (means, turned))
    detector = MacrostateDetector(QUICK)
    first = detector.fit(planted(law, 1, 2000).inputs, Seeds(1))
    before = detector.weights()
    report = detector.refit(planted(later, 2, 2000).inputs, Seeds(2))
    after = detector.weights()
    anew = MacrostateDetector(QUICK)
    anew.fit(planted(later, 2, 2000).inputs, Seeds(2))
    assert first.states == report.states == 3
    assert detector.ids == (0, 1, 2)
    volume_before = before["means"][:, 3] * before["scale"][3] + before["centre"][3]
    volume_after = after["means"][:, 3] * after["scale"][3] + after["centre"][3]
    assert np.abs(volume_before - volume_after).max() < 0.15
    assert after["means"][:, 0].argmax() == 0  # number 0 rises now
    assert anew.weights()["means"][:, 0].argmax() == 2  # a fit alone would have called it 2
    costs = report.match.costs
    assert report.match.ids == (0, 1, 2)
    assert costs[0] > 10 * max(costs[1], costs[2])  # and the report tells which one changed
    assert report.match.total_cost == pytest.approx(sum(costs))


@pytest.mark.parametrize("seed", range(4))
def test_numbers_stay_over_many_refits(seed):
    series = planted(CLEAR, seed, 4000)
    detector = MacrostateDetector(QUICK)
    detector.fit(series.inputs[:2000], Seeds(seed))
    for stop in (3000, 4000):
        detector.refit(series.inputs[:stop], Seeds(seed).child(stop))
        told = detector.slots(detector.filter(series.inputs[:stop], detector.begin()))
        right = told.argmax(axis=1) == series.states[:stop]
        assert right.mean() > 0.9  # the numbers, not the kindest numbering


def test_all_states_together_and_not_the_nearest_first():
    """New 0.9 is nearest to old 1, yet new 1.9 has nobody else."""
    old, new = emissions(0.0, 1.0), emissions(1.9, 0.9)
    assert match(old, (4, 2), new, 7).ids == (2, 4)
    assert match(old, (4, 2), emissions(0.9, 0.1), 7).ids == (2, 4)


def test_a_new_state_takes_a_number_that_nobody_had():
    grown = match(emissions(0.0, 5.0), (0, 3), emissions(5.1, 20.0, 0.1), 7)
    assert grown.ids == (3, 1, 0)
    assert grown.costs[1] is None
    assert grown.total_cost == pytest.approx(0.02)
    full = match(emissions(0.0, 5.0), (0, 1), emissions(5.0, 20.0, 0.0), 3)
    assert full.ids == (1, 2, 0)


def test_a_state_that_is_gone_leaves_its_number():
    shrunk = match(emissions(0.0, 5.0, 9.0), (0, 1, 2), emissions(9.2, 0.1), 7)
    assert shrunk.ids == (2, 0)


def test_divergence_is_both_kl_divergences():
    one, other = Emissions(np.array([[1.0]]), np.array([[2.0]])), emissions(-0.5, variance=0.7)
    there = 0.5 * (2 / 0.7 - 1 + 1.5**2 / 0.7 + np.log(0.7 / 2))
    back = 0.5 * (0.7 / 2 - 1 + 1.5**2 / 2 + np.log(2 / 0.7))
    assert divergences(one, other)[0, 0] == pytest.approx(there + back, rel=1e-12)
    assert divergences(other, one)[0, 0] == pytest.approx(there + back, rel=1e-12)


def test_beliefs_by_number_have_one_width_for_ever():
    detector = MacrostateDetector(QUICK)
    detector.fit(planted(CLEAR, 1, 800).inputs, Seeds(1))
    weights = dict(detector.weights())
    weights["ids"] = np.array([0, 1, 3])
    detector.restore(weights)
    told = detector.filter(planted(CLEAR, 2, 50).inputs, detector.begin())
    slots = detector.slots(told)
    assert slots.shape == (50, 4)
    assert np.array_equal(slots[:, [0, 1, 3]], told)
    assert not slots[:, 2].any()


# drift, volatility, volume, drift of what came before
EXAMPLES = {
    Regime.TREND_UP: (1.2, 0.0, 0.0, 0.0),
    Regime.TREND_DOWN: (-1.2, 0.0, 0.0, 0.0),
    Regime.BREAKOUT: (1.0, 0.9, 0.9, 0.0),
    Regime.CAPITULATION: (-1.5, 1.8, 1.8, -0.5),
    Regime.ACCUMULATION: (0.1, -0.9, -0.5, -1.2),
    Regime.DISTRIBUTION: (-0.1, 0.0, 0.0, 1.2),
    Regime.RANGE: (0.0, -1.0, -0.5, 0.1),
}


def named(rows, limit=0.5):
    traits = Traits(*np.array(rows, dtype=np.float64).T)
    return label_states(traits, tuple(range(len(rows))), limit)


def test_every_template_names_what_it_describes():
    labels = named(list(EXAMPLES.values()))
    assert [label.regime for label in labels] == list(EXAMPLES)
    for regime, row in EXAMPLES.items():
        assert named([row])[0].regime is regime
    falling = named([(-1.0, 0.9, 0.9, 0.0)])
    assert falling[0].regime is Regime.BREAKOUT  # a breakout goes either way


def test_names_do_not_depend_on_the_order_of_states():
    rows = list(EXAMPLES.values())
    labels = named(rows[::-1])
    assert [label.regime for label in labels] == list(EXAMPLES)[::-1]
    assert named(rows) == named(rows)


@pytest.mark.parametrize("row", [(0.0, 3.0, 0.0, 0.0), (0.0, 2.5, -2.0, 0.4)])
def test_what_fits_nothing_stays_unlabeled(row):
    assert named([row])[0].regime is Regime.UNLABELED
    assert named([row], limit=100.0)[0].regime is not Regime.UNLABELED


def test_two_states_never_share_a_name():
    labels = named([(1.2, 0.0, 0.0, 0.0), (1.1, 0.1, 0.0, 0.0)])
    assert len({label.regime for label in labels}) == 2
    assert all(0.0 <= label.confidence <= 1.0 for label in labels)


def test_a_clear_case_is_told_with_more_confidence():
    clear, close = named([(1.2, 0.0, -1.0, 0.0)])[0], named([(0.8, 0.74, 0.7, 0.0)])[0]
    assert clear.confidence > close.confidence


@pytest.mark.parametrize("seed", range(3))
def test_planted_regimes_get_their_names(seed):
    """Falls and rises with equal volatility, and a calm rest."""
    means = np.array([[-1.2, -0.7, 0.3, 0.0], [0.0, 0.0, -1.0, 0.0], [1.2, 0.7, 0.3, 0.0]])
    detector = MacrostateDetector(QUICK)
    law = Hmm(EITHER, means, np.full((3, 4), 0.5))
    detector.fit(planted(law, seed, 3000).inputs, Seeds(seed))
    assert [label.regime for label in detector.labels] == ["TREND_DOWN", "RANGE", "TREND_UP"]
    assert [label.state for label in detector.labels] == [0, 1, 2]


def test_the_weaker_of_two_rises_is_no_fall():
    config = MacroConfig(inputs=("m",), drift_input="m", volatility_input=None, volume_input=None)
    chain = np.array([[0.9, 0.1], [0.1, 0.9]])
    model = Hmm(chain, np.array([[-1.0], [1.0]]), np.ones((2, 1)))  # in deviations from the mean
    rising = traits_of(model, np.array([4.0]), config)
    assert (rising.drift > 0).all()
    regimes = {label.regime for label in label_states(rising, (0, 1), 0.5)}
    assert Regime.TREND_DOWN not in regimes
    around = traits_of(model, np.array([0.0]), config)
    assert {label.regime for label in label_states(around, (0, 1), 0.5)} == {
        Regime.TREND_DOWN,
        Regime.TREND_UP,
    }


def test_what_came_before_tells_accumulation_from_distribution():
    """Down leads to the first rest, up to the second."""
    chain = np.array(
        [
            [0.90, 0.00, 0.095, 0.005],
            [0.00, 0.90, 0.005, 0.095],
            [0.05, 0.05, 0.900, 0.000],
            [0.05, 0.05, 0.000, 0.900],
        ]
    )
    chain = (chain + 1e-6) / (chain + 1e-6).sum(axis=1, keepdims=True)
    drift = np.array([-1.0, 1.0, 0.0, 0.0])
    means = np.column_stack([drift, drift, [0.5, 0.5, -0.6, -0.6], np.zeros(4)])
    traits = traits_of(Hmm(chain, means, np.ones((4, 4))), np.zeros(4), MacroConfig())
    regimes = [label.regime for label in label_states(traits, (0, 1, 2, 3), 0.5)]
    assert regimes[2:] == [Regime.ACCUMULATION, Regime.DISTRIBUTION]
