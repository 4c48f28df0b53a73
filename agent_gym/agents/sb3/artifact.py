"""A model in a folder: written whole, hashed, and read without running anything in it.

``model.json`` (the card) · ``policy.safetensors`` (the numbers) · ``normalizer.npz`` (if training
normalised) · ``model.zip`` (the library's own format, for others; it holds pickles, so nothing
here ever opens it).
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, TypedDict, Unpack

from safetensors import SafetensorError
from safetensors import torch as tensors_in_files
from stable_baselines3.common.base_class import BaseAlgorithm

from agent_gym.agents.sb3.card import (
    CARD,
    FORMAT,
    ModelCard,
    read_card,
    read_checked,
)
from agent_gym.agents.sb3.config import AgentConfig
from agent_gym.agents.sb3.folder import atomic_folder, settled
from agent_gym.agents.sb3.jax_twin import is_jax, torch_weights
from agent_gym.agents.sb3.normalizer import Normalizer
from agent_gym.agents.sb3.policy import Policy
from agent_gym.agents.sb3.spaces import actions_spec, observation_spec
from agent_gym.agents.tensor_file import BadTensors, checked_tensors
from agent_gym.core.errors import ConfigError, DataError, StoreError

WEIGHTS = "policy.safetensors"
NORMALIZER = "normalizer.npz"
ZIP = "model.zip"

__all__ = [
    "FORMAT",
    "ModelCard",
    "Policy",
    "load_policy",
    "policy_of",
    "read_card",
    "save_model",
    "save_policy",
    "verify_model",
]


class About(TypedDict, total=False):
    """What else a card may say."""

    manifest: Mapping[str, Any]
    losses: Mapping[str, float]


def save_model(
    model: BaseAlgorithm,
    folder: Path,
    *,
    config: AgentConfig,
    env: Mapping[str, Any],
    step: int,
    **about: Unpack[About],
) -> ModelCard:
    """Put a model into a folder, in the place of what was there.

    Args:
        model: The model as it is now; the statistics of its VecNormalize are saved with it.
        folder: Where to; it appears whole, or the old one stays.
        config: The settings the model was built from.
        env: What ``describe_env`` says of the environment.
        step: How many steps of training it has had.
        about: ``manifest``, and ``losses`` (the last ones, by name).
    """
    policy = policy_of(model, config=config, env=env, step=step, **about)
    if is_jax(model):  # its own format is of no use to those who have no JAX
        return save_policy(policy, folder)
    buffer = BytesIO()
    model.save(buffer)
    return _write(policy, folder, {ZIP: buffer.getvalue()})


def save_policy(policy: Policy, folder: Path) -> ModelCard:
    """Put a policy into a folder: the same files but the library's zip."""
    return _write(policy, folder, {})


def policy_of(
    model: BaseAlgorithm,
    *,
    config: AgentConfig,
    env: Mapping[str, Any] | None = None,
    step: int = 0,
    **about: Unpack[About],
) -> Policy:
    """Return what a model would do now; training it further changes nothing in the copy."""
    running = model.get_vec_normalize_env()
    normalizer = None if running is None else Normalizer.of(running)
    card = ModelCard(
        algo=config.algo,
        agent=config.model_dump(mode="json"),
        observations=observation_spec(model.observation_space),
        actions=actions_spec(model.action_space),
        env=dict(env or {}),
        normalize=None if normalizer is None else normalizer.settings,
        step=step,
        losses=dict(about.get("losses", {})),
        manifest=dict(about.get("manifest", {})),
    )
    _check_names(card)
    weights = torch_weights(model) if is_jax(model) else model.policy.state_dict()
    return Policy(card, weights, normalizer)


def load_policy(folder: Path) -> Policy:
    """Read a policy; a damaged file is named. ``model.zip`` is never opened."""
    folder = settled(folder)
    card = read_card(folder)
    try:
        weights = tensors_in_files.load(checked_tensors(read_checked(folder, WEIGHTS, card)))
    except (BadTensors, SafetensorError) as error:
        found = str(error)
        raise DataError("these are no weights", where=str(folder / WEIGHTS), found=found) from error
    normalizer = None
    if card.normalize is not None:
        content = read_checked(folder, NORMALIZER, card)
        try:
            normalizer = Normalizer.from_bytes(card.normalize, content)
        except (ValueError, KeyError) as error:
            where, found = str(folder / NORMALIZER), str(error)
            raise DataError("these are no statistics", where=where, found=found) from error
    return Policy(card, weights, normalizer)


def verify_model(folder: Path) -> ModelCard:
    """Compare every file of a model with its card; ``model.zip`` is hashed, not opened."""
    folder = settled(folder)
    card = read_card(folder)
    for name in card.hashes:
        if name != CARD:
            read_checked(folder, name, card)
    return card


def _check_names(card: ModelCard) -> None:
    names, levels = card.feature_names, card.levels
    if len(set(names)) != card.observations.width or len(names) != card.observations.width:
        raise ConfigError(
            "the columns that a model sees need a name each",
            where="env: feature_names",
            found=names,
            expected=f"{card.observations.width} different names",
        )
    if levels is not None and len(levels) != card.actions.n:
        raise ConfigError(
            "each action of a model needs its target position",
            where="env: levels",
            found=levels,
            expected=card.actions.n,
        )


def _check_place(folder: Path) -> None:
    """Refuse a folder with anything else in it: the new model takes the place of all of it."""
    if folder.exists() and not folder.is_dir():
        raise StoreError("a model needs a folder", where=str(folder), found="a file")
    inside = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if others := sorted(inside - {CARD, WEIGHTS, NORMALIZER, ZIP}):
        raise StoreError(
            "this folder holds other files than a model's",
            where=str(folder),
            found=", ".join(others[:3]),
            remedy="Name a folder of its own for the model",
        )


def _write(policy: Policy, folder: Path, more: dict[str, bytes]) -> ModelCard:
    files = {WEIGHTS: tensors_in_files.save(policy.tensors())} | more
    if policy.normalizer is not None:
        files[NORMALIZER] = policy.normalizer.to_bytes()
    card = policy.card.sealed(files)
    _check_place(folder)
    with atomic_folder(folder) as place:
        for name, content in files.items():
            (place / name).write_bytes(content)
        (place / CARD).write_text(card.text(), encoding="utf-8")
    return card
