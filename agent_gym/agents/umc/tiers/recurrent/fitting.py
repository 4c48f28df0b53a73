"""How the recurrent model learns: a loop that can be stopped after any step and taken up again.

Every random number of a step comes from the seed tree under the number of that step, so a fit that
was stopped needs no state of generators. One thread computes: with more, the order of a sum and so
its last bits would hang on the machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from agent_gym.agents.named_arrays import under
from agent_gym.agents.torch_parts import (
    arrays_of,
    one_thread,
    optimizer_arrays,
    put_arrays,
    put_optimizer,
)
from agent_gym.agents.umc.keeper import FitState
from agent_gym.agents.umc.tiers.contract import Series
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.inference import RecurrentFilter
from agent_gym.agents.umc.tiers.recurrent.losses import free_energy
from agent_gym.agents.umc.tiers.recurrent.network import RecurrentNetwork
from agent_gym.agents.umc.tiers.recurrent.sampling import STARTS_EVERY, Past
from agent_gym.agents.umc.tiers.recurrent.weights import model_of, network_in
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

WHERE = "umc/recurrent"


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the held-out bars found.

    Attributes:
        step: Steps taken so far.
        loss: Mean free energy of a bar over the steps since the look before, none at the first.
        kl: Mean divergence of posterior from priors over those steps, in nats.
        learned_score: Mean log score of the bars it learns from, in deviations.
        held_out_score: Mean log score of the bars it does not learn from.
    """

    step: int
    loss: float | None
    kl: float | None
    learned_score: float
    held_out_score: float


