import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import Monitor, MonitorPolicy

VALUES = st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=40)


def watched(differences, scale=1.0, **policy):
    watch = Monitor.start(scale, MonitorPolicy(**policy))
    for difference in differences:
        watch = watch.add(0.0, difference)
    return watch


def drawn(n, mean=0.0, seed=0):
    return (mean + Seeds(seed).child("rollout").rng().normal(0.0, 1.0, n)).tolist()


def test_harm_is_found_and_gain_is_kept():
    worse = watched(drawn(80, -1.0))
    assert worse.decision().action == "roll_back"
    assert worse.decision().words.startswith("roll back: 80 paired episodes, mean difference -")
    better = watched(drawn(80, 1.0))
    assert better.decision().action == "keep"
    assert 1.0 <= better.decision().evidence < 3.0
    assert "is below 100" in better.decision().words


def test_a_decision_to_roll_back_is_never_taken_back():
    watch = watched(drawn(60, -1.0))
    assert watch.harm_shown
    for _ in range(200):
        watch = watch.add(0.0, 3.0)
    assert watch.decision().action == "roll_back"


def test_nothing_seen_says_nothing():
    watch = Monitor.start(1.0)
    assert watch.decision().action == "keep"
    assert "mean difference unknown" in watch.decision().words
    assert watch.interval() == (-math.inf, math.inf)
    assert watched([0.0] * 50).decision().evidence == 1.0


def test_a_margin_forgives_what_it_is_for():
    differences = drawn(80, -0.8)
    assert watched(differences).harm_shown
    assert not watched(differences, margin=0.8).harm_shown


@settings(max_examples=30, deadline=None)
@given(VALUES, st.integers(0, 40))
def test_going_on_after_a_save_gives_the_same_bits(values, at):
    whole = watched(values)
    part = watched(values[:at])
    resumed = Monitor.from_dict(json.loads(json.dumps(part.to_dict())))
    assert resumed == part
    for value in values[at:]:
        resumed = resumed.add(0.0, value)
    assert resumed == whole
    assert resumed.decision() == whole.decision()


@settings(max_examples=30, deadline=None)
@given(VALUES, st.floats(0.01, 100.0))
def test_a_rollback_and_the_bound_agree(values, unit):
    watch = watched([unit * value for value in values], scale=unit)
    low, high = watch.interval()
    now = watched(values)
    last = min(
        np.logaddexp.reduce(now.wealth[:16]) - math.log(16),
        np.logaddexp.reduce(now.wealth[16:]) - math.log(4),
    )
    assert (last >= math.log(100.0)) == (high <= 0.0) or abs(last - math.log(100.0)) < 1e-6
    assert low <= high
    mirrored = watched([-unit * value for value in values], scale=unit).interval()
    assert mirrored == pytest.approx((-high, -low), rel=1e-6, abs=1e-9 * unit)


@settings(max_examples=30, deadline=None)
@given(VALUES, st.floats(0.0, 2.0))
def test_more_harm_is_never_less_evidence(values, more):
    assert watched([value - more for value in values]).most >= watched(values).most - 1e-9


def test_the_interval_holds_the_mean_at_every_look():
    missed = 0
    for seed in range(40):
        watch = Monitor.start(1.0, MonitorPolicy(alpha=0.05))
        out = False
        for look, value in enumerate(drawn(120, 0.4, seed), start=1):
            watch = watch.add(0.0, value)
            if look % 10 == 0:
                low, high = watch.interval()
                out |= not low <= 0.4 <= high
        missed += out
    assert missed <= 6  # 10 % at most by design, much less in so few looks
    assert high - low < 1.2


def test_a_wrong_scale_costs_episodes_and_not_validity():
    calm = [watched(drawn(200, 0.0, seed), scale=0.25).harm_shown for seed in range(60)]
    assert sum(calm) <= 3
    found = [watched(drawn(200, -0.6, seed), scale=3.0).harm_shown for seed in range(10)]
    assert sum(found) >= 8


def test_the_state_is_read_strictly():
    state = watched([1.0, -1.0]).to_dict()
    for bad in (
        {},
        state | {"format": "other"},
        state | {"wealth": [0.0]},
        state | {"scale": 0.0},
        state | {"scale": "x"},
        {name: value for name, value in state.items() if name != "most"},
    ):
        with pytest.raises(DataError):
            Monitor.from_dict(bad)
    with pytest.raises(ConfigError):
        Monitor.from_dict(state | {"policy": {"alpha": 2.0}})
    for bad in (math.nan, math.inf):
        with pytest.raises(DataError, match="finite"):
            Monitor.start(1.0).add(0.0, bad)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(DataError, match="scale"):
            Monitor.start(bad)
