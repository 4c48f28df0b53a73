"""The commented example files hold every key of their models, load, and tell true defaults."""

import re
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.training.rl.arms import arms_of
from agent_gym.training.rl.config import TrainerConfig, read_trainer_config
from agent_gym.training.rl.experiment_config import (
    ExperimentConfig,
    Range,
    read_experiment,
    shipped_config,
)

FOLDER = Path(__file__).resolve().parents[2] / "agent_gym" / "configs"
TRAINING, EXPERIMENT = FOLDER / "training_schema.yaml", FOLDER / "experiment_schema.yaml"


def models_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType):
        return [each for arg in get_args(annotation) for each in models_in(arg)]
    return []


def missing_keys(model, said, place=""):
    """Return the keys of a model, and of those in it, that a mapping does not have."""
    found = [f"{place}{name}" for name in model.model_fields if name not in said]
    for name, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            if isinstance(said.get(name), dict):
                found += missing_keys(inner, said[name], f"{place}{name}.")
    return found


def loaded(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def blocks():
    """Return the settings of each algorithm: the live one and those in comments."""
    text = TRAINING.read_text(encoding="utf-8")
    rest = text[text.index("# algo: a2c") :]
    plain = "\n".join(line.removeprefix("# ").removeprefix("#") for line in rest.splitlines())
    parts = [yaml.safe_load(part) for part in re.split(r"(?m)^(?=algo: )", plain) if part.strip()]
    return {part["algo"]: part["agent"] for part in parts} | {"ppo": loaded(TRAINING)["agent"]}


def test_no_key_of_a_training_is_missing():
    said = loaded(TRAINING)
    assert missing_keys(TrainerConfig, said) == []
    assert missing_keys(TrainerConfig, said | {"normalize": {"clip": 1}}) == [
        "normalize.observations",
        "normalize.rewards",
    ]
    del said["steps"]
    assert missing_keys(TrainerConfig, said) == ["steps"]


def test_no_key_of_an_algorithm_is_missing_and_the_defaults_are_true():
    found = blocks()
    assert set(found) == set(CONFIGS)
    for algo, said in found.items():
        assert set(said) == set(CONFIGS[algo].model_fields), algo
        assert CONFIGS[algo].model_validate(said) == CONFIGS[algo](), algo


def test_the_training_file_loads_and_is_the_default():
    found = read_trainer_config(TRAINING)
    assert found.model_copy(update={"early_stopping": None}) == TrainerConfig()


def test_no_key_of_an_experiment_is_missing():
    said = loaded(EXPERIMENT)
    assert missing_keys(ExperimentConfig, said) == []
    del said["search"]["prune"]
    assert missing_keys(ExperimentConfig, said) == ["search.prune"]
    assert set(said["search"]["space"]["agent.learning_rate"]) == set(Range.model_fields)


def test_the_experiment_file_loads_and_its_arms_can_be_made():
    config = read_experiment(EXPERIMENT)
    assert [arm.name for arm in arms_of(config)] == ["plain", "far", "near"]
    assert config.search.space["agent.net_arch"] == ([64, 64], [128, 128], [32])


@pytest.mark.parametrize("path", [TRAINING, EXPERIMENT])
def test_every_key_is_explained(path):
    explained, plain = False, []
    for line in path.read_text(encoding="utf-8").splitlines():
        key = re.match(r" *([a-z_.]+):", line)
        if key and not explained and "# " not in line:  # above it, or behind it
            plain.append(key[1])
        explained = line.lstrip().startswith("#") or (explained and key is not None)
        if not line.strip():
            explained = False
    assert plain == []


@pytest.mark.parametrize("name", ["baseline_training", "gamma_experiments"])
def test_shipped_experiments_can_be_made(name):
    config = read_experiment(shipped_config(name))
    assert (config.name, config.threshold) == (name, 200)
    arms = arms_of(config)
    gammas = [arm.config.agent.gamma for arm in arms]
    if name == "gamma_experiments":
        assert sorted(gammas) == [0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
    assert all(arm.config.env == "LunarLander-v3" for arm in arms)