class RecurrentFit:
    """One fit of the recurrent model.

    Args:
        config: The network and the training.
        past: What it may learn from; its tail decides when to stop.
        seeds: Where all its randomness comes from.
        start_from: A fitted model (see RecurrentTier.weights()) to go on from, for fewer steps.
    """

    def __init__(
        self,
        config: RecurrentConfig,
        past: Series,
        seeds: Seeds,
        start_from: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.config = config
        self.looks: list[Look] = []
        self._past = Past(config, past, seeds.child("bootstrap"), start_from)
        self._draws = seeds.child("step")
        self.warm = start_from is not None
        self.steps = config.steps if start_from is None else config.warm_steps
        self._identity = _identity(config, past, seeds, start_from)
        self._network = RecurrentNetwork(config, self._past.columns, seeds.child("weights"))
        if start_from is not None:
            put_arrays(self._network, network_in(start_from), WHERE)
        self._optimizer = torch.optim.Adam(
            self._network.parameters(), lr=config.learning_rate, fused=True
        )
        self._step = 0
        self._since_look: list[tuple[float, float]] = []
        self._best = arrays_of(self._network)
        self._best_look = -1
        self._memories: NDArray[np.float32] = np.zeros((0, config.memory), dtype=np.float32)
        self._look(candidate=start_from is not None)

    @property
    def done(self) -> bool:
        """Return whether there is nothing left to do: all steps taken, or no hope of better."""
        waited = len(self.looks) - 1 - max(self._best_look, 0)
        return self._step >= self.steps or waited >= self.config.patience_looks

    @property
    def step_count(self) -> int:
        """Return how many steps were taken."""
        return self._step

    def step(self) -> None:
        """Take one step, and look at the held-out bars if it is time."""
        if self.done:
            raise AgentError("the fit is over", where=WHERE, found=f"step {self._step}")
        with one_thread():
            loss, kl = self._descend()
        self._step += 1
        self._since_look.append((loss, kl))
        if self._step % self.config.look_every == 0 or self._step == self.steps:
            self._look(candidate=True)

    def run(self, progress: Callable[[Look], None] | None = None) -> None:
        """Take all steps that are left; ``progress`` is told of each look."""
        told = len(self.looks)
        while not self.done:
            self.step()
            if progress is not None and len(self.looks) > told:
                progress(self.looks[-1])
            told = len(self.looks)

    def model(self) -> dict[str, NDArray[Any]]:
        """Return the best model so far: the one of the look with the best held-out score."""
        return model_of(self._best, self._past.normaliser, self._past.names)

    def state(self) -> FitState:
        """Return all that is needed to go on elsewhere, to the bit."""
        arrays: dict[str, NDArray[Any]] = {"memories": self._memories.copy()}
        arrays |= {f"network/{name}": array for name, array in arrays_of(self._network).items()}
        arrays |= {f"best/{name}": array.copy() for name, array in self._best.items()}
        arrays |= optimizer_arrays(self._network, self._optimizer)
        values = {
            "identity": self._identity,
            "step": self._step,
            "best_look": self._best_look,
            "since_look": [list(pair) for pair in self._since_look],
            "looks": [
                [look.step, look.loss, look.kl, look.learned_score, look.held_out_score]
                for look in self.looks
            ],
        }
        return FitState(arrays, json.loads(json.dumps(values)))

    def restore(self, state: FitState) -> None:
        """Go on from a state of a fit of the same past with the same settings and seeds."""
        arrays, values = state
        if values.get("identity") != self._identity:
            raise DataError(
                "the state is of another fit",
                where=WHERE,
                found=values.get("identity"),
                expected=self._identity,
                remedy="Give the same settings, past, seeds and weights to start from, or fit anew",
            )
        put_arrays(self._network, under("network/", arrays), WHERE)
        self._best = {name: array.copy() for name, array in under("best/", arrays).items()}
        self._memories = arrays["memories"].copy()
        put_optimizer(self._network, self._optimizer, arrays)
        self._step, self._best_look = int(values["step"]), int(values["best_look"])
        self._since_look = [(float(loss), float(kl)) for loss, kl in values["since_look"]]
        self.looks = [Look(*row) for row in values["looks"]]

    def _descend(self) -> tuple[float, float]:
        config = self.config
        batch = self._past.batch(self._memories, self._draws.child(self._step).rng())
        self._optimizer.zero_grad(set_to_none=True)
        energy = free_energy(self._network, batch)
        loss = energy.total.mean()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self._network.parameters(), config.gradient_clip)
        for group in self._optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self._optimizer.step()
        found = float(loss.detach()), float(energy.kl.detach().mean())
        if not math.isfinite(found[0]):
            raise AgentError(
                "the loss is not a number any more",
                where=f"{WHERE}, step {self._step}",
                found=found[0],
                remedy="Lower learning_rate or gradient_clip",
            )
        return found

    def _learning_rate(self) -> float:
        first, last = self.config.learning_rate, self.config.last_learning_rate
        return last + 0.5 * (first - last) * (1.0 + math.cos(math.pi * self._step / self.steps))

    def _look(self, *, candidate: bool) -> None:
        """Score the past as it will be followed later, and keep the memories met on the way."""
        now = arrays_of(self._network)
        follower = RecurrentFilter(model_of(now, self._past.normaliser, self._past.names))
        self._memories, scores = _followed(follower, self._past.series)
        learned, held_out = self._past.split(scores)
        loss, kl = _means(self._since_look)
        self.looks.append(Look(self._step, loss, kl, learned, held_out))
        self._since_look = []
        best = self.looks[self._best_look].held_out_score if self._best_look >= 0 else -math.inf
        if candidate and held_out > best:
            self._best, self._best_look = now, len(self.looks) - 1


def _followed(follower: RecurrentFilter, past: Series) -> tuple[NDArray[np.float32], FloatArray]:
    """Return the memory before each bar where a sequence may start, and the score of each bar."""
    memory = follower.begin()
    starts = range(0, len(past), STARTS_EVERY)
    memories = np.zeros((len(starts), follower.memory_size), dtype=np.float32)
    scores = np.empty(len(past))
    for i, start in enumerate(starts):
        memories[i] = memory[: follower.memory_size]
        stop = min(start + STARTS_EVERY, len(past))
        scores[start:stop] = follower.filter(past.rows(start, stop), memory).score
    return memories, scores


def _means(pairs: list[tuple[float, float]]) -> tuple[float | None, float | None]:
    if not pairs:
        return None, None
    first, second = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return first, second


def _identity(
    config: RecurrentConfig,
    past: Series,
    seeds: Seeds,
    start_from: Mapping[str, NDArray[Any]] | None,
) -> str:
    """Return a digest of all that decides what a fit comes to."""
    digest = blake2b(digest_size=16)
    told = [config.model_dump_json(), seeds.root, seeds.path, past.names, start_from is None]
    digest.update(json.dumps(told).encode())
    for array in (past.returns, past.expected_sigma, past.sigma, past.inputs):
        digest.update(np.ascontiguousarray(array).tobytes())
    for name in sorted(start_from or {}):
        digest.update(name.encode() + np.ascontiguousarray((start_from or {})[name]).tobytes())
    return digest.hexdigest()
