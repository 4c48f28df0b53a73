"""A policy as one ONNX graph: raw observations in, actions out, the normaliser inside."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from typing_extensions import override

from agent_gym.agents.sb3.artifact import Policy
from agent_gym.agents.sb3.greedy import greedy_layers
from agent_gym.core.errors import AgentGymError
from agent_gym.core.files import atomic_path, to_json
from agent_gym.core.seeds import Seeds

CHECKED = 1_000
TOLERANCE = 1e-4
"""Of the range of an action: other libraries sum in another order."""
INPUT, OUTPUT = "observations", "actions"


@dataclass(frozen=True, slots=True)
class OnnxCheck:
    """How the graph compares with the policy on the same observations."""

    observations: int
    agreeing: int
    largest_difference: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return it for ``--json``."""
        return {
            "observations": self.observations,
            "agreeing": self.agreeing,
            "largest_difference": self.largest_difference,
        }


def export_onnx(policy: Policy, target: Path) -> OnnxCheck:
    """Write a policy as ONNX after comparing the graph with it; nothing is written if it differs.

    The graph takes rows of observations as the environment gives them and returns the best action
    of each, in the units of the environment.
    """
    content = onnx_bytes(policy)
    sample = sample_observations(policy, CHECKED)
    check = compare(policy, ReferenceEvaluator(onnx.load_from_string(content)), sample)
    if check.agreeing != check.observations:
        raise AgentGymError(
            "the ONNX graph does not act as the policy does",
            found=f"{check.observations - check.agreeing} of {check.observations} differ",
            expected="the same actions",
            remedy="Export it as zip or script",
        )
    with atomic_path(target) as path:
        path.write_bytes(content)
    return check


def onnx_bytes(policy: Policy) -> bytes:
    """Return the graph as the content of a file."""
    width, dtype = policy.card.observations.width, policy.card.observations.dtype
    example = torch.zeros((2, width), dtype=getattr(torch, dtype))
    with _quietly():
        program = torch.onnx.export(
            _Acting(policy).train(mode=False),
            (example,),
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise AgentGymError("torch has made no ONNX graph")
    model = program.model_proto
    card = policy.card
    said = {"algo": card.algo, "env": card.env, "step": card.step, "normalize": card.normalize}
    onnx.helper.set_model_props(model, {"agent_gym": to_json(said)})
    content: bytes = model.SerializeToString()
    return content


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep what the exporter says of its own insides from the user; errors are raised."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def sample_observations(policy: Policy, n: int) -> NDArray[Any]:
    """Return observations such as training saw, as far as the policy knows, and wilder ones."""
    rng = Seeds(0).child("export", "onnx").rng()
    width = policy.card.observations.width
    drawn = rng.standard_normal((n, width)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    scale = None if policy.normalizer is None else policy.normalizer.scale()
    if scale is not None:
        drawn = drawn * scale[1] + scale[0]
    observations: NDArray[Any] = drawn.astype(policy.card.observations.dtype)
    return observations


def compare(policy: Policy, graph: Any, observations: NDArray[Any]) -> OnnxCheck:
    """Compare a graph that has ``run`` with a policy, action by action.

    Of discrete actions those count as equal that the policy itself values the same, up to rounding.
    """
    given = graph.run([OUTPUT], {INPUT: observations})[0]
    expected = policy.predict(observations)
    if policy.card.actions.n is not None:
        different = np.flatnonzero(given != expected)
        near = sum(_tied(policy, observations[i], int(given[i])) for i in different)
        return OnnxCheck(len(observations), len(observations) - len(different) + near, None)
    low, high = policy.card.actions.bounds()
    off = np.abs(given.astype(np.float64) - expected) / (high - low)
    agreeing = int((off.max(axis=1) <= TOLERANCE).sum())
    return OnnxCheck(len(observations), agreeing, float(off.max()))


def _tied(policy: Policy, obs: NDArray[Any], other: int) -> bool:
    """Say whether the smallest push decides between two actions: then neither is wrong."""
    rng = Seeds(0).child("export", "ties").rng()
    pushed = obs * (1.0 + 1e-5 * rng.standard_normal((64, obs.size)))
    return bool((policy.predict(pushed.astype(obs.dtype)) == other).any())


class _Acting(nn.Module):
    """Everything between an observation and the best action, as one module."""

    mean: Tensor
    deviation: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._layers = greedy_layers(policy.network)
        scale = None if policy.normalizer is None else policy.normalizer.scale()
        self._normalized = scale is not None
        if scale is not None:
            self.register_buffer("mean", torch.from_numpy(np.array(scale[0])))
            self.register_buffer("deviation", torch.from_numpy(np.array(scale[1])))
            self._cut = scale[2]
        self._discrete = policy.card.actions.n is not None
        self._squashed = bool(policy.network.squash_output)
        low, high = policy.card.actions.bounds()
        self.register_buffer("low", torch.from_numpy(low))
        self.register_buffer("high", torch.from_numpy(high))

    @override
    def forward(self, observations: Tensor) -> Tensor:
        x = observations
        if self._normalized:
            x = (x.double() - self.mean) / self.deviation
            x = x.clamp(-self._cut, self._cut)
        x = x.float()
        for layer in self._layers:
            x = layer(x)
        if self._discrete:
            return x
        if self._squashed:
            return self.low + (0.5 * (x + 1.0) * (self.high - self.low))
        return torch.minimum(torch.maximum(x, self.low), self.high)
