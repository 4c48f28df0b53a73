from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.exchange.risk import (
    Cap,
    ConfidenceConfig,
    ConfidenceShrink,
    DrawdownBreaker,
    DrawdownConfig,
    EsCap,
    EsConfig,
    KellyCap,
    KellyConfig,
    LimitConfig,
    PositionLimit,
    RiskChain,
    RiskConfig,
    RiskModel,
    RiskView,
    TailRisk,
    VarCap,
    VarConfig,
    build_chain,
)

TAIL = TailRisk(var_long=0.05, var_short=0.08, es_long=0.07, es_short=0.10)


def view(**changes: Any) -> RiskView:
    values: dict[str, Any] = {
        "ts": 0,
        "equity": 95.0,
        "peak_equity": 100.0,
        "mark": 10.0,
        "position_fraction": 0.0,
        "sigma": 0.01,
        "expected_return": 0.0002,
        "expected_return_se": 0.0001,
        "tail": TAIL,
    }
    return RiskView(**(values | changes))


amounts = st.floats(0.0, 1e3)
shares = st.floats(0.0, 1.0)


@st.composite
def views(draw: st.DrawFn) -> RiskView:
    peak = draw(st.floats(1.0, 1e6))
    known = draw(st.booleans())
    return view(
        equity=peak * draw(st.floats(-0.2, 1.0)),
        peak_equity=peak,
        mark=draw(st.floats(1e-3, 1e6)),
        sigma=draw(st.floats(0.0, 0.2)),
        expected_return=draw(st.floats(-0.1, 0.1)) if known else None,
        expected_return_se=draw(st.floats(0.0, 0.1)) if known else None,
        tail=TailRisk(*(draw(st.floats(0.0, 2.0)) for _ in range(4)))
        if draw(st.booleans())
        else None,
    )


@settings(deadline=None)
@given(st.floats(-5.0, 5.0), views())
def test_no_target_leaves_the_chain_above_any_bound(target: float, seen: RiskView) -> None:
    config = RiskConfig()
    after, caps = build_chain(config).apply(target, seen)
    assert abs(after) <= abs(target)
    assert after * target >= 0.0
    assert all(abs(after) <= cap.bound for cap in caps)
    tail = seen.tail
    if tail is None:
        assert after == 0.0
    else:
        loss = (tail.var_long, tail.es_long) if after > 0 else (tail.var_short, tail.es_short)
        assert abs(after) * loss[0] <= 0.02 * (1 + 1e-12)
        assert abs(after) * loss[1] <= 0.03 * (1 + 1e-12)
    if seen.expected_return is not None and seen.expected_return_se is not None and after:
        edge = math.copysign(1.0, after) * seen.expected_return - seen.expected_return_se
        assert edge > 0.0
        assert abs(after) * seen.sigma**2 <= 0.25 * edge * (1 + 1e-12)
    if 1.0 - seen.equity / seen.peak_equity >= 0.15:
        assert after == 0.0
    assert abs(after) <= 1.0


@settings(deadline=None)
@given(st.floats(-5.0, 5.0), views())
def test_the_log_is_a_chain_of_before_and_after(target: float, seen: RiskView) -> None:
    after, caps = build_chain(RiskConfig()).apply(target, seen)
    assert [cap.before for cap in caps] == [target, *(cap.after for cap in caps[:-1])]
    assert caps[-1].after == after
    json.dumps([cap.as_dict() for cap in caps], allow_nan=False)
    assert all(cap.binding == (cap.before != cap.after) for cap in caps)


def test_confidence_keeps_the_share_beyond_the_error() -> None:
    part = ConfidenceShrink(ConfidenceConfig(z=1.0))
    assert part.cap(0.8, view()).after == pytest.approx(0.4)
    assert part.cap(-0.8, view()).after == 0.0
    assert ConfidenceShrink(ConfidenceConfig(z=2.5)).cap(0.8, view()).after == 0.0


