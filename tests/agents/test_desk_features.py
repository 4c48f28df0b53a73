"""A row of training data is what the model was shown live, to the last bit."""

from math import inf, isfinite, nan

from hypothesis import given
from msgspec.structs import replace

from agent_gym.agents.desk import (
    FEATURE_NAMES,
    FilterConfig,
    Outcome,
    RecentContext,
    Signal,
    SignalFilter,
    SignalParams,
    parse_signal,
    signal_features,
)
from agent_gym.core import Seeds
from tests.agents.desk_samples import NOW, RAW, VIEW, FixedAcceptor
from tests.agents.test_desk_filter import WILD, views


def played(context, n=150):
    """Play signals whose outcomes become known later; return each with its view and features."""
    rng = Seeds(5).child("signals").rng()
    config = FilterConfig(near_duplicate_s=1.0, rate_limit=20, rate_window_s=600.0)
    the_filter = SignalFilter(config)
    rows, due = [], []
    for turn in range(n):
        now = NOW + 20.0 * turn
        while due and due[0][0] <= now:
            known_at, outcome = due.pop(0)
            context.store_outcome(outcome, known_at)
        params = SignalParams(
            float(rng.uniform(0.01, 0.2)), side="buy" if rng.random() < 0.5 else "sell"
        )
        strategy = "momentum" if rng.random() < 0.7 else "carry"
        signal = Signal(f"s{turn}", strategy, params, now - float(rng.uniform(0, 3)))
        quote = replace(VIEW.quotes["BTC/USDT"], timestamp=now, volatility=0.001)
        view = replace(VIEW, now=now, quotes={"BTC/USDT": quote})
        rows.append((signal, view, signal_features(signal, view, context)))
        result = the_filter.check(signal, view, context)
        context.store_signal(signal, now)
        if not result.accepted:
            context.store_rejection(result, now)
        else:
            label = "win" if rng.random() < 0.6 else "loss"
            due.append((now + 500.0, Outcome(signal.signal_id, label, closed_at=now + 400.0)))
    return rows


def mismatches(rows, context_at):
    return [s.signal_id for s, v, live in rows if signal_features(s, v, context_at(v.now)) != live]


def test_training_sees_what_the_model_saw_live():
    context = RecentContext()
    rows = played(context)
    assert mismatches(rows, context.as_of) == []
    shares = {live["win_share"] for _, _, live in rows}
    assert len(shares) > 10
    assert len({live["refused_share_1h"] for _, _, live in rows}) > 10


def test_training_from_the_file_sees_the_same(tmp_path):
    rows = played(RecentContext(1000, tmp_path / "context.db"))
    back = RecentContext(1000, tmp_path / "context.db")
    assert mismatches(rows, back.as_of) == []


def test_features_that_use_all_that_is_known_today_are_caught():
    context = RecentContext()
    rows = played(context)

    class Today:
        """A breach: asked for the past, it answers with all it knows now."""

        def __getattr__(self, name):
            return getattr(context, name)

        def last_results(self, strategy, n, until):
            return context.last_results(strategy, n, inf)

    assert len(mismatches(rows, lambda now: Today())) > 50


def test_a_signal_that_is_stored_is_not_its_own_past():
    context = RecentContext()
    signal = parse_signal(RAW)
    before = signal_features(signal, VIEW, context)
    context.store_signal(signal, NOW - 1)
    context.store_rejection({"signal_id": "g1", "code": "time.stale"}, NOW - 0.5)
    assert signal_features(signal, VIEW, context) == before
    context.store_signal(replace(signal, signal_id="g0"), NOW - 2)
    assert signal_features(signal, VIEW, context) != before


def test_names_are_in_a_fixed_order_and_own_features_follow():
    signal = parse_signal(RAW | {"features": {"rsi": 31.0}})
    features = signal_features(signal, VIEW, RecentContext())
    assert tuple(features) == (*FEATURE_NAMES, "strategy=momentum", "own.rsi")
    assert features["own.rsi"] == 31.0
    assert features["notional_share"] == 0.05
    assert features["spread_bp"] == 2.0
    assert (features["age_s"], features["quote_age_s"], features["weekday"]) == (1.0, 1.0, 1.0)


def test_what_is_not_known_is_neutral_and_flagged():
    bare = signal_features(parse_signal(RAW), replace(VIEW, quotes={}), RecentContext())
    assert (bare["confidence"], bare["confidence_known"], bare["quote_known"]) == (0.5, 0.0, 0.0)
    assert bare["win_share"] == 0.5
    sure = RAW | {"params": {"amount": 0.1, "confidence": 0.5}}
    assert signal_features(parse_signal(sure), VIEW, RecentContext())["confidence_known"] == 1.0


@given(view=views(WILD))
def test_features_are_finite_whatever_the_view(view):
    features = signal_features(parse_signal(RAW), view, RecentContext())
    assert all(isfinite(value) for value in features.values())


def test_the_filter_shows_the_model_these_features():
    acceptor = FixedAcceptor()
    SignalFilter(None, acceptor).check(RAW, VIEW, RecentContext())
    assert acceptor.asked == [signal_features(parse_signal(RAW), VIEW, RecentContext())]
    assert nan not in acceptor.asked[0].values()
