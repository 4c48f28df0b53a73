import numpy as np
import pytest
from pydantic import ValidationError

from agent_gym.agents.umc.macro import CycleConfig, MacroConfig, MacrostateDetector
from agent_gym.core.seeds import Seeds
from tests.agents.macro_samples import CLEAR, planted

BASE = MacroConfig(
    min_states=2,
    max_states=4,
    restarts=1,
    max_iterations=6,
    cycles=CycleConfig(surrogates=25),
)
OTHER = {
    "inputs": ("volume_z", "momentum_24", "momentum_168", "volatility_ratio"),
    "drift_input": "volume_z",
    "volatility_input": None,
    "volume_input": None,
    "min_states": 4,
    "max_states": 2,
    "stickiness": 0.0,
    "validation_share": 0.5,
    "error_margin": 1e6,
    "restarts": 3,
    "max_iterations": 2,
    "tolerance": 1.0,
    "variance_floor": 1.0,
    "largest_score": 1.0,
    "label_limit": 1e-9,
    "cycles": CycleConfig(surrogates=25, confirm_bars=30),
}
OTHER_CYCLES = {
    "confirm_probability": 0.99,
    "confirm_bars": 30,
    "least_count": 10**6,
    "surrogates": 19,
    "block_bars": 5.0,
    "significance": 0.999,
    "refit_block_bars": 5.0,
}


def everything(config):
    """All that a detector tells, as text."""
    table = planted(CLEAR, 0, 900).inputs
    detector = MacrostateDetector(config)
    report = detector.fit(table, Seeds(0))
    weights = {name: part.tolist() for name, part in detector.weights().items()}
    told = detector.filter(table, detector.begin())
    cycles, stability = detector.cycles(table, Seeds(0)), detector.stability(table, Seeds(0))
    return str((report, weights, detector.labels, told.sum(axis=0).tolist(), cycles, stability))


@pytest.fixture(scope="module")
def told():
    return everything(BASE)


def test_every_field_has_another_value_here():
    assert set(OTHER) == set(MacroConfig.model_fields)
    assert set(OTHER_CYCLES) == set(CycleConfig.model_fields)


def test_the_same_config_tells_the_same(told):
    assert everything(BASE) == told


@pytest.mark.parametrize("field", OTHER)
def test_d45_every_field_acts(told, field):
    assert everything(BASE.model_copy(update={field: OTHER[field]})) != told


@pytest.mark.parametrize("field", OTHER_CYCLES)
def test_d45_every_field_of_the_cycles_acts(told, field):
    cycles = BASE.cycles.model_copy(update={field: OTHER_CYCLES[field]})
    assert everything(BASE.model_copy(update={"cycles": cycles})) != told


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"inputs": ("a", "a"), "drift_input": "a"}, "named once"),
        ({"min_states": 5, "max_states": 3}, "above max_states"),
        ({"max_states": 8}, "less than or equal to 7"),
        ({"drift_input": "close"}, "not one of the inputs"),
        ({"volume_input": "close"}, "not one of the inputs"),
        ({"stickiness": np.nan}, "finite"),
        ({"smoothing": True}, "Extra"),
    ],
)
def test_what_does_not_fit_together_is_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        MacroConfig(**fields)
