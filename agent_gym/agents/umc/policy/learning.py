"""How the actor learns, with torch: two exact losses over all levels, one step after another.

Expected free energy says what each level is worth by the model; realised growth says what each
level did pay. Nobody's trades move the market, so both are known for all levels, and neither loss
draws an action. The chances of every level, given every level that may be held, are computed at
once. Which level is held along a sequence is a chain with these chances, and the growth of a
sequence is its mean over that chain: for chances of 0 and 1 it is the growth of the positions
taken, ``ln(1 + f r - k |f - f_before|)``. So what is trained is what later acts.

Growth is divided by the deviation of the returns that it learns from: a nat is a deviation there as
it is in the plan, and the two losses can be added.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agent_gym.agents.named_arrays import under
from agent_gym.agents.torch_parts import (
    arrays_of,
    one_thread,
    optimizer_arrays,
    put_arrays,
    put_optimizer,
)
from agent_gym.agents.umc.keeper import FitState
from agent_gym.agents.umc.policy.actor import DEVIATION, LEVELS, MEAN, Actor, reach_of, scaled
from agent_gym.agents.umc.policy.chain import follow_chains
from agent_gym.agents.umc.policy.config import ActorConfig
from agent_gym.agents.umc.policy.lessons import WHERE, Lessons
from agent_gym.agents.umc.policy.progress import (
    Arrays,
    Look,
    identity_of,
    learned_bars_of,
)
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

FIRST_SCALE = 0.1
"""How large the last layer begins: no level is ruled out at the start."""
SMALLEST_SPREAD = 1e-9
"""A column whose deviation is below that, next to its size, is taken to be constant."""


class ActorNetwork(nn.Module):
    """All members side by side; every parameter is drawn from the seed tree, by its layer."""

    def __init__(self, config: ActorConfig, columns: int, levels: FloatArray, seeds: Seeds) -> None:
        super().__init__()
        self.depth = config.layers
        self.held = torch.tensor(levels / reach_of(levels), dtype=torch.float32)
        sizes = (columns + 1, *(config.width,) * config.layers, levels.size)
        for i, (rows, ends) in enumerate(pairwise(sizes)):
            bound = (FIRST_SCALE if i == config.layers else 1.0) / math.sqrt(rows)
            drawn = seeds.child(i).rng().uniform(-bound, bound, (config.members, rows, ends))
            weight = torch.from_numpy(drawn.astype(np.float32))
            self.register_parameter(f"weight_{i}", nn.Parameter(weight))
            self.register_parameter(
                f"bias_{i}", nn.Parameter(torch.zeros((config.members, 1, ends)))
            )

    def log_chances(self, states: Tensor) -> Tensor:
        """Return the log chance of each level for each level held.

        Args:
            states: Scaled states, (member, row, column).

        Returns:
            An array of shape (member, row, held, level).
        """
        weight = self.get_parameter("weight_0")
        members, width, held = weight.shape[0], weight.shape[2], self.held.numel()
        of_states = torch.baddbmm(self.get_parameter("bias_0"), states, weight[:, :-1])
        of_held = self.held[:, None] * weight[:, -1:]
        hidden = (of_states[:, :, None] + of_held[:, None]).view(members, -1, width)
        for i in range(1, self.depth + 1):
            bent = nn.functional.silu(hidden)
            weight, bias = self.get_parameter(f"weight_{i}"), self.get_parameter(f"bias_{i}")
            hidden = torch.baddbmm(bias, bent, weight)
        return torch.log_softmax(hidden.view(members, -1, held, held), dim=-1)


def free_energy_loss(log_chances: Tensor, free_energy: Tensor, precision: float) -> Tensor:
    """Return each member's mean free energy less its entropy over the precision.

    Its lowest point is at chances in proportion to ``exp(-precision * free_energy)``.

    Args:
        log_chances: Member first, level last.
        free_energy: Of the same shape; no gradient goes there.
        precision: How sharply chances follow free energy.
    """
    each = log_chances.exp() * (free_energy.detach() + log_chances / precision)
    return each.sum(dim=-1).flatten(1).mean(dim=1)


def growth_loss(log_chances: Tensor, growth: Tensor) -> Tensor:
    """Return minus each member's expected growth of a bar, through time within a sequence.

    A sequence begins with every level held alike, so that all of them are learned from.

    Args:
        log_chances: (member, sequence, bar, held, level).
        growth: What each level paid from each level held, of the same shape.
    """
    chances = log_chances.exp()
    members, sequences, bars, levels, _ = chances.shape
    shape = (members * sequences, bars, levels, levels)
    gradient, total = np.empty(shape, dtype=np.float32), np.empty(members * sequences)
    follow_chains(
        chances.detach().reshape(shape).contiguous().numpy(),
        growth.detach().reshape(shape).contiguous().numpy(),
        gradient,
        total,
    )
    slope = torch.from_numpy(gradient).view_as(chances)
    changed = (slope * (chances - chances.detach())).flatten(1).sum(dim=1)  # 0, but for its slope
    reached = torch.from_numpy(total.astype(np.float32)).view(members, sequences).sum(dim=1)
    return -(reached + changed) / (sequences * bars)


def trust_loss(log_chances: Tensor, before: Tensor) -> Tensor:
    """Return each member's divergence from an earlier policy, in nats."""
    each = log_chances.exp() * (log_chances - before.detach())
    return each.sum(dim=-1).flatten(1).mean(dim=1)


