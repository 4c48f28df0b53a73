"""Parts of trajectories for those who only look: some steps, a short curve, counts of days."""

import numpy as np
import pytest
from trajectory_samples import fill

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database.curves import extremes


def test_some_steps_are_those_of_the_whole(store):
    first, second = fill(store, range(2), steps=30)
    for name in (first, second):
        whole, part = store.steps(name), store.steps_part(name, 7, 5)
        assert part.t.tolist() == whole.t[7:12].tolist()
        assert part.reward.tolist() == whole.reward[7:12].tolist()
        assert part.rationale == whole.rationale[7:12]
        assert (part.observation == whole.observation[7:12]).all()
        assert len(store.steps_part(name, 28, 50)) == len(whole) - 28
    for asked in ((-1, 3), (10_000, 1), (3, 0)):
        with pytest.raises(ConfigError, match="no such steps"):
            store.steps_part(first, *asked)
    with pytest.raises(ConfigError, match="no such trajectory"):
        store.steps_part("nothing", 0, 1)


def test_the_curve_is_the_sum_of_the_rewards(store):
    (name,) = fill(store, [3], steps=40)
    rewards = store.steps(name).reward
    curve = store.reward_curve(name)
    assert curve.t.tolist() == list(range(rewards.size))
    assert curve.total == pytest.approx(np.cumsum(rewards))
    few = store.reward_curve(name, points=6)
    assert few.t.size <= 10
    assert few.total[-1] == pytest.approx(rewards.sum())


def test_a_changed_file_gives_no_curve(store):
    (name,) = fill(store, [4], steps=20)
    assert store.reward_curve(name) is store.reward_curve(name)  # kept while nothing was touched
    path = store.files.path(store.get(name).step_file)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not what was written"):
        store.reward_curve(name)


def test_a_long_curve_keeps_its_extremes():
    values = np.cumsum(np.sin(np.arange(100_000) / 7.0))
    values[54_321] = 1e6
    places = extremes(values, 1_000)
    assert places.size <= 1_003
    assert {0, 54_321, values.size - 1, int(values.argmin())} <= set(places.tolist())
    assert (np.diff(places) > 0).all()


def test_days_are_counted_from_now_back(store, clock):
    for number in range(3):
        fill(store, range(number * 10, number * 10 + number + 1))
        clock.sleep_s(DAY_NS / 1e9)
    now = int(clock.now_ns())
    assert store.recorded_per_day(now, 4) == (0, 1, 2, 3)
    assert store.recorded_per_day(now, 2) == (2, 3)
    assert sum(store.recorded_per_day(now - 10 * DAY_NS, 5)) == 0
