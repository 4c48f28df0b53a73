"""What the filter promises for any signal, market and account; beside each a planted breach."""

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from agent_gym.agents.desk import (
    FILTER_RULES,
    DeskView,
    FilterConfig,
    Holdings,
    Quote,
    RecentContext,
    RejectCode,
    SignalFilter,
    parse_signal,
)
from agent_gym.agents.desk.filter_case import FilterRule
from agent_gym.core import Seeds
from tests.agents.desk_samples import NOW, RAW, VIEW, FixedAcceptor
from tests.agents.test_desk_signals import GARBAGE, nearly

SIZE_CODES = {
    RejectCode.RISK_EXPOSURE_LIMIT,
    RejectCode.RISK_POSITION_LIMIT,
    RejectCode.RISK_VAR_LIMIT,
    RejectCode.RISK_LEVERAGE,
    RejectCode.MARKET_NO_LIQUIDITY,
}
WILD = st.floats() | st.sampled_from([nan, inf, -inf, 0.0, -1.0, 1e308, 5e-324])
SHARES = st.floats(0.0, 2.0)
LADDER = [5e-324, 1e-9, 2e-4, 0.001, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 50.0, 1e6, 1e300, 1.7e308]


def quotes(number):
    return st.builds(Quote, number, number, number, number, number, st.booleans())


def views(number):
    positions = st.dictionaries(st.sampled_from(["BTC/USDT", "ETH/USDT"]), number, max_size=2)
    holdings = st.builds(Holdings, number, number, positions, number, number, number)
    table = st.dictionaries(st.sampled_from(["BTC/USDT", "ETH/USDT"]), positions, max_size=2)
    book = st.dictionaries(st.sampled_from(["BTC/USDT", "ETH/USDT"]), quotes(number), max_size=2)
    return st.builds(DeskView, number, book, holdings, st.booleans(), st.booleans(), table)


@st.composite
def calm_views(draw):
    """Return views that leave room for some amounts, with positions of either sign."""
    held = draw(st.floats(-1.0, 1.0))
    other = draw(st.floats(-10.0, 10.0))
    holdings = Holdings(
        equity=draw(st.floats(1e3, 1e6)),
        cash=draw(st.floats(-1e5, 1e6)),
        positions={"BTC/USDT": held, "ETH/USDT": other},
        exposure=draw(SHARES),
        drawdown=draw(st.sampled_from([0.0, 0.1, 0.2])),
        value_at_risk=draw(st.floats(0.0, 0.03)),
    )
    quote = replace(
        VIEW.quotes["BTC/USDT"],
        volume_per_hour=draw(st.floats(0.0, 1e3)),
        volatility=draw(st.floats(0.0, 0.02)),
    )
    rho = draw(st.floats(-1.0, 1.0))
    return replace(
        VIEW,
        quotes=dict(VIEW.quotes) | {"BTC/USDT": quote},
        holdings=holdings,
        correlations={"BTC/USDT": {"ETH/USDT": rho}},
    )


CONFIGS = st.builds(
    FilterConfig,
    max_exposure=st.floats(0.1, 5.0),
    max_position=st.floats(0.1, 5.0),
    max_var=st.floats(0.001, 0.2),
    max_leverage=st.floats(1.0, 3.0),
    max_volume_share=st.floats(0.01, 1.0),
    kelly_payoff=st.none() | st.floats(0.1, 5.0),
    epsilon_pass=st.floats(0.0, 1.0),
    audit=st.booleans(),
)
ACCEPTORS = st.builds(
    FixedAcceptor,
    score=WILD,
    threshold=WILD,
    hold=st.none() | st.sampled_from([code.value for code in RejectCode]),
    fails=st.none() | st.just("cannot"),
)


@settings(max_examples=200)
@given(
    raw=GARBAGE | nearly() | nearly(st.floats() | st.text(max_size=3)),
    view=views(WILD),
    config=CONFIGS,
    acceptor=st.none() | ACCEPTORS,
)
def test_whatever_comes_it_is_accepted_or_has_a_code(raw, view, config, acceptor):
    context = RecentContext()
    result = SignalFilter(config, acceptor, Seeds(1)).check(raw, view, context)
    assert result.accepted is (result.code is None)
    assert result.detail.isprintable()
    assert len(result.detail) < 300
    assert result.code is None or not config.audit or result.code in result.failed


