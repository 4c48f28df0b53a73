"""The drawdown breaker shrinks exposure in steps: it protects without trading on every bar."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.risk import DrawdownBreaker, DrawdownConfig, RiskView

SOFT, HARD = DrawdownConfig().soft_drawdown, DrawdownConfig().max_drawdown


def view(equity: float, peak: float = 100.0, ts: int = 0) -> RiskView:
    return RiskView(ts, equity, peak, 10.0, 0.0, 0.01)


def line(drawdown: float) -> float:
    return min(1.0, max(0.0, 1.0 - (drawdown - SOFT) / (HARD - SOFT)))


def scales(drawdowns: Any, **config: Any) -> list[float]:
    breaker = DrawdownBreaker(DrawdownConfig(**config))
    return [
        breaker.cap(1.0, view(100.0 * (1.0 - depth), ts=i * HOUR_NS)).after
        for i, depth in enumerate(drawdowns)
    ]


def changes(values: list[float]) -> int:
    return sum(before != after for before, after in pairwise([1.0, *values]))


def test_a_slow_fall_shrinks_in_a_few_steps_and_not_on_every_bar() -> None:
    depths = np.linspace(0.0, 0.16, 3000)
    stepped, followed = scales(depths), scales(depths, scale_step=0.0)
    assert changes(stepped) <= 11
    assert changes(followed) > 1500  # without steps every bar would trade
    assert stepped[-1] == followed[-1] == 0.0
    assert np.all(np.diff(stepped) <= 0.0)


def test_a_drawdown_that_trembles_trades_nothing() -> None:
    rng = Seeds(3).child("tremble").rng()
    depths = 0.10 + rng.uniform(-0.004, 0.004, 500)
    assert changes(scales(depths)) == 1
    assert changes(scales(depths, scale_step=0.0)) == 500
    at_the_edge = SOFT + rng.uniform(-0.004, 0.004, 500)
    assert changes(scales(at_the_edge)) == 0


def test_back_at_the_soft_drawdown_nothing_is_held_back() -> None:
    assert scales([0.08, 0.075, 0.06, SOFT, 0.0]) == pytest.approx([0.7, 0.7, 0.9, 1.0, 1.0])


@settings(deadline=None)
@given(
    st.lists(st.floats(0.0, 0.2), min_size=1, max_size=60),
    st.sampled_from([0.0, 0.05, 0.1, 0.25, 0.5]),
)
def test_the_scale_stays_within_one_step_of_the_line(depths: list[float], step: float) -> None:
    found = scales(depths, scale_step=step)
    tripped = False
    for depth, scale in zip(depths, found, strict=True):
        depth = 1.0 - 100.0 * (1.0 - depth) / 100.0
        tripped = tripped or depth >= HARD
        if tripped:
            assert scale == 0.0
            continue
        assert abs(scale - line(depth)) <= step + 1e-12
        assert scale == 1.0 or depth > SOFT
    moves = [abs(after - before) for before, after in pairwise([1.0, *found]) if after != before]
    assert all(
        move >= step - 1e-12 or 1.0 in pair or 0.0 in pair
        for move, pair in zip(
            moves, [p for p in pairwise([1.0, *found]) if p[0] != p[1]], strict=True
        )
    )


def test_the_scale_is_remembered_reset_and_re_armed() -> None:
    breaker = DrawdownBreaker(DrawdownConfig(cool_off_days=0.0))
    assert breaker.cap(1.0, view(90.0)).after == pytest.approx(0.5)
    twin = DrawdownBreaker(DrawdownConfig())
    twin.restore(breaker.state())
    assert twin.cap(1.0, view(90.5)).after == pytest.approx(0.5)  # a fresh one would say 0.55
    twin.restore({"tripped_ts": None, "rearmed_peak": None, "trips": 0})  # of an earlier version
    assert twin.cap(1.0, view(90.5)).after == pytest.approx(0.55)
    breaker.cap(1.0, view(80.0))
    breaker.re_arm(view(80.0))
    assert breaker.cap(1.0, view(80.0)).after == 1.0
    breaker.reset()
    assert breaker.state() == DrawdownBreaker(DrawdownConfig()).state()


@pytest.mark.parametrize("step", [-0.1, 1.0])
def test_steps_that_make_no_sense_are_refused(step: float) -> None:
    with pytest.raises(ValidationError):
        DrawdownConfig(scale_step=step)
