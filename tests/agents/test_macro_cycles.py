from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.umc.macro import CycleConfig, MacroConfig, MacrostateDetector
from agent_gym.agents.umc.macro.cycles import report_cycles
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.agents.umc.macro.resampling import resampled
from agent_gym.agents.umc.macro.stability import adjusted_rand, compare
from agent_gym.agents.umc.macro.surprise import Walks, surprises
from agent_gym.agents.umc.macro.visits import Visits, closed_walks, visits_in
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from tests.agents.macro_samples import CLEAR, MEANS, ROUND, VARIANCES, iid, planted

THREE = MacroConfig(min_states=3, max_states=3, restarts=1)
CIRCLE = Hmm(ROUND, MEANS, VARIANCES)


def found(law, seed, redraw=None):
    detector = MacrostateDetector(THREE)
    detector.fit(planted(law, seed, 2000).inputs, Seeds(seed))
    fresh = planted(law, 100 + seed, 4000).inputs
    return detector.cycles(fresh, Seeds(seed), redraw)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_cycle_is_found_and_its_reverse_is_not(seed):
    report = found(CIRCLE, seed)
    assert [cycle.states for cycle in report.significant] == [(0, 1, 2)]
    (cycle,) = report.significant
    assert cycle.count > 20
    assert cycle.adjusted_p_value <= 0.05
    assert report.transition_entropy < 0.5  # nats; up to ln 2 if it went either way
    assert set(report.dwell_bars) == {0, 1, 2}
    assert all(20 < bars < 100 for bars in report.dwell_bars.values())  # 50 by its law


@pytest.mark.parametrize("seed", range(3))
def test_states_without_an_order_show_no_cycle(seed):
    report = found(CLEAR, seed)
    assert report.visits > 40
    assert report.tested > 0
    assert not report.significant
    assert 0.5 < report.transition_entropy < np.log(2)


def test_noise_shows_no_cycle():
    """Ten seeds here; of hundreds none does."""
    alarms, tested = 0, 0
    for seed in range(10):
        detector = MacrostateDetector(THREE)
        noise = iid(seed, 800)
        detector.fit(noise, Seeds(seed))
        report = detector.cycles(noise, Seeds(seed))
        alarms += bool(report.significant)
        tested += report.tested
    assert tested > 5  # there was something to be called significant
    assert alarms <= 1


def test_a_cycle_that_the_null_has_too_is_no_surprise():
    calls = []

    def again(rng):
        calls.append(rng)
        return planted(CIRCLE, 1000 + len(calls), 4000).inputs

    detector = MacrostateDetector(
        THREE.model_copy(update={"cycles": CycleConfig(surrogates=29)}),
    )
    detector.fit(planted(CIRCLE, 0, 2000).inputs, Seeds(0))
    fresh = planted(CIRCLE, 100, 4000).inputs
    assert detector.cycles(fresh, Seeds(0)).significant
    report = detector.cycles(fresh, Seeds(0), again)
    assert not report.significant
    assert len(calls) == report.surrogates == 29
    assert report.block_bars is None
    with pytest.raises(DataError, match="another shape"):
        detector.cycles(fresh, Seeds(0), lambda rng: again(rng)[:-1])


def test_the_most_frequent_of_many_cycles_is_no_surprise():
    """Thirty cycles of pure chance; choosing the most frequent and asking for it alone misleads."""
    rng = Seeds(4).rng()
    names = [(0, k) for k in range(1, 31)]
    rates = np.geomspace(0.3, 12.0, 30)
    alarms = naive = 0
    for _ in range(100):
        drawn = rng.poisson(rates, size=(60, 30))
        walks = [Walks(Counter(dict(zip(names, row.tolist(), strict=True))), 100) for row in drawn]
        told = surprises(walks[0], walks[1:])
        alarms += min(one.adjusted_p_value for one in told.values()) <= 0.05
        excess = (drawn[0] - rates) / np.sqrt(rates)
        naive += told[names[int(excess.argmax())]].p_value <= 0.05
    assert alarms <= 10  # 5 expected
    assert naive > 40


def test_a_cycle_that_stands_out_is_found_among_many():
    rng = Seeds(5).rng()
    names = [(0, k) for k in range(1, 31)]
    drawn = rng.poisson(4.0, size=(100, 30))
    drawn[0, 7] = 25
    walks = [Walks(Counter(dict(zip(names, row.tolist(), strict=True))), 100) for row in drawn]
    told = surprises(walks[0], walks[1:])
    assert [name for name in names if told[name].adjusted_p_value <= 0.05] == [names[7]]
    assert told[names[7]].p_value == pytest.approx(0.01)
    assert all(one.p_value <= one.adjusted_p_value for one in told.values())