def sent(context, names, the_filter, step_s):
    """Play ids one after the other; return those that were accepted, in order."""
    accepted = []
    for turn, name in enumerate(names):
        now = NOW + step_s * turn
        quote = replace(VIEW.quotes["BTC/USDT"], timestamp=now)
        view = replace(VIEW, now=now, quotes={"BTC/USDT": quote})
        signal = parse_signal(RAW | {"signal_id": name, "timestamp": now})
        result = the_filter.check(signal, view, context)
        context.store_signal(signal, now)
        context.store_filter_result(result, now)
        if result.accepted:
            accepted.append(name)
        else:
            context.store_rejection(result, now)
    return accepted


NAMES = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40)


@given(names=NAMES, step_s=st.sampled_from([0.0, 1.0, 6.0]), maxlen=st.sampled_from([1, 3, 100]))
def test_a_repeated_id_never_passes_twice(names, step_s, maxlen):
    accepted = sent(RecentContext(maxlen), names, SignalFilter(), step_s)
    assert len(accepted) == len(set(accepted))
    assert accepted[0] == names[0]


def test_without_the_rule_a_repeat_would_pass():
    rules = tuple(r for r in FILTER_RULES if r.code is not RejectCode.DUP_DUPLICATE_ID)
    accepted = sent(RecentContext(), "aba", SignalFilter(rules=rules), 6.0)
    assert accepted == ["a", "b", "a"]


def test_a_steady_stream_above_the_rate_is_thinned_and_not_cut_off():
    config = FilterConfig(rate_limit=10, rate_window_s=60.0, near_duplicate_s=0.0)
    accepted = sent(RecentContext(), [f"s{i}" for i in range(200)], SignalFilter(config), 3.0)
    assert 95 <= len(accepted) <= 110


def turning_points(the_filter, view, side):
    """Return the rungs at which a signal passes although a smaller one was refused for its size."""
    found, refused_at = [], None
    for amount in LADDER:
        raw = RAW | {"params": {"amount": amount, "side": side, "confidence": 0.9}}
        result = the_filter.check(raw, view, RecentContext())
        if result.accepted and refused_at is not None:
            found.append((refused_at, amount))
        if result.code in SIZE_CODES:
            refused_at = amount
    return found


@settings(max_examples=60)
@given(view=calm_views(), config=CONFIGS, side=st.sampled_from(["buy", "sell"]))
def test_a_larger_amount_never_passes_where_a_smaller_was_refused_for_its_size(view, config, side):
    assert turning_points(SignalFilter(config), view, side) == []


@settings(max_examples=60)
@given(view=calm_views(), config=CONFIGS, side=st.sampled_from(["buy", "sell"]))
def test_only_the_least_size_is_mended_by_asking_for_more(view, config, side):
    codes = []
    for amount in LADDER:
        raw = RAW | {"params": {"amount": amount, "side": side, "confidence": 0.9}}
        codes.append(SignalFilter(config).check(raw, view, RecentContext()).code)
    passed = [turn for turn, code in enumerate(codes) if code is None]
    if passed:
        assert passed == list(range(passed[0], passed[-1] + 1))
        assert set(codes[: passed[0]]) <= {RejectCode.RISK_MIN_NOTIONAL}


def test_a_planted_rule_that_lets_large_orders_through_is_caught():
    def generous(case):
        share = case.added / case.equity
        return f"share {share:g}" if 0.04 < share < 0.2 else None

    planted = tuple(
        rule._replace(check=generous) if rule.code is RejectCode.RISK_EXPOSURE_LIMIT else rule
        for rule in FILTER_RULES
    )
    roomy = FilterConfig(max_var=1.0)
    assert turning_points(SignalFilter(roomy, rules=planted), VIEW, "buy") == [
        (0.2, 0.5),
        (0.2, 1.0),
    ]
    assert turning_points(SignalFilter(roomy), VIEW, "buy") == []