def test_kelly_is_the_published_formula_on_both_sides() -> None:
    part = KellyCap(KellyConfig())
    assert part.cap(1.0, view()).after == pytest.approx(0.25 * 0.0001 / 0.01**2)
    short = part.cap(-1.0, view(expected_return=-0.0002))
    assert short.after == pytest.approx(-0.25)
    assert part.cap(-1.0, view()).after == 0.0
    sure = part.cap(9.0, view(expected_return=1.0))
    assert sure.after == 1.0
    assert part.cap(9.0, view(sigma=0.0)).after == 1.0
    assert part.cap(9.0, view(sigma=0.0, expected_return=0.0)).after == 0.0


def test_tail_bounds_look_at_the_side_that_is_taken() -> None:
    assert VarCap(VarConfig()).cap(1.0, view()).after == pytest.approx(0.02 / 0.05)
    assert VarCap(VarConfig()).cap(-1.0, view()).after == pytest.approx(-0.02 / 0.08)
    assert EsCap(EsConfig()).cap(1.0, view()).after == pytest.approx(0.03 / 0.07)
    assert EsCap(EsConfig()).cap(-1.0, view()).after == pytest.approx(-0.03 / 0.10)
    assert VarCap(VarConfig()).cap(7.0, view(tail=TailRisk(0.0, 0.0, 0.0, 0.0))).after == 7.0


@pytest.mark.parametrize(
    ("part", "seen"),
    [
        (lambda rule: KellyCap(KellyConfig(when_unknown=rule)), "forecast"),
        (lambda rule: ConfidenceShrink(ConfidenceConfig(when_unknown=rule)), "forecast"),
        (lambda rule: VarCap(VarConfig(when_unknown=rule)), "tail"),
        (lambda rule: EsCap(EsConfig(when_unknown=rule)), "tail"),
    ],
)
def test_what_is_unknown_is_handled_as_stated_and_logged(part: Any, seen: str) -> None:
    blind = view(expected_return=None, expected_return_se=None, tail=None)
    passed = part("pass").cap(0.5, blind)
    assert (passed.after, passed.binding) == (0.5, False)
    assert seen in passed.reason or "tail" in passed.reason
    assert part("flat").cap(0.5, blind).after == 0.0
    with pytest.raises(VenueError):
        part("error").cap(0.5, blind)


def falling_path(config: DrawdownConfig, bars: int = 2000) -> tuple[float, DrawdownBreaker]:
    """Return the deepest drawdown of a full long in a market that falls 1 % a bar."""
    breaker = DrawdownBreaker(config)
    chain = RiskChain([breaker])
    equity, peak, worst = 100.0, 100.0, 0.0
    for i in range(bars):
        target, _ = chain.apply(1.0, view(ts=i * HOUR_NS, equity=equity, peak_equity=peak))
        equity *= 1.0 - 0.01 * target
        worst = max(worst, 1.0 - equity / peak)
    return worst, breaker


def test_a_falling_market_costs_at_most_the_limit_and_one_bar() -> None:
    soft, _ = falling_path(DrawdownConfig())
    assert 0.149 < soft <= 0.15 + 0.01
    hard, breaker = falling_path(DrawdownConfig(soft_drawdown=0.15))
    assert 0.15 <= hard <= 0.15 + 0.01
    assert breaker.tripped
    # Negative control: without a breaker the same path ruins the account.
    unprotected, _ = falling_path(DrawdownConfig(soft_drawdown=0.99, max_drawdown=0.99))
    assert unprotected > 0.9


def test_scale_is_linear_between_soft_and_hard() -> None:
    for drawdown, scale in ((0.0, 1.0), (0.05, 1.0), (0.075, 0.75), (0.10, 0.5), (0.1499, 0.001)):
        cap = DrawdownBreaker(DrawdownConfig()).cap(1.0, view(equity=100.0 * (1 - drawdown)))
        assert cap.after == pytest.approx(scale, abs=1e-12)


