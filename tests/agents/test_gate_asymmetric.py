import inspect
from typing import get_type_hints

import numpy as np
import pytest
from pydantic import ValidationError

from agent_gym.agents import gate as gate_package
from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    PrimaryBatch,
    ProvenanceError,
    Source,
    Tagged,
    Tags,
    concat,
)


def tagged(source, values, run="run"):
    values = np.asarray(values, np.float64)
    return Tagged(values, Tags.of(source, run, np.arange(len(values))))


OWN = tagged(Source.PRIMARY, np.arange(5.0))
CROWD = tagged(Source.ECHO, np.arange(3.0), "crowd")


@pytest.fixture
def gate():
    return AsymmetricGate(GateConfig())


def test_primary_rows_go_through_unchanged(gate):
    batch = gate.primary_batch({"close": OWN, "volume": OWN * 2})
    assert len(batch) == 5
    assert batch["volume"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert set(batch.columns) == {"close", "volume"}
    assert batch.tags.counts() == {Source.PRIMARY: 5}


@pytest.mark.parametrize("source", [s for s in Source if s is not Source.PRIMARY])
def test_a_single_row_of_others_is_refused(gate, source):
    mixed = concat([OWN, tagged(source, [1.0])])
    with pytest.raises(ProvenanceError, match="primary rows alone") as refused:
        gate.primary_batch({"close": mixed})
    assert refused.value.where == "row 5"
    assert source.name.lower() in str(refused.value)


def test_one_tainted_column_taints_the_batch(gate):
    with pytest.raises(ProvenanceError):
        gate.primary_batch({"close": OWN, "flow": OWN + 0 * CROWD.fold(np.mean)})


def test_the_gate_counts_what_came(gate):
    assert gate.counts.idle
    gate.primary_batch({"close": OWN})
    assert gate.counts.idle  # only primary rows came, which shows nothing
    mixed = concat([CROWD[:1], OWN, CROWD])
    sifted = gate.sift({"close": mixed})
    assert sifted["close"].tolist() == OWN.x.tolist()
    assert (gate.counts.admitted, gate.counts.withheld, gate.counts.refused_batches) == (10, 4, 0)
    with pytest.raises(ProvenanceError):
        gate.primary_batch({"close": mixed})
    assert (gate.counts.admitted, gate.counts.withheld, gate.counts.refused_batches) == (10, 8, 1)
    assert not gate.counts.idle


def test_only_the_gate_makes_a_batch():
    with pytest.raises(TypeError):
        PrimaryBatch({"close": OWN}, OWN.prov)
    with pytest.raises(ProvenanceError, match="only the gate"):
        PrimaryBatch({"close": OWN}, OWN.prov, object())


def test_a_batch_cannot_be_changed(gate):
    batch = gate.primary_batch({"close": OWN})
    with pytest.raises(ValueError, match="read-only"):
        batch["close"][0] = 9.0
    with pytest.raises(TypeError):
        batch.columns["close"] = CROWD.x
    with pytest.raises(AttributeError):
        batch.tags = CROWD.prov


def test_the_constructor_asks_for_what_only_the_gate_has():
    """A type checker refuses any other call: the seal is required, and of a hidden type."""
    seal = inspect.signature(PrimaryBatch).parameters["seal"]
    kind = get_type_hints(PrimaryBatch.__init__)["seal"]
    assert seal.default is inspect.Parameter.empty
    assert kind.__name__.startswith("_")
    assert kind not in vars(gate_package).values()
    assert get_type_hints(AsymmetricGate.primary_batch)["return"] is PrimaryBatch


def test_bounds_are_those_of_the_note_and_each_changes_something():
    assert GateConfig() == GateConfig(kl_threshold=0.01, leakage_bound=0.002)
    one, other = np.zeros((1, 2)), np.array([[0.0, 3.0]])
    tight, wide = (AsymmetricGate(GateConfig(kl_threshold=b)) for b in (0.001, 0.1))
    assert tight.project(one, other).alpha < wide.project(one, other).alpha
    gate = AsymmetricGate(GateConfig(leakage_bound=0.004))
    assert gate.leakage_limit() == 0.004
    assert gate.leakage_limit(floor=0.01) == pytest.approx(0.012)
    for broken in ({"kl_threshold": 0.0}, {"leakage_bound": -1.0}, {"other": 1.0}):
        with pytest.raises(ValidationError):
            GateConfig(**broken)