def test_a_planted_rule_on_what_is_held_instead_of_what_is_added_is_caught():
    def whole_exposure(case):
        after = case.view.holdings.exposure - case.notional / case.equity
        return "above" if after > case.config.max_exposure else None

    planted = (*FILTER_RULES, FilterRule(RejectCode.RISK_EXPOSURE_LIMIT, "policy", whole_exposure))
    holdings = replace(VIEW.holdings, exposure=1.3, positions={"BTC/USDT": 2.6})
    view = replace(VIEW, holdings=holdings)
    assert turning_points(SignalFilter(rules=planted), view, "sell")
    assert turning_points(SignalFilter(), view, "sell") == []


class Overruled(SignalFilter):
    """A breach: a model that is sure enough overrules the rules."""

    def check(self, signal, view, context):
        result = super().check(signal, view, context)
        asked = self.acceptor.score({})
        return result if asked.score < 0.99 else replace(result, accepted=True, code=None)


def lifted(kind, view, config, acceptor):
    """Return whether a model lets something pass that the rules alone refuse."""
    alone = SignalFilter(config).check(RAW, view, RecentContext())
    judged = kind(config, acceptor, Seeds(1)).check(RAW, view, RecentContext())
    return judged.accepted and not alone.accepted


@given(view=calm_views() | views(WILD), config=CONFIGS, acceptor=ACCEPTORS)
def test_a_model_never_lifts_the_veto_of_a_rule(view, config, acceptor):
    assert not lifted(SignalFilter, view, config, acceptor)


def test_a_planted_model_that_overrules_is_caught():
    view = replace(VIEW, kill_switch=True)
    assert lifted(Overruled, view, FilterConfig(), FixedAcceptor(score=1.0))


def test_a_veto_is_followed_on_paper_at_the_stated_share_and_by_the_id_alone():
    the_filter = SignalFilter(FilterConfig(), FixedAcceptor(0.1, 0.5), Seeds(3))
    names = [f"s{turn}" for turn in range(5000)]

    def on_paper(order):
        results = (the_filter.check(RAW | {"signal_id": n}, VIEW, RecentContext()) for n in order)
        return {result.signal_id for result in results if result.paper}

    taken = on_paper(names)
    assert 70 <= len(taken) <= 135
    assert on_paper(names[::-1]) == taken
    other = SignalFilter(FilterConfig(), FixedAcceptor(0.1, 0.5), Seeds(4))
    assert {
        n for n in names if other.check(RAW | {"signal_id": n}, VIEW, RecentContext()).paper
    } != taken


def test_a_paper_pass_names_the_veto_and_keeps_the_score():
    config = FilterConfig(epsilon_pass=1.0)
    result = SignalFilter(config, FixedAcceptor(0.1, 0.5)).check(RAW, VIEW, RecentContext())
    assert (result.accepted, result.paper, result.code) == (True, True, None)
    assert result.failed == (RejectCode.MODEL_LOW_SCORE,)
    assert (result.score, result.threshold, result.model_version) == (0.1, 0.5, "fixed-1")


def test_the_model_is_not_asked_about_what_a_rule_refused():
    acceptor = FixedAcceptor()
    SignalFilter(None, acceptor).check(RAW, replace(VIEW, kill_switch=True), RecentContext())
    assert acceptor.asked == []
    SignalFilter(None, acceptor).check(RAW, VIEW, RecentContext())
    assert len(acceptor.asked) == 1


def test_a_check_leaves_the_context_as_it_was():
    context = RecentContext()
    context.store_signal(RAW | {"signal_id": "old", "timestamp": NOW - 9})
    before = context.digest()
    the_filter = SignalFilter()
    assert the_filter.check(RAW, VIEW, context) == the_filter.check(RAW, VIEW, context)
    assert context.digest() == before
    assert not context.has_seen("g1")


@pytest.mark.parametrize(
    "wrong",
    [
        {"session_hours_utc": (9, 25)},
        {"session_hours_utc": (9, 9)},
        {"session_days": ()},
        {"session_days": (7,)},
        {"max_exposure": nan},
        {"rate_limit": 0},
        {"max_drawdawn": 0.1},
    ],
)
def test_a_config_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        FilterConfig(**wrong)
