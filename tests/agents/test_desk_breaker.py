import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.agents.desk.breaker import BreakerPolicy, CircuitBreaker

S = 1_000_000_000


def opened_at(breaker, failures):
    """Return the number of the failure at which it opens, None if it never does."""
    for number, at in enumerate(failures, start=1):
        breaker.failure(at)
        if breaker.state == "open":
            return number
    return None


class OpensLate(CircuitBreaker):
    """Planted: one failure too many."""

    def __init__(self):
        super().__init__(failures=6)


class OpensEarly(CircuitBreaker):
    def __init__(self):
        super().__init__(failures=4)


class WindowTooLong(CircuitBreaker):
    def __init__(self):
        super().__init__(window_s=60.000000001)


class RestsTooLong(CircuitBreaker):
    def __init__(self):
        super().__init__(open_s=30.000000001)


class RestsTooShort(CircuitBreaker):
    def __init__(self):
        super().__init__(open_s=29.999999999)


class LetsAllThrough(CircuitBreaker):
    """Planted: half open is as good as closed."""

    def allows(self, now_ns):
        return super().allows(now_ns) or self.state == "half_open"


def laws(make):
    """Return the laws that a breaker breaks."""
    broken = []
    if opened_at(make(), [i * S for i in range(9)]) != 5:
        broken.append("opens at the 5th")
    if opened_at(make(), [0, 1, 2, 3, 60 * S - 1]) != 5:
        broken.append("counts within the window")
    if opened_at(make(), [0, 1, 2, 3, 60 * S]) is not None:
        broken.append("a failure as old as the window is forgotten")
    breaker = make()
    opened_at(breaker, [0, 0, 0, 0, 0, 0])
    if breaker.allows(30 * S - 1):
        broken.append("rests for its time")
    if not breaker.allows(30 * S):
        broken.append("wakes after its time")
    if breaker.allows(30 * S):
        broken.append("lets one through")
    return broken


def test_a_sound_breaker_keeps_every_law():
    assert laws(CircuitBreaker) == []
    assert laws(lambda: CircuitBreaker.by(BreakerPolicy())) == []


@pytest.mark.parametrize(
    "plant", [OpensLate, OpensEarly, WindowTooLong, RestsTooLong, RestsTooShort, LetsAllThrough]
)
def test_planted_faults_are_seen(plant):
    assert laws(plant)


def half_open():
    breaker = CircuitBreaker()
    opened_at(breaker, [0] * 5)
    assert breaker.allows(30 * S)
    assert breaker.state == "half_open"
    return breaker


def test_the_one_that_was_let_through_decides():
    good, bad = half_open(), half_open()
    good.success(31 * S)
    bad.failure(31 * S)
    assert (good.state, good.allows(31 * S)) == ("closed", True)
    assert (bad.state, bad.allows(61 * S - 1), bad.allows(61 * S)) == ("open", False, True)
    assert bad.opened_ns == [0, 31 * S]


def test_after_closing_it_counts_from_nothing():
    breaker = half_open()
    breaker.success(31 * S)
    assert opened_at(breaker, [32 * S] * 4) is None
    breaker.failure(32 * S)
    assert breaker.state == "open"


def test_one_that_never_reports_back_does_not_lock_it():
    breaker = half_open()
    assert not breaker.allows(60 * S - 1)
    assert breaker.allows(60 * S)


def test_success_while_closed_forgives_nothing():
    breaker = CircuitBreaker()
    for _ in range(5):
        breaker.success(0)
        breaker.failure(0)
    assert breaker.state == "open"


@given(st.lists(st.tuples(st.integers(0, 20 * S), st.booleans()), max_size=60))
def test_it_is_open_only_after_enough_failures_in_the_window(steps):
    breaker, now, failed = CircuitBreaker(), 0, []
    for wait, works in steps:
        now += wait
        if not breaker.allows(now):
            continue
        before = breaker.state
        if works:
            breaker.success(now)
        else:
            failed.append(now)
            breaker.failure(now)
            recent = [at for at in failed if at > now - 60 * S]
            if before == "closed" and breaker.state == "open":
                assert len(recent) >= 5
        if breaker.state == "open":
            failed = []