def test_the_breaker_latches_until_cool_off_and_re_arm() -> None:
    breaker = DrawdownBreaker(DrawdownConfig())
    chain = RiskChain([breaker])
    with pytest.raises(VenueError, match="not tripped"):
        chain.re_arm(view())
    assert chain.apply(1.0, view(ts=7, equity=84.0))[0] == 0.0
    # A full recovery and a year of waiting change nothing by themselves.
    assert chain.apply(1.0, view(ts=365 * DAY_NS, equity=100.0))[0] == 0.0
    with pytest.raises(VenueError, match="cooling off"):
        chain.re_arm(view(ts=5 * DAY_NS, equity=84.0))
    assert chain.apply(1.0, view(ts=5 * DAY_NS, equity=84.0))[0] == 0.0
    chain.re_arm(view(ts=5 * DAY_NS + 7, equity=84.0))
    assert chain.apply(1.0, view(ts=6 * DAY_NS, equity=84.0))[0] == 1.0
    # The drawdown counts from the new start and from new highs after it.
    assert chain.apply(1.0, view(ts=7 * DAY_NS, equity=90.0))[0] == 1.0
    assert chain.apply(1.0, view(ts=8 * DAY_NS, equity=81.0))[0] == pytest.approx(0.5)
    assert chain.apply(1.0, view(ts=9 * DAY_NS, equity=76.0))[0] == 0.0
    assert breaker.state()["trips"] == 2


def test_state_survives_json_and_reset_forgets_it() -> None:
    first = build_chain(RiskConfig())
    first.apply(1.0, view(equity=80.0))
    saved = json.loads(json.dumps(first.state()))
    second = build_chain(RiskConfig())
    assert second.apply(1.0, view())[0] > 0.0
    second.restore(saved)
    assert second.state() == first.state()
    assert second.apply(1.0, view())[0] == 0.0
    second.reset()
    assert second.state() == build_chain(RiskConfig()).state()
    assert second.apply(1.0, view())[0] > 0.0
    with pytest.raises(VenueError, match="another chain"):
        build_chain(RiskConfig(max_drawdown=None)).restore(saved)


def test_order_matters_and_is_logged() -> None:
    shrink = ConfidenceShrink(ConfidenceConfig())
    limit = PositionLimit(LimitConfig(max_leverage=0.5))
    early, early_caps = RiskChain([shrink, limit]).apply(0.8, view())
    late, late_caps = RiskChain([limit, shrink]).apply(0.8, view())
    assert early == pytest.approx(0.4)
    assert late == pytest.approx(0.25)
    assert [cap.part for cap in early_caps] == ["confidence", "limit"]
    assert [cap.part for cap in late_caps] == ["limit", "confidence"]
    assert [cap.binding for cap in early_caps] == [True, False]
    assert [cap.binding for cap in late_caps] == [True, True]


def test_the_usual_order_is_that_of_the_risk_policy() -> None:
    assert build_chain(RiskConfig()).names == (
        "confidence",
        "kelly",
        "var",
        "es",
        "drawdown",
        "limit",
    )
    absent = RiskConfig(
        confidence_z=None,
        kelly_fraction=None,
        var_limit=None,
        es_limit=None,
        max_drawdown=None,
        limits=None,
    )
    assert build_chain(absent).names == ()
    assert build_chain(absent).apply(3.0, view()) == (3.0, [])


def test_counts_say_how_often_a_part_bound() -> None:
    chain = build_chain(RiskConfig(confidence_z=None))
    chain.apply(1.0, view(equity=98.0))
    chain.apply(0.01, view(equity=98.0))
    assert chain.bound_counts == {"kelly": 1, "var": 0, "es": 0, "drawdown": 0, "limit": 0}


@pytest.mark.parametrize(
    "field",
    [
        "equity",
        "peak_equity",
        "mark",
        "position_fraction",
        "sigma",
        "expected_return",
        "expected_return_se",
    ],
)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_raise(field: str, value: float) -> None:
    with pytest.raises(VenueError):
        view(**{field: value})


