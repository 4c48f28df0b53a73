"""Whatever is sent, it is read or refused with a code, a field and a line that is safe in a log."""

import copy
import json
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.agents.desk import BadSignal, RejectCode, Signal, SignalParams, parse_signal, plain
from tests.agents.desk_samples import RAW

FIELDS = [*Signal.__struct_fields__, *SignalParams.__struct_fields__]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**400)
    | st.floats()
    | st.text(st.characters(), max_size=70)
    | st.binary(max_size=3)
    | st.sampled_from(["buy", "sell", "gtc", "BTC", "USDT", nan, inf, -inf, 1e308, 5e-324])
)
GARBAGE = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=8)
    ),
    max_leaves=12,
)


def nearly(draw_from=GARBAGE):
    """Return signals that are right but for a few fields."""
    outer = st.dictionaries(st.sampled_from(Signal.__struct_fields__), draw_from, max_size=2)
    inner = st.dictionaries(st.sampled_from(SignalParams.__struct_fields__), draw_from, max_size=2)
    return st.builds(
        lambda top, params: RAW | {"params": RAW["params"] | params} | top, outer, inner
    )


def verdict(sent):
    """Return the signal that was read, or the error that says why not."""
    try:
        return parse_signal(sent)
    except BadSignal as bad:
        return bad


@given(raw=GARBAGE | nearly())
def test_garbage_is_read_or_refused_and_never_crashes(raw):
    found = verdict(raw)
    if isinstance(found, BadSignal):
        assert found.code.family == "schema"
        assert found.field
        assert found.detail.isprintable()
        assert str(found).isprintable()
        assert len(str(found)) < 300
    else:
        assert parse_signal(found) is found
        again = json.loads(json.dumps(plain(found), allow_nan=False))
        assert parse_signal(again) == found


@given(
    top=st.dictionaries(st.sampled_from(["signal_id", "strategy", "source"]), LEAVES, max_size=1),
    params=st.dictionaries(st.sampled_from(SignalParams.__struct_fields__), LEAVES, max_size=1),
    timestamp=LEAVES | st.just(RAW["timestamp"]),
)
def test_a_record_built_by_hand_is_held_to_the_same_rules(top, params, timestamp):
    raw = RAW | top | {"params": RAW["params"] | params, "timestamp": timestamp}
    of_record = verdict(Signal(**raw | {"params": SignalParams(**raw["params"])}))
    of_mapping = verdict(raw)
    if isinstance(of_mapping, Signal):
        assert of_record == of_mapping
    else:
        assert not isinstance(of_record, Signal)


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.int64(2), 3])
def test_numbers_of_other_kinds_become_plain_ones(number):
    signal = parse_signal(RAW | {"params": {"amount": number}})
    assert type(signal.params.amount) is float


def test_the_first_wrong_field_is_named_with_its_path():
    with pytest.raises(BadSignal, match=r"at params\.side; found up; known: buy, sell") as caught:
        parse_signal(RAW | {"params": {"amount": 0.1, "side": "up"}})
    assert caught.value.code is RejectCode.SCHEMA_OUT_OF_RANGE


def test_a_misspelt_parameter_is_told_the_nearest_name():
    with pytest.raises(BadSignal, match="did you mean price"):
        parse_signal(RAW | {"params": {"amount": 0.1, "prise": 1.0}})


def test_the_error_crosses_a_process_border_whole():
    bad = BadSignal(RejectCode.SCHEMA_BAD_TYPE, "params.amount", "str instead of a number")
    back = copy.deepcopy(bad)
    assert back is not bad
    assert (back.code, back.field, back.detail) == (bad.code, bad.field, bad.detail)


def test_a_deep_nest_is_refused():
    nest = []
    for _ in range(20_000):
        nest = [nest]
    with pytest.raises(BadSignal):
        parse_signal(RAW | {"params": {"amount": nest}})


def test_too_many_features_are_refused():
    with pytest.raises(BadSignal, match="at most 256"):
        parse_signal(RAW | {"features": {f"f{i}": 0.0 for i in range(257)}})
