"""The best action of a network by the shortest way: its layers, without what wraps them.

The operations are those of the library in the same order, so the results have the same bits;
the gradients, hooks and checks around them are left out, which is most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from gymnasium import spaces
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from sb3_contrib.tqc.policies import TQCPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import Tensor, nn
from torch.nn import functional

from agent_gym.core.errors import ConfigError

Layer: TypeAlias = Callable[[Tensor], Tensor]

DIRECT: dict[type[nn.Module], Layer] = {nn.ReLU: torch.relu, nn.Tanh: torch.tanh}


def greedy_layers(policy: BasePolicy) -> tuple[Layer, ...]:
    """Return the steps from an observation (float32) to the best action, before it is scaled."""
    if isinstance(policy, ActorCriticPolicy):
        layers = (*_layers(policy.mlp_extractor.policy_net), *_layers(policy.action_net))
        return (*layers, _likeliest) if isinstance(policy.action_space, spaces.Discrete) else layers
    if isinstance(policy, SACPolicy | TQCPolicy):
        return (*_layers(policy.actor.latent_pi), *_layers(policy.actor.mu), torch.tanh)
    if isinstance(policy, TD3Policy):
        return tuple(_layers(policy.actor.mu))
    if isinstance(policy, DQNPolicy):
        return (*_layers(policy.q_net.q_net), _best)
    if isinstance(policy, QRDQNPolicy):
        net = policy.quantile_net
        shape = (-1, net.n_quantiles, int(net.action_space.n))
        return (*_layers(net.quantile_net), lambda x: _best(x.view(shape).mean(dim=1)))
    raise ConfigError("no way to act greedily is known", found=type(policy).__name__)


def _layers(module: nn.Module) -> Iterator[Layer]:
    if isinstance(module, nn.Sequential):
        for part in module:
            yield from _layers(part)
    elif isinstance(module, nn.Linear):
        yield _linear(module)
    else:
        yield DIRECT.get(type(module), module.forward)


def _linear(module: nn.Linear) -> Layer:
    weight: Tensor = module.weight.detach()
    bias: Any = None if module.bias is None else module.bias.detach()
    linear = functional.linear
    return lambda x: linear(x, weight, bias)


def _likeliest(logits: Tensor) -> Tensor:
    """Return the likeliest action; two that are equal as probabilities count as equal."""
    settled = logits - logits.logsumexp(dim=-1, keepdim=True)
    return torch.softmax(settled, dim=-1).argmax(dim=1)


def _best(values: Tensor) -> Tensor:
    return values.argmax(dim=1)