def test_other_impossible_views_raise() -> None:
    wrong: list[dict[str, Any]] = [
        {"tail": TailRisk(0.01, math.nan, 0.01, 0.01)},
        {"tail": TailRisk(0.01, -0.01, 0.01, 0.01)},
        {"expected_return_se": None},
        {"expected_return_se": -1.0},
        {"sigma": -1.0},
        {"mark": 0.0},
        {"equity": 100.1},
    ]
    for changes in wrong:
        with pytest.raises(VenueError):
            view(**changes)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_target_that_is_not_finite_raises(value: float) -> None:
    with pytest.raises(VenueError):
        build_chain(RiskConfig()).apply(value, view())
    for part in (VarCap(VarConfig()), DrawdownBreaker(DrawdownConfig()), KellyCap(KellyConfig())):
        with pytest.raises(VenueError):
            part.cap(value, view())


@pytest.mark.parametrize("after", [2.0, -0.1, math.nan])
def test_a_part_that_does_more_than_shrink_is_caught(after: float) -> None:
    class Rogue:
        name = "rogue"

        def cap(self, target: float, view: RiskView) -> Cap:
            return Cap(self.name, target, after, 1.0, "planted")

    rogue: RiskModel = Rogue()
    with pytest.raises(VenueError, match="nearer to 0"):
        RiskChain([rogue]).apply(1.0, view())


def test_a_part_stands_in_a_chain_once() -> None:
    with pytest.raises(ConfigError, match="twice"):
        RiskChain([VarCap(VarConfig()), VarCap(VarConfig(limit=0.5))])


# Each field set to another value must change what some view gets.
CHANGED: dict[str, tuple[object, float, RiskView]] = {
    "confidence_z": (None, 0.2, view()),
    "kelly_fraction": (0.1, 1.0, view(expected_return=0.0003)),
    "kelly_z": (1.8, 1.0, view()),
    "max_kelly_bet": (0.3, 1.0, view(expected_return=1.0)),
    "var_limit": (0.001, 1.0, view()),
    "es_limit": (0.001, 1.0, view()),
    "soft_drawdown": (0.01, 0.1, view()),
    "max_drawdown": (0.06, 0.1, view(equity=94.5)),
    "drawdown_step": (0.0, 0.1, view(equity=94.5)),
    "limits": (LimitConfig(max_leverage=0.01), 0.1, view()),
    "without_forecast": ("flat", 0.1, view(expected_return=None, expected_return_se=None)),
    "without_history": ("pass", 0.1, view(tail=None)),
}


@pytest.mark.parametrize("field", sorted(set(RiskConfig.model_fields) - {"cool_off_days"}))
def test_each_risk_field_acts(field: str) -> None:
    value, target, seen = CHANGED[field]
    usual = build_chain(RiskConfig()).apply(target, seen)[0]
    changed = build_chain(RiskConfig.model_validate({field: value})).apply(target, seen)[0]
    assert usual != changed


def test_cool_off_acts() -> None:
    chain = build_chain(RiskConfig(cool_off_days=0.0))
    chain.apply(1.0, view(equity=80.0))
    chain.re_arm(view(equity=80.0))
    assert chain.apply(0.1, view(equity=80.0))[0] > 0.0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (LimitConfig(max_leverage=None), -3.0),
        (LimitConfig(max_leverage=2.0), -2.0),
        (LimitConfig(max_notional=19.0), -0.2),
        (LimitConfig(max_units=1.9), -0.2),
        (LimitConfig(max_units=1.9, max_notional=9.5), -0.1),
        (LimitConfig(allow_short=False), 0.0),
    ],
)
def test_each_limit_acts(config: LimitConfig, expected: float) -> None:
    assert PositionLimit(config).cap(-3.0, view()).after == pytest.approx(expected)


def test_a_ruined_account_holds_nothing() -> None:
    cap = PositionLimit(LimitConfig(max_units=1.0)).cap(1.0, view(equity=-5.0))
    assert cap.after == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"kelly_fraction": 1.5},
        {"var_limit": 0.0},
        {"max_drawdown": 1.0},
        {"soft_drawdown": 0.2},
        {"kely_fraction": 0.1},
        {"without_history": "guess"},
    ],
)
def test_wrong_configs_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RiskConfig.model_validate(wrong)