class ActorFit:
    """One fit of the actor.

    Every random number of a step comes from the seed tree under the number of that step, so a fit
    that was stopped needs no state of generators.

    Args:
        config: The network and the training.
        lessons: What it may learn from; the tail decides when to stop.
        seeds: Where all its randomness comes from.
        start_from: The arrays of a trained actor to go on from, for fewer steps.
    """

    def __init__(
        self,
        config: ActorConfig,
        lessons: Lessons,
        seeds: Seeds,
        start_from: Arrays | None = None,
    ) -> None:
        self.config, self.lessons = config, lessons
        self.looks: list[Look] = []
        self.learned_bars = learned_bars_of(config, len(lessons))
        self._draws = seeds.child("step")
        self.warm = start_from is not None
        self.steps = config.steps if start_from is None else config.warm_steps
        self._identity = identity_of(config, lessons, seeds, start_from)
        self._frame = _frame(lessons, self.learned_bars, start_from)
        columns = lessons.states.shape[1]
        self._network = ActorNetwork(config, columns, lessons.levels, seeds.child("weights"))
        if start_from is not None:
            put_arrays(self._network, start_from, WHERE)
        rows = scaled(lessons.states, self._frame[MEAN], self._frame[DEVIATION])
        deviation = float(np.sqrt(np.mean(lessons.returns_ahead[: self.learned_bars - 1] ** 2)))
        self._states, self._free_energy, self._growth = (
            torch.from_numpy(array.astype(np.float32))
            for array in (rows, lessons.free_energy(), lessons.growth() / (deviation or 1.0))
        )
        self._optimizer = torch.optim.Adam(
            self._network.parameters(), lr=config.learning_rate, fused=True
        )
        self._step, self._best_look = 0, -1
        self._losses: list[float] = []
        self._best = arrays_of(self._network)
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
            self._losses.append(self._descend())
        self._step += 1
        if self._step % self.config.look_every == 0 or self._step == self.steps:
            self._look(candidate=True)

    def run(self, progress: Callable[[Look], None] | None = None) -> None:
        """Take all steps that are left; ``progress`` is told of each look."""
        while not self.done:
            told = len(self.looks)
            self.step()
            if progress is not None and len(self.looks) > told:
                progress(self.looks[-1])

    def model(self) -> dict[str, NDArray[Any]]:
        """Return the best actor so far: the one of the look with the most held-out growth."""
        kept = {**self._best, **self._frame}
        return {name: array.copy() for name, array in kept.items()}

    def state(self) -> FitState:
        """Return all that is needed to go on elsewhere, to the bit."""
        arrays: dict[str, NDArray[Any]] = {}
        for prefix, part in (
            ("network/", arrays_of(self._network)),
            ("anchor/", self._anchor),
            ("best/", self._best),
        ):
            arrays |= {prefix + name: array.copy() for name, array in part.items()}
        arrays |= optimizer_arrays(self._network, self._optimizer)
        values = {
            "identity": self._identity,
            "step": self._step,
            "best_look": self._best_look,
            "losses": self._losses,
            "looks": [asdict(look) for look in self.looks],
        }
        return FitState(arrays, json.loads(json.dumps(values)))

    def restore(self, state: FitState) -> None:
        """Go on from a state of a fit of the same lessons with the same settings and seeds."""
        arrays, values = state
        if values.get("identity") != self._identity:
            raise DataError(
                "the state is of another fit",
                where=WHERE,
                found=values.get("identity"),
                expected=self._identity,
                remedy="Give the same settings, lessons, seeds and weights, or fit anew",
            )
        self._hold_on_to(under("anchor/", arrays))
        put_arrays(self._network, under("network/", arrays), WHERE)
        self._best = {name: array.copy() for name, array in under("best/", arrays).items()}
        put_optimizer(self._network, self._optimizer, arrays)
        self._step, self._best_look = int(values["step"]), int(values["best_look"])
        self._losses = [float(loss) for loss in values["losses"]]
        self.looks = [Look(**row) for row in values["looks"]]

    def _descend(self) -> float:
        rows = torch.from_numpy(self._rows())
        states = self._states[rows].flatten(1, 2)
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self._network.log_chances(states), rows).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        for group in self._optimizer.param_groups:
            turn = 0.5 * (1.0 - math.cos(math.pi * self._step / self.steps))
            group["lr"] = _between(self.config.learning_rate, self.config.last_learning_rate, turn)
        self._optimizer.step()
        found = float(loss.detach()) / self.config.members
        if not math.isfinite(found):
            raise AgentError(
                "the loss is not a number any more",
                where=f"{WHERE}, step {self._step}",
                found=found,
                remedy="Lower learning_rate",
            )
        return found

    def _loss(self, told: Tensor, rows: Tensor) -> Tensor:
        config, share = self.config, self._step / self.steps
        by_bar = told.view(*rows.shape, *told.shape[2:])
        efe = _between(config.efe_weight_first, config.efe_weight_last, share)
        reinforcement = _between(
            config.reinforcement_weight_first, config.reinforcement_weight_last, share
        )
        total = efe * free_energy_loss(by_bar, self._free_energy[rows], config.precision)
        total = total + reinforcement * growth_loss(by_bar, self._growth[rows])
        if config.trust > 0.0:
            members = torch.arange(config.members)[:, None, None]
            total = total + config.trust * trust_loss(by_bar, self._before[members, rows])
        return total

    def _rows(self) -> NDArray[np.int64]:
        """Return the bars of this step's sequences, (member, sequence, bar).

        The return ahead of the last learned bar is of the first held-out one, so it is left out.
        """
        config = self.config
        starts = (
            self._draws.child(self._step)
            .rng()
            .integers(
                self.learned_bars - config.sequence_bars, size=(config.members, config.sequences, 1)
            )
        )
        return np.asarray(starts + np.arange(config.sequence_bars), dtype=np.int64)

    def _look(self, *, candidate: bool) -> None:
        """See what the actor, as it acts later, makes of all bars; hold on to its policy."""
        now = arrays_of(self._network)
        self._hold_on_to(now)
        actor = Actor({**now, **self._frame})
        targets, _ = actor.decide(self.lessons.states, actor.begin())
        grown = self.lessons.growth_of(targets)[:-1]
        traded = np.abs(np.diff(targets, prepend=0.0))
        cut = self.learned_bars
        self.looks.append(
            Look(
                step=self._step,
                loss=sum(self._losses) / len(self._losses) if self._losses else None,
                learned_growth=float(grown[: cut - 1].mean()),
                held_out_growth=float(grown[cut:].mean()),
                held_out_turnover=float(traded[cut:-1].mean()),
            )
        )
        self._losses = []
        best = self.looks[self._best_look].held_out_growth if self._best_look >= 0 else -math.inf
        if candidate and self.looks[-1].held_out_growth > best:
            self._best, self._best_look = now, len(self.looks) - 1

    def _hold_on_to(self, policy: dict[str, NDArray[Any]]) -> None:
        """Keep a policy, and what it makes of all bars, as the one not to go far from."""
        put_arrays(self._network, policy, WHERE)
        self._anchor = {name: array.copy() for name, array in policy.items()}
        with one_thread(), torch.no_grad():
            states = self._states.expand(self.config.members, *self._states.shape)
            self._before = self._network.log_chances(states)


def _between(first: float, last: float, share: float) -> float:
    return first + (last - first) * share


def _frame(lessons: Lessons, learned: int, start_from: Arrays | None) -> dict[str, NDArray[Any]]:
    """Return levels and scales: of the bars to learn from, or those of earlier weights."""
    if start_from is not None:
        if not np.array_equal(start_from.get(LEVELS, np.empty(0)), lessons.levels):
            raise DataError(
                "the weights to start from choose from other levels",
                where=WHERE,
                expected=lessons.levels.tolist(),
                remedy="Fit from scratch",
            )
        return {name: start_from[name].copy() for name in (MEAN, DEVIATION, LEVELS)}
    rows = lessons.states[:learned]
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation[deviation <= SMALLEST_SPREAD * (1.0 + np.abs(mean))] = 1.0
    return {MEAN: mean, DEVIATION: deviation, LEVELS: lessons.levels.copy()}
