import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.agents.gate import ProvenanceError, Source, Tagged, Tags, aligned_tags, concat


def tagged(source, values, run="run"):
    values = np.asarray(values, np.float64)
    return Tagged(values, Tags.of(source, run, np.arange(len(values))))


PRIMARY = tagged(Source.PRIMARY, [1.0, 2.0, 3.0, 4.0])
ECHO = tagged(Source.ECHO, [5.0, 6.0], "crowd")
MIXED = concat([PRIMARY, ECHO])
CLEAN, TAINTED = int(Source.PRIMARY), int(Source.ECHO)


def codes(values):
    return values.prov.source.tolist()


def test_taint_survives_joining_and_slicing():
    assert codes(MIXED) == [CLEAN] * 4 + [TAINTED] * 2
    assert codes(MIXED[3:5]) == [CLEAN, TAINTED]
    assert codes(MIXED[::-2]) == [TAINTED, CLEAN, CLEAN]
    assert codes(MIXED[np.array([5, 0, 5])]) == [TAINTED, CLEAN, TAINTED]
    assert codes(MIXED[MIXED.x > 3.0]) == [CLEAN, TAINTED, TAINTED]
    assert codes(MIXED[-1]) == [TAINTED]
    assert MIXED[-1].prov[0].run_id == "crowd"


def test_taint_survives_arithmetic():
    shifted = MIXED[:-1] - MIXED[1:]  # the difference across the seam is tainted, too
    assert codes(shifted) == [CLEAN] * 3 + [TAINTED] * 2
    assert shifted.x.tolist() == [-1.0, -1.0, -1.0, -1.0, -1.0]
    for made in (2 * MIXED + 1, 1 - MIXED, MIXED / 2, 3 / MIXED, -MIXED, np.float64(2) * MIXED):
        assert codes(made) == codes(MIXED)
    assert (1 - MIXED).x.tolist() == [0.0, -1.0, -2.0, -3.0, -4.0, -5.0]
    assert (6 / MIXED).x[1] == 3.0
    assert codes(PRIMARY * 0 + 1) == [CLEAN] * 4


def test_what_multiplies_by_nothing_still_taints():
    assert codes(PRIMARY[:2] + 0 * ECHO) == [TAINTED, TAINTED]


def test_statistics_carry_the_worst_tag_into_what_they_scale():
    clean, dirty = PRIMARY.fold(np.mean), MIXED.fold(np.mean)
    assert codes(PRIMARY - clean) == [CLEAN] * 4
    assert codes(PRIMARY - dirty) == [TAINTED] * 4
    assert (PRIMARY - clean).x.tolist() == [-1.5, -0.5, 0.5, 1.5]


def test_what_runs_on_carries_taint_forward_and_not_back():
    seam = concat([PRIMARY[:2], ECHO, PRIMARY[2:]])
    assert codes(seam.through(np.cumsum)) == [CLEAN] * 2 + [TAINTED] * 4
    assert codes(seam.each(np.log)) == [CLEAN] * 2 + [TAINTED] * 2 + [CLEAN] * 2


@given(st.lists(st.sampled_from(list(Source)), min_size=1, max_size=8), st.data())
def test_no_way_of_the_data_makes_a_row_cleaner(sources, data):
    parts = [tagged(source, [float(i)]) for i, source in enumerate(sources)]
    whole = concat(parts)
    picked = data.draw(st.lists(st.integers(0, len(sources) - 1), min_size=1, max_size=8))
    taken = whole[np.array(picked)]
    assert codes(taken) == [int(sources[i]) for i in picked]
    assert codes(taken + taken[::-1]) == [
        max(int(sources[i]), int(sources[j])) for i, j in zip(picked, picked[::-1], strict=True)
    ]
    assert codes(taken.at_least(Source.IMAGINED)) == [max(2, int(sources[i])) for i in picked]


def test_values_of_unknown_origin_are_refused():
    plain = np.ones(4)
    for mix in (lambda: PRIMARY + plain, lambda: plain * PRIMARY, lambda: PRIMARY / [1, 2, 3, 4]):
        with pytest.raises(ProvenanceError, match="nobody knows"):
            mix()


def test_numpy_is_given_nothing_by_itself():
    for take in (np.asarray, np.mean, np.array, lambda x: np.concatenate([x, x])):
        with pytest.raises((ProvenanceError, TypeError)):
            take(ECHO)


def test_neither_values_nor_tags_can_be_changed():
    values = np.array([1.0, 2.0])
    held = Tagged(values, Tags.of(Source.ECHO, "crowd", [0, 1]))
    values[:] = 9.0
    assert held.x.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        held.x[0] = 3.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        held.x.setflags(write=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.prov = Tags.of(Source.PRIMARY, "run", [0, 1])


def test_rows_of_a_table_are_tagged_by_their_worst_column():
    table = {"own": PRIMARY[:2], "other": ECHO}
    assert aligned_tags(table).counts() == {Source.ECHO: 2}
    with pytest.raises(ProvenanceError, match="as many rows"):
        aligned_tags({"own": PRIMARY, "other": ECHO})
    with pytest.raises(ProvenanceError, match="no columns"):
        aligned_tags({})


def test_what_is_no_column_is_refused():
    tags = Tags.of(Source.PRIMARY, "run", [0, 1])
    for broken in (np.ones(3), np.array(["a", "b"]), np.array([None, None])):
        with pytest.raises(ProvenanceError):
            Tagged(broken, tags)
    with pytest.raises(ProvenanceError, match="unlike shapes"):
        tagged(Source.PRIMARY, np.ones((2, 2))) + tagged(Source.PRIMARY, np.ones(2))


def test_d36_tags_cost_thirteen_bytes_a_row_whatever_the_row_holds():
    n = 100_000
    wide = tagged(Source.ECHO, np.zeros((n, 4)))
    assert wide.prov.nbytes == 13 * n
    assert wide[-50:].x.base is not None
    assert len(wide[-50:].x.base) == 50 * 4 * 8  # a window does not keep the year alive
