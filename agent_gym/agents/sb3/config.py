"""What each algorithm of Stable-Baselines3 is told; every default is the library's own.

Settings that work better on a task are shipped as files (``agent_gym/configs/rl``), not as
defaults: a default that differs from the library's would surprise whoever compares.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator
from typing_extensions import override

from agent_gym.core.registry import Config

Rate: TypeAlias = float | str
"""A constant, or ``linear_0.001``: from that value at the first step to 0 at the last.

``linear_0.001_0.0001`` ends at the second value.
"""

Layers: TypeAlias = tuple[Annotated[int, Field(ge=1, le=16_384)], ...]
"""How many units each hidden layer has."""

MOST_KEPT = 10_000_000  # steps of a replay buffer: gigabytes even where a step is a few numbers
AUTO = re.compile(r"^auto(_(?P<start>\d+(\.\d*)?([eE][+-]?\d+)?))?$")
RATE = re.compile(r"^linear_(?P<start>[0-9.eE+-]+?)(_(?P<end>[0-9.eE+-]+))?$")


def parse_rate(rate: Rate) -> tuple[float, float]:
    """Return the value at the first and at the last step.

    Example:
        >>> parse_rate("linear_0.001"), parse_rate(0.2)
        ((0.001, 0.0), (0.2, 0.2))
    """
    if not isinstance(rate, str):
        return rate, rate
    found = RATE.match(rate)
    if found is None:
        raise ValueError("a rate is a number, linear_START or linear_START_END")
    return float(found["start"]), float(found["end"] or 0.0)


class AgentConfig(Config):
    """What all algorithms share."""

    algo: ClassVar[str]
    on_policy: ClassVar[bool] = False

    learning_rate: Rate = 3e-4
    gamma: float = Field(default=0.99, ge=0.0, le=1.0)
    net_arch: Layers = Field(default=(64, 64), min_length=1)
    activation: Literal["relu", "tanh", "elu", "silu"] = "tanh"

    @field_validator("learning_rate", "clip_range", "clip_range_vf", check_fields=False)
    @classmethod
    def _a_rate(cls, value: Rate | None) -> Rate | None:
        if value is not None and min(parse_rate(value)) < 0.0:
            raise ValueError("a rate is at least 0")
        return value

    def model_kwargs(self) -> dict[str, Any]:
        """Return the fields that Stable-Baselines3 takes under the same name."""
        own = set(AgentConfig.model_fields) - {"gamma"}
        return {name: getattr(self, name) for name in type(self).model_fields if name not in own}


class OnPolicyConfig(AgentConfig):
    """What PPO and A2C share."""

    on_policy: ClassVar[bool] = True

    n_steps: int = Field(default=2048, ge=1, description="steps of each environment an iteration")
    gae_lambda: float = Field(default=0.95, ge=0.0, le=1.0)
    ent_coef: float = Field(default=0.0, ge=0.0)
    vf_coef: float = Field(default=0.5, ge=0.0)
    max_grad_norm: float = Field(default=0.5, gt=0.0)
    normalize_advantage: bool = True
    use_sde: bool = Field(default=False, description="state-dependent exploration; continuous only")


class PPOConfig(OnPolicyConfig):
    """Proximal policy optimisation."""

    algo: ClassVar[str] = "ppo"

    batch_size: int = Field(default=64, ge=2)
    n_epochs: int = Field(default=10, ge=1)
    clip_range: Rate = 0.2
    clip_range_vf: Rate | None = None
    target_kl: float | None = Field(default=None, gt=0.0)
    fused_adam: bool = Field(default=False, description="faster; rounds in another order")

    @override
    def model_kwargs(self) -> dict[str, Any]:
        return {
            name: value for name, value in super().model_kwargs().items() if name != "fused_adam"
        }


class A2CConfig(OnPolicyConfig):
    """Advantage actor-critic, synchronous."""

    algo: ClassVar[str] = "a2c"

    learning_rate: Rate = 7e-4
    n_steps: int = Field(default=5, ge=1, description="steps of each environment an iteration")
    gae_lambda: float = Field(default=1.0, ge=0.0, le=1.0)
    normalize_advantage: bool = False
    use_rms_prop: bool = True
    rms_prop_eps: float = Field(default=1e-5, gt=0.0)


class OffPolicyConfig(AgentConfig):
    """What all that learn from a replay buffer share."""

    net_arch: Layers = Field(default=(256, 256), min_length=1)
    activation: Literal["relu", "tanh", "elu", "silu"] = "relu"
    buffer_size: int = Field(default=1_000_000, ge=1, le=MOST_KEPT)
    learning_starts: int = Field(default=100, ge=0, description="steps at random before learning")
    batch_size: int = Field(default=256, ge=1)
    tau: float = Field(default=0.005, gt=0.0, le=1.0)
    train_freq: int = Field(default=1, ge=1, description="steps of each environment an iteration")
    gradient_steps: int = Field(default=1, ge=-1, description="-1: as many as steps were taken")
    n_steps: int = Field(default=1, ge=1, description="rewards summed before a value is trusted")


class NoisyConfig(OffPolicyConfig):
    """What acts with noise on top of a policy that has none."""

    action_noise: float = Field(default=0.0, ge=0.0, description="standard deviation; 0: none")


class SACConfig(OffPolicyConfig):
    """Soft actor-critic."""

    algo: ClassVar[str] = "sac"

    ent_coef: float | str = "auto"
    target_entropy: float | Literal["auto"] = "auto"
    target_update_interval: int = Field(default=1, ge=1)
    use_sde: bool = False

    @field_validator("ent_coef")
    @classmethod
    def _an_entropy(cls, value: float | str) -> float | str:
        if isinstance(value, str):
            found = AUTO.match(value)
            if found is None or (found["start"] is not None and not float(found["start"]) > 0.0):
                raise ValueError("it is a number, auto, or auto_START with a start above 0")
        elif value < 0.0:
            raise ValueError("it is at least 0")
        return value


class TQCConfig(SACConfig):
    """Truncated quantile critics."""

    algo: ClassVar[str] = "tqc"

    top_quantiles_to_drop_per_net: int = Field(default=2, ge=0)


class TD3Config(NoisyConfig):
    """Twin delayed deterministic policy gradient."""

    algo: ClassVar[str] = "td3"

    learning_rate: Rate = 1e-3
    net_arch: Layers = Field(default=(400, 300), min_length=1)
    policy_delay: int = Field(default=2, ge=1)
    target_policy_noise: float = Field(default=0.2, ge=0.0)
    target_noise_clip: float = Field(default=0.5, ge=0.0)


class DQNConfig(OffPolicyConfig):
    """Deep Q-network."""

    algo: ClassVar[str] = "dqn"

    learning_rate: Rate = 1e-4
    net_arch: Layers = Field(default=(64, 64), min_length=1)
    batch_size: int = Field(default=32, ge=1)
    tau: float = Field(default=1.0, gt=0.0, le=1.0)
    train_freq: int = Field(default=4, ge=1, description="steps of each environment an iteration")
    target_update_interval: int = Field(default=10_000, ge=1)
    exploration_fraction: float = Field(default=0.1, gt=0.0, le=1.0)
    exploration_initial_eps: float = Field(default=1.0, ge=0.0, le=1.0)
    exploration_final_eps: float = Field(default=0.05, ge=0.0, le=1.0)
    max_grad_norm: float = Field(default=10.0, gt=0.0)


class QRDQNConfig(DQNConfig):
    """Quantile-regression DQN."""

    algo: ClassVar[str] = "qrdqn"

    learning_rate: Rate = 5e-5
    exploration_fraction: float = Field(default=0.005, gt=0.0, le=1.0)
    exploration_final_eps: float = Field(default=0.01, ge=0.0, le=1.0)
    max_grad_norm: float | None = Field(default=None, gt=0.0)  # type: ignore[assignment]


CONFIGS: dict[str, type[AgentConfig]] = {
    each.algo: each
    for each in (
        PPOConfig,
        A2CConfig,
        SACConfig,
        TD3Config,
        TQCConfig,
        DQNConfig,
        QRDQNConfig,
    )
}
"""Every algorithm that can be named, with its config."""
