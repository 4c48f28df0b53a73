"""Check: is there dropout or other noise in what a trained agent does when it is judged?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.types import (
    Agent,
    Decision,
    FloatArray,
    Inspectable,
    Learner,
    Observation,
    Saveable,
)
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, warning
from agent_gym.evaluation.audit.stream import Stream
from agent_gym.evaluation.audit.subject import Subject

DEPTH = 4
SETTLED = 0.1  # what is left of the changes of a memory that comes to rest
NOISY_LAYERS = ("Dropout", "AlphaDropout", "BatchNorm")
GREEDY = (
    "Act in evaluation mode: put networks into it, take the mean or the best action; an agent "
    "that must explore offers act_greedily()"
)


class EvaluationModeConfig(Config):
    """How often the same question is asked."""

    repeats: int = Field(default=256, ge=16, description="times an observation is shown in a row")
    settled: int = Field(default=48, ge=2, description="equal answers in a row that are enough")
    moments: int = Field(default=3, ge=1, description="observations that are repeated")


@register("check", "evaluation-mode", EvaluationModeConfig)
class EvaluationMode:
    """Asks the same question over and over: a memory comes to rest, noise does not."""

    looks_for = "dropout or sampling noise in an agent that acts as well as it can"
    wants_agent = True

    def __init__(self, config: EvaluationModeConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at the layers where torch shows them, then at the answers."""
        agent = subject.ready()
        stream = subject.stream
        agent.reset(stream.start)
        learns = isinstance(agent, Learner | Inspectable | Saveable)
        agent.act(stream.steps[0].before)
        layers = noisy_layers(agent)
        if layers:
            yield error(
                "Layers that are random or keep statistics are in training mode while it acts.",
                GREEDY,
                layers=", ".join(sorted(layers)[:DEPTH]),
                count=len(layers),
            )
            return
        restless = [spread for spread in self._spreads(agent, stream) if spread is not None]
        if not restless:
            yield fine(
                "The same observation, shown again and again, gets the same decision, or the "
                "agent's memory comes to rest.",
                repeats=self._config.repeats,
                moments=self._config.moments,
            )
        elif learns:
            yield warning(
                "The same observation, shown again and again, keeps getting other decisions: "
                "there is noise in what it does, or it counts the calls.",
                GREEDY,
                moments=len(restless),
                of=self._config.moments,
                largest_change=max(restless),
            )
        else:
            yield note(
                "The same observation, shown again and again, keeps getting other decisions. It "
                "has nothing to train, so this is taken to be its design (dice, or a timetable).",
                largest_change=max(restless),
            )

    def _spreads(self, agent: Agent, stream: Stream) -> Iterator[float | None]:
        """Yield by how much the last answers still change, None where they have come to rest."""
        n, moments = len(stream.steps), self._config.moments
        for moment in range(moments):
            obs = stream.steps[(moment + 1) * n // (moments + 1)].before
            answers = self._ask(agent, obs)
            if len({answer.size for answer in answers}) > 1:
                yield float("inf")
                continue
            changes = np.abs(np.diff(np.array(answers), axis=0)).max(axis=1)
            if not changes[-self._config.settled :].any():
                yield None
                continue
            quarter = len(changes) // 4
            early, late = changes[:quarter].max(), changes[-quarter:].max()
            yield float(late) if late > SETTLED * early else None

    def _ask(self, agent: Agent, obs: Observation) -> list[FloatArray]:
        answers: list[FloatArray] = []
        same = 0
        while len(answers) < self._config.repeats and same < self._config.settled:
            answers.append(_numbers(agent.act(obs)))
            same = same + 1 if len(answers) > 1 and _same(*answers[-2:]) else 0
        return answers


def noisy_layers(thing: object, depth: int = DEPTH) -> set[str]:
    """Return the torch layers below a thing that would act otherwise in evaluation mode."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return set()
    found: set[str] = set()
    for module in _modules(thing, torch.nn.Module, depth):
        for name, layer in module.named_modules():
            kind = type(layer).__name__
            if layer.training and kind.startswith(NOISY_LAYERS) and getattr(layer, "p", 1.0) > 0.0:
                found.add(f"{name or kind} ({kind})")
    return found


def _modules(thing: object, kind: type, depth: int) -> Iterator[Any]:
    if isinstance(thing, kind):
        yield thing
        return
    if depth == 0:
        return
    inside: list[object] = []
    if isinstance(thing, dict):
        inside = list(thing.values())
    elif isinstance(thing, list | tuple):
        inside = list(thing)
    elif hasattr(thing, "__dict__"):
        inside = list(vars(thing).values())
    for part in inside:
        yield from _modules(part, kind, depth - 1)


def _same(first: FloatArray, second: FloatArray) -> bool:
    return first.shape == second.shape and bool((first == second).all())


def _numbers(made: Decision) -> FloatArray:
    action = np.atleast_1d(np.asarray(made.action, dtype=np.float64)).ravel()
    signals = [float(value) for _, value in sorted((made.signals or {}).items())]
    return np.concatenate([action, signals])
