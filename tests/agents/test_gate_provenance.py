import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.gate import Provenance, ProvenanceError, Source, Tags
from agent_gym.core.errors import DataError

sources = st.sampled_from(list(Source))
records = st.builds(
    Provenance,
    source=sources,
    run_id=st.sampled_from(["a", "b", "c"]),
    t=st.integers(-3, 3),
    parent_hash=st.sampled_from(["", "00", "ff"]),
)


def tags_of(rows):
    return Tags.concat([Tags.of(r.source, r.run_id, [r.t], r.parent_hash) for r in rows])


def rows_of(tags):
    return [tags[i] for i in range(len(tags))]


def test_echoes_taint_most_and_primary_not_at_all():
    assert Source.PRIMARY < Source.SYNTHETIC < Source.IMAGINED < Source.ECHO


@given(records, records, records)
def test_the_worst_tag_is_a_semilattice(a, b, c):
    assert a.combine(a) == a
    assert a.combine(b) == b.combine(a)
    assert a.combine(b).combine(c) == a.combine(b.combine(c))
    assert a.combine(b).source == max(a.source, b.source)


@settings(max_examples=40)
@given(st.lists(st.tuples(records, records, records), min_size=1, max_size=12))
def test_columns_obey_the_same_algebra_row_by_row(triples):
    a, b, c = (tags_of(column) for column in zip(*triples, strict=True))
    assert rows_of(a.combine(b)) == [x.combine(y) for x, y, _ in triples]
    assert rows_of(a.combine(a)) == rows_of(a)
    assert rows_of(a.combine(b)) == rows_of(b.combine(a))
    assert rows_of(a.combine(b).combine(c)) == rows_of(a.combine(b.combine(c)))


@settings(max_examples=40)
@given(st.lists(records, min_size=1, max_size=12))
def test_running_and_worst_tags_are_those_of_one_by_one(rows):
    tags = tags_of(rows)
    assert rows_of(tags.running()) == list(itertools.accumulate(rows, Provenance.combine))
    assert rows_of(tags.worst()) == rows_of(tags.running())[-1:]


def test_one_row_goes_with_every_row():
    many, echo = Tags.of(Source.PRIMARY, "run", range(3)), Tags.of(Source.ECHO, "crowd", [0])
    assert many.combine(echo).counts() == {Source.ECHO: 3}
    with pytest.raises(ProvenanceError, match="pair up"):
        many.combine(Tags.of(Source.PRIMARY, "run", range(2)))


def test_a_record_cannot_be_changed():
    record = Provenance(Source.ECHO, "crowd", 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.source = Source.PRIMARY
    tags = Tags.of(Source.ECHO, "crowd", range(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        tags.source = np.zeros(3, np.uint8)
    for column in (tags.source, tags.run, tags.t):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.setflags(write=True)


def test_tags_do_not_follow_the_array_they_were_made_from():
    times = np.arange(3)
    tags = Tags.of(Source.PRIMARY, "run", times)
    times[:] = 9
    assert tags.t.tolist() == [0, 1, 2]


@given(records, sources)
def test_a_child_is_never_cleaner_and_names_its_parent(parent, source):
    child = parent.child(source, "next", 0)
    assert child.source == max(parent.source, source)
    assert child.parent_hash == parent.digest


def test_a_digest_tells_records_apart():
    one = Provenance(Source.PRIMARY, "run", 1, "ab")
    others = [
        Provenance(Source.ECHO, "run", 1, "ab"),
        Provenance(Source.PRIMARY, "runs", 1, "ab"),
        Provenance(Source.PRIMARY, "run", 2, "ab"),
        Provenance(Source.PRIMARY, "run", 1, "abc"),
    ]
    assert len({record.digest for record in (one, *others)}) == 5
    assert one.digest == Provenance(Source.PRIMARY, "run", 1, "ab").digest


def test_records_that_cannot_be_are_refused():
    assert issubclass(ProvenanceError, DataError)
    for broken in (
        lambda: Provenance(Source.ECHO, "", 0),
        lambda: Provenance(3, "run", 0),
        lambda: Provenance(Source.ECHO, "run", 2**70),
        lambda: Tags.of(Source.ECHO, "", [0]),
        lambda: Tags(np.array([9], np.uint8), np.zeros(1, np.int32), np.zeros(1), (("a", ""),)),
        lambda: Tags(np.zeros(1, np.uint8), np.ones(1, np.int32), np.zeros(1), (("a", ""),)),
        lambda: Tags(np.zeros(2, np.uint8), np.zeros(1, np.int32), np.zeros(1), (("a", ""),)),
    ):
        with pytest.raises(ProvenanceError):
            broken()


def test_d36_a_window_over_an_endless_stream_stays_small():
    window = Tags.of(Source.PRIMARY, "run 0", range(100))
    for run in range(1, 50):
        window = Tags.concat([window, Tags.of(Source.PRIMARY, f"run {run}", range(40))])[-100:]
        assert window.nbytes == 13 * 100
        assert len(window.runs) <= 4
        assert all(len(c.base if c.base is not None else c) <= 800 for c in (window.t, window.run))
    assert window[-1] == Provenance(Source.PRIMARY, "run 49", 39)