def slow_walks(states):
    counts = Counter()
    for i in range(len(states)):
        for j in range(i + 1, len(states)):
            if states[j] == states[i]:
                walk = tuple(states[i:j])
                if len(set(walk)) == len(walk):
                    low = walk.index(min(walk))
                    counts[walk[low:] + walk[:low]] += 1
                break
    return counts


@settings(max_examples=60, deadline=None)
@given(drawn=st.lists(st.integers(0, 6), max_size=40))
def test_closed_walks_against_a_slow_count(drawn):
    states = [s for i, s in enumerate(drawn) if i == 0 or s != drawn[i - 1]]
    order = Visits(np.array(states, np.int64), np.ones(len(states), np.int64))
    assert closed_walks(order) == slow_walks(states)


def test_a_visit_takes_belief_and_time():
    sure, unsure = [0.9, 0.1], [0.55, 0.45]
    told = np.array([sure, sure, unsure, sure, sure, sure, sure, sure[::-1], *[sure[::-1]] * 3])
    visits = visits_in(told, 0.6, 3)
    assert visits.states.tolist() == [0, 1]
    assert visits.bars.tolist() == [2, 2]  # from the third bar in a row on
    assert visits_in(told, 0.6, 5).states.tolist() == []
    assert visits_in(told, 0.5, 1).states.tolist() == [0, 1]
    back = np.array([sure] * 3 + [unsure] + [sure] * 3)
    assert visits_in(back, 0.6, 3).states.tolist() == [0]  # doubt between is no other state


def test_surrogates_keep_neighbours_within_blocks():
    path = resampled(20_000, 25.0, Seeds(1).rng())
    breaks = (np.diff(path) % 20_000 != 1).mean()
    assert abs(breaks - 1 / 25) < 0.006
    assert (np.diff(resampled(2000, 1.0, Seeds(1).rng())) % 2000 == 1).mean() < 0.01
    assert path.min() >= 0
    assert path.max() < 20_000


def test_a_series_without_visits_is_reported_and_not_guessed():
    flat = Hmm(np.full((2, 2), 0.5), np.zeros((2, 1)), np.ones((2, 1)))
    report = report_cycles(flat, (0, 1), iid(1, 50, 1), CycleConfig(), Seeds(0))
    assert report.visits == 0
    assert report.cycles == ()
    assert report.transition_entropy is None
    assert report.dwell_bars == {0: None, 1: None}


def test_rare_cycles_are_counted_and_not_tested():
    report = found(CLEAR, 0)
    rare = [cycle for cycle in report.cycles if cycle.count < 3]
    assert all(cycle.p_value is None and not cycle.significant for cycle in rare)
    tested = [cycle for cycle in report.cycles if cycle.count >= 3]
    assert len(tested) == report.tested
    assert all(0 < cycle.p_value <= cycle.adjusted_p_value <= 1 for cycle in tested)
    assert sum(cycle.share for cycle in report.cycles) <= 1.0


def test_d38_perfect_agreement_is_flagged():
    """States so far apart that no past could move them are those of the statistic."""
    apart = Hmm(CLEAR.transition, 60.0 * MEANS, np.full((3, 4), 0.01))
    detector = MacrostateDetector(THREE)
    rows = planted(apart, 0, 1200).inputs
    detector.fit(rows, Seeds(0))
    stability = detector.stability(rows, Seeds(1))
    assert stability.rand == 1.0
    assert stability.suspect


def test_honest_agreement_is_high_and_not_perfect_and_noise_has_none():
    detector, rows = MacrostateDetector(THREE), planted(CLEAR, 0, 2000).inputs
    detector.fit(rows, Seeds(0))
    honest = detector.stability(rows, Seeds(1))
    assert 0.8 < honest.rand < 0.995
    assert not honest.suspect
    assert len(honest.by_state) == 3
    noise = iid(0, 2000)
    detector.fit(noise, Seeds(0))
    assert detector.stability(noise, Seeds(1)).rand < 0.5


def test_one_disagreement_is_enough_to_lift_the_flag():
    first = np.repeat([0, 1, 2], 40)
    second = first.copy()
    second[:4] = 1
    assert compare(first, first, 3).suspect
    assert not compare(first, second, 3).suspect
    renamed = (first + 1) % 3
    assert compare(first, renamed, 3).rand == 1.0


def test_the_rand_index_is_0_for_chance():
    rng = Seeds(2).rng()
    table = np.zeros((3, 3))
    np.add.at(table, (rng.integers(3, size=5000), rng.integers(3, size=5000)), 1.0)
    assert abs(adjusted_rand(table)) < 0.005
