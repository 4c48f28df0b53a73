"""The desk's memory: what was known when, whatever the order of telling; on disk as in the ring."""

from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_gym.agents.desk import (
    AgentResponse,
    BadSignal,
    ContextReader,
    Decision,
    FilterResult,
    Outcome,
    PnLSnapshot,
    RecentContext,
    RejectCode,
    Rejection,
    Signal,
    SignalFeatures,
    SignalParams,
    signal_features,
)
from agent_gym.agents.desk.context_reader import KINDS
from agent_gym.core.errors import AgentError, ConfigError
from tests.agents.desk_samples import NOW, RAW, VIEW

MOMENTS = st.integers(0, 40).map(lambda step: NOW + 0.5 * step)
IDS = st.sampled_from([f"s{i}" for i in range(12)])
STRATEGIES = st.sampled_from(["momentum", "carry"])
PARAMS = st.builds(SignalParams, st.floats(0.01, 5.0), side=st.sampled_from(["buy", "sell"]))
CODES = st.sampled_from(list(RejectCode))
RECORDS = {
    "signal": st.builds(Signal, IDS, STRATEGIES, PARAMS, MOMENTS),
    "features": st.builds(
        SignalFeatures, IDS, st.dictionaries(IDS, st.floats(-1e9, 1e9), max_size=3)
    ),
    "result": st.builds(FilterResult, IDS, st.booleans(), st.just("market"), st.none() | CODES),
    "rejection": st.builds(Rejection, IDS, CODES, MOMENTS, strategy=STRATEGIES),
    "decision": st.builds(Decision, IDS, st.just("execute"), st.floats(0.0, 5.0)),
    "response": st.builds(
        AgentResponse, IDS, st.just("risk"), st.just("ok"), payload=st.just({"size": 0.5, "a": [1]})
    ),
    "pnl": st.builds(PnLSnapshot, MOMENTS, *[st.floats(0.0, 1e6)] * 4),
    "outcome": st.builds(
        Outcome, IDS, st.sampled_from(["win", "loss", "flat"]), pnl_horizon=st.just({"1h": -1.5})
    ),
}
EVENTS = st.lists(
    st.sampled_from(list(RECORDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), MOMENTS, RECORDS[kind])
    ),
    max_size=24,
)
STORE = {"result": "filter_result"}


def tell(context, events):
    for kind, known_at, record in events:
        getattr(context, f"store_{STORE.get(kind, kind)}")(record, known_at)
    return context


def shown(context):
    """Return everything that may be asked of a context, in one value."""
    return {
        "signals": context.get_recent_signals(),
        "momentum": context.get_recent_signals(strategy="momentum"),
        "rejections": context.get_recent_rejections(),
        "features": context.get_features(),
        "results": context.get_filter_results(),
        "decisions": context.get_decisions(),
        "responses": context.get_responses(),
        "pnl": context.get_pnl_snapshots(),
        "outcomes": context.get_outcomes(),
        "known": {kind: context.known(kind) for kind in KINDS},
        "seen": [context.has_seen(f"s{i}") for i in range(12)],
        "digest": context.digest(),
    }


def asked(context, moment):
    """Return the features of a signal that comes at a moment."""
    signal = Signal("new", "momentum", SignalParams(0.1), moment)
    return signal_features(signal, replace(VIEW, now=moment), context)


def leaks(reader_of, events, moment):
    """Return whether what is seen at a moment depends on what became known later."""
    before = [event for event in events if event[1] <= moment]
    clean, poisoned = tell(RecentContext(), before), tell(RecentContext(), events)
    past = reader_of(clean, moment)
    later = reader_of(poisoned, moment)
    return shown(past) != shown(later) or asked(past, moment) != asked(later, moment)


@settings(max_examples=40)
@given(events=EVENTS, moment=MOMENTS)
def test_the_past_never_shows_what_was_known_later(events, moment):
    ordered = sorted(events, key=lambda event: event[1])
    assert not leaks(RecentContext.as_of, ordered, moment)
    assert shown(tell(RecentContext(), events).as_of(NOW + 99)) == shown(
        tell(RecentContext(), events)
    )


