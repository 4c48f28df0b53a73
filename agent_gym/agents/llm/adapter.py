"""Which numbers of a language model a policy may change: a few small matrices, or all of them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds

Module: TypeAlias = Literal["q_proj", "k_proj", "v_proj", "o_proj"]
MODULES: tuple[Module, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")


class Lora(Config):
    """Low-rank changes to the attention of the top layers.

    What lies below is frozen, so that its work on a prompt is done once and kept.
    """

    kind: Literal["lora"] = "lora"
    rank: int = Field(default=8, ge=1, le=64)
    alpha: float = Field(default=16.0, gt=0, le=1_024)
    layers: int = Field(default=10, ge=1, le=1_000, description="how many of the top layers")
    modules: tuple[Module, ...] = Field(default=MODULES, min_length=1)


class Whole(Config):
    """Every number of the model; for small models that are trained from the start."""

    kind: Literal["whole"] = "whole"


Adapter: TypeAlias = Annotated[Lora | Whole, Field(discriminator="kind")]


def layers_of(network: Any) -> Any:
    """Return the layers of a decoder, in order; a model of another build is refused."""
    layers = getattr(network.get_decoder(), "layers", None)
    if not isinstance(layers, torch.nn.ModuleList):
        raise ConfigError(
            "the layers of this model are not where those of a Llama are",
            found=type(network).__name__,
            remedy="Use a model built like Llama, Mistral or Qwen",
        )
    return layers


def attach(network: Any, adapter: Lora | Whole, seeds: Seeds) -> dict[str, torch.nn.Parameter]:
    """Make the parameters that a policy owns, and return them by name.

    A fresh adapter changes nothing: one of its two matrices begins at zero.
    """
    if isinstance(adapter, Whole):
        network.requires_grad_(True)
    else:
        _inject(network, adapter)
    named = {name: one for name, one in network.named_parameters() if one.requires_grad}
    if isinstance(adapter, Lora):
        _draw(named, seeds)
    return dict(sorted(named.items()))


def _inject(network: Any, adapter: Lora) -> None:
    count = len(layers_of(network))
    if adapter.layers > count:
        raise ConfigError(
            "the model has fewer layers", where="layers", found=adapter.layers, expected=count
        )
    config = LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,  # type: ignore[arg-type]  # a share of the rank; any number does
        target_modules=list(adapter.modules),
        layers_to_transform=list(range(count - adapter.layers, count)),
        lora_dropout=0.0,
        bias="none",
    )
    inject_adapter_in_model(config, network)
    network.train(mode=False)


def _draw(named: dict[str, torch.nn.Parameter], seeds: Seeds) -> None:
    """Draw the first matrices from the seed tree; the library would take a global generator."""
    with torch.no_grad():
        for name, parameter in named.items():
            if "lora_A" in name:
                reach = 1.0 / math.sqrt(parameter.shape[1])
                drawn = seeds.child("lora", name).rng().uniform(-reach, reach, parameter.shape)
                parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))
            else:
                parameter.zero_()
