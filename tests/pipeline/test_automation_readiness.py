"""When training may begin: each condition alone keeps it back, in words with numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.automation.readiness import ReadinessPolicy, Stock, readiness

POLICY = ReadinessPolicy(min_trajectories=100, min_groups=5, min_group_size=4)
NOW = 1_000 * HOUR_NS
ENOUGH = Stock(unused=100, full_groups=5, quality=0.95, last_training_ns=NOW - 24 * HOUR_NS)


def test_just_enough_is_enough():
    found = readiness(ENOUGH, POLICY, NOW)
    assert found.ready
    assert found.reason == ""
    assert all(each.met for each in found.conditions)


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        ({"unused": 99}, "trajectories", "1 more unused trajectories are needed (99 of 100)"),
        ({"full_groups": 2}, "groups", "3 more groups of at least 4 trajectories"),
        ({"quality": 0.949}, "quality", "less than 95%"),
        ({"quality": None}, "quality", "no trajectory"),
        ({"last_training_ns": NOW - 23 * HOUR_NS}, "spacing", "23.0 h ago; 24 h must lie"),
    ],
)
def test_each_condition_alone_keeps_it_back(change, name, words):
    found = readiness(replace(ENOUGH, **change), POLICY, NOW)
    assert not found.ready
    assert [each.name for each in found.conditions if not each.met] == [name]
    assert words in found.reason


def test_all_that_is_missing_is_said_at_once():
    found = readiness(Stock(0, 0, None, NOW), POLICY, NOW)
    assert [each.met for each in found.conditions] == [False] * 4
    assert found.reason.count(";") >= 3


def test_the_first_training_waits_for_nobody():
    assert readiness(replace(ENOUGH, last_training_ns=None), POLICY, NOW).ready


@given(st.integers(0, 300), st.integers(0, 20), st.floats(0, 1), st.integers(0, 100))
def test_more_is_never_less_ready(unused, groups, quality, hours):
    stock = Stock(unused, groups, quality, NOW - hours * HOUR_NS)
    more = Stock(unused + 1, groups + 1, min(quality + 0.1, 1.0), NOW - (hours + 1) * HOUR_NS)
    assert readiness(stock, POLICY, NOW).ready <= readiness(more, POLICY, NOW).ready


def test_the_environment_is_heard():
    said = {"TRAINING_MIN_TRAJECTORIES": "7", "TRAINING_MIN_GROUP_SIZE": "3", "OTHER": "x"}
    policy = ReadinessPolicy.from_environment(said)
    assert (policy.min_trajectories, policy.min_group_size) == (7, 3)
    assert ReadinessPolicy.from_environment({}) == ReadinessPolicy()
    assert ReadinessPolicy().min_trajectories == 1000


@pytest.mark.parametrize("text", ["", "many", "1.5"])
def test_what_is_no_number_is_refused_by_name(text):
    with pytest.raises(ConfigError, match="TRAINING_MIN_TRAJECTORIES"):
        ReadinessPolicy.from_environment({"TRAINING_MIN_TRAJECTORIES": text})