@settings(max_examples=40)
@given(events=EVENTS, moment=MOMENTS)
def test_the_past_of_a_live_context_is_what_it_showed_then(events, moment):
    ordered = sorted(events, key=lambda event: event[1])
    live, told = RecentContext(), 0
    while told < len(ordered) and ordered[told][1] <= moment:
        tell(live, [ordered[told]])
        told += 1
    then = shown(live)
    tell(live, ordered[told:])
    assert shown(live.as_of(moment)) == then


class ByOwnTime(ContextReader):
    """A breach: outcomes are shown by the time they speak of, not by when they were known."""

    def get_outcomes(self, n=None, since=None):
        return [
            record for _, record in ContextReader(self._rings, self._index, None).known("outcome")
        ]


def test_a_planted_look_ahead_is_caught():
    events = [
        ("signal", NOW, parse("s1")),
        ("outcome", NOW + 9, Outcome("s1", "win", closed_at=NOW)),
    ]
    assert leaks(lambda c, t: ByOwnTime(c._rings, c._index, t), events, NOW + 1)
    assert not leaks(RecentContext.as_of, events, NOW + 1)


def parse(name, **changes):
    return Signal(name, "momentum", SignalParams(0.1), **{"timestamp": NOW} | changes)


@settings(max_examples=40)
@given(events=EVENTS, random=st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_the_order_of_telling(events, random):
    mixed = list(events)
    random.shuffle(mixed)
    assert tell(RecentContext(), mixed).digest() == tell(RecentContext(), events).digest()


PNL_EVENTS = st.lists(st.tuples(st.just("pnl"), MOMENTS, RECORDS["pnl"]), max_size=24)


@settings(max_examples=60)
@given(events=PNL_EVENTS, maxlen=st.integers(1, 6))
def test_the_digest_kept_step_by_step_is_the_one_worked_out_anew(events, maxlen):
    context = RecentContext(maxlen)
    for turn in range(len(events)):
        tell(context, events[turn : turn + 1])
        anew = tell(RecentContext(maxlen), events[: turn + 1])
        if turn % 3:  # not asked at every step, so that several new ones come together
            assert context.digest() == anew.digest()
        assert context.as_of(NOW + 7.0).digest() == anew.as_of(NOW + 7.0).digest()


def test_any_change_of_any_record_changes_the_digest():
    base = tell(RecentContext(), [("pnl", NOW, PnLSnapshot(NOW, 1.0, 1.0, 0.0, 0.0))]).digest()
    others = [
        ("pnl", NOW + 1, PnLSnapshot(NOW, 1.0, 1.0, 0.0, 0.0)),
        ("pnl", NOW, PnLSnapshot(NOW, 1.0, 1.0, 0.0, 1e-300)),
    ]
    digests = {tell(RecentContext(), [other]).digest() for other in others}
    assert len(digests | {base, RecentContext().digest()}) == 4


@settings(max_examples=40)
@given(events=EVENTS, maxlen=st.integers(1, 5))
def test_the_ring_holds_the_last_records_known(events, maxlen):
    context = tell(RecentContext(maxlen), events)
    told = [event for event in events if event[0] == "signal"]
    expected = [record for _, _, record in sorted(told, key=lambda event: event[1])[-maxlen:]]
    assert context.get_recent_signals() == expected


def test_getters_keep_the_last_so_many_and_those_since():
    context = RecentContext()
    for turn in range(5):
        context.store_signal(parse(f"s{turn}", timestamp=NOW + turn))
    names = [signal.signal_id for signal in context.get_recent_signals(2)]
    assert names == ["s3", "s4"]
    assert len(context.get_recent_signals(since=NOW + 1)) == 4
    assert context.get_recent_signals(0) == []
    assert context.signal("s1") == parse("s1", timestamp=NOW + 1)
    assert context.as_of(NOW).signal("s1") is None


def test_an_id_outlives_the_ring_and_with_a_file_the_process(tmp_path):
    path = tmp_path / "deep" / "context.db"
    for context in (RecentContext(2), RecentContext(2, path)):
        for turn in range(9):
            context.store_signal(parse(f"s{turn}", timestamp=NOW + turn))
        assert context.has_seen("s0")
        assert not context.has_seen("s9")
        context.close()
    back = RecentContext(2, path)
    assert back.has_seen("s0")
    assert back.as_of(NOW + 3).has_seen("s3")
    assert not back.as_of(NOW + 3).has_seen("s4")


def test_rates_and_twins_count_what_passed_and_again_after_opening(tmp_path):
    context = RecentContext(10, tmp_path / "context.db")
    for turn, code in enumerate([None, "time.stale", "exec.exchange_reject", "dup.duplicate_id"]):
        context.store_signal(parse(f"s{turn}", timestamp=NOW + 10 * turn))
        if code:
            context.store_rejection({"signal_id": f"s{turn}", "code": code}, NOW + 10 * turn)
    context.store_signal(parse("s0", timestamp=NOW + 70))
    context.close()
    for seen in (context, RecentContext(10, tmp_path / "context.db")):
        assert seen.passed("momentum", NOW - 1) == 3
        assert seen.arrivals("momentum", NOW - 1, NOW + 99) == 5
        twin = [seen.has_twin(parse("x", timestamp=NOW + 10 * turn), 5.0) for turn in range(8)]
        assert twin == [True, False, True, True, False, False, False, False]


def test_look_ups_stay_right_when_the_ring_is_cleared():
    context = RecentContext(50)
    for turn in range(1000):
        context.store_signal(parse(f"s{turn}", timestamp=NOW + turn))
        assert context.passed("momentum", NOW + turn - 20) == min(20, turn + 1)
        assert context.has_twin(parse("x", timestamp=NOW + turn + 1), 1.0)
        assert not context.has_twin(parse("x", timestamp=NOW + turn + 2), 1.0)
    assert len(context._index.signals) < 150
    assert sum(len(times) for times in context._index.twins.values()) < 150


def test_a_flood_of_garbage_does_not_fill_the_memory():
    context = RecentContext(20)
    context.store_signal(parse("s1"))
    for turn in range(500):
        context.store_rejection(Rejection("", RejectCode.SCHEMA_BAD_TYPE, NOW + turn))
        context.store_outcome(Outcome("s1", "win"), NOW + turn)
    assert sum(len(times) for times in context._index.refusals.values()) < 60
    assert sum(len(results) for results in context._index.results.values()) < 60


def test_the_words_of_the_original_are_understood():
    context = RecentContext()
    context.store_signal(
        {"signal_id": "signal1", "strategy": "momentum",
         "params": {"amount": 0.1, "base": "BTC", "quote": "USDT"}, "timestamp": 1234567890.0}
    )  # fmt: skip
    context.store_rejection({"signal_id": "signal1", "reason": "Exposure limit exceeded"})
    (found,) = context.get_recent_rejections()
    assert (found.code, found.timestamp) == (RejectCode.RISK_EXPOSURE_LIMIT, 1234567890.0)


def test_what_cannot_be_a_record_is_refused():
    context = RecentContext()
    with pytest.raises(AgentError, match="code of the list"):
        context.store_rejection({"signal_id": "s", "reason": "bad mood"})
    with pytest.raises(AgentError, match="has no rejection"):
        context.store_rejection(FilterResult("s", True, "market"))
    with pytest.raises(AgentError, match="time at which"):
        context.store_signal(parse("s"), nan)
    with pytest.raises(BadSignal):
        context.store_signal(RAW | {"params": {}})
    with pytest.raises(ConfigError):
        RecentContext(0)
    assert context.digest() == RecentContext().digest()
