"""Check: does act() leave alone what it is given, and what it has given away?

An agent may remember: act() and observe() may move its own memory. What it may not do is change an
observation, change a decision after it was handed over, or decide by anything but what it was
shown and told (which the determinism check looks at).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agent_gym.core.registry import register
from agent_gym.core.types import Decision, Observation, Step
from agent_gym.evaluation.audit.finding import Finding, error, fine
from agent_gym.evaluation.audit.run import Plain
from agent_gym.evaluation.audit.stream import bits
from agent_gym.evaluation.audit.subject import Subject


@register("check", "purity", Plain)
class Purity:
    """Watches the bytes of every observation and every decision."""

    looks_for = "an act() that changes observations, or decisions that it has already given"
    wants_agent = True

    def __init__(self, config: Plain) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Play a recorded episode, and compare before and after."""
        stream = subject.stream.showing(subject.stream.matrix)  # arrays of our own
        agent = subject.ready()
        agent.reset(stream.start)
        in_act = 0
        given: list[tuple[Decision, bytes]] = []
        shown: list[tuple[Observation, bytes]] = []
        for step in stream.steps:
            before = _bytes(step.before)
            made = agent.act(step.before)
            in_act += _bytes(step.before) != before
            shown.append((step.before, before))
            given.append((made, bits(made)))
            agent.observe(_told(step, made))
        later = sum(_bytes(obs) != then for obs, then in shown)
        changed = sum(bits(made) != then for made, then in given)
        if in_act or later:
            yield error(
                "The agent writes into the observations that it is shown. Whoever records them, "
                "or shows them to another agent, gets the changed numbers.",
                "Copy the features before changing them, as in features.copy()",
                changed_in_act=in_act,
                changed_in_the_end=later,
                of=len(stream.steps),
            )
        if changed:
            yield error(
                "Decisions change after they were handed over: the agent gives out an array that "
                "it keeps writing to, so that every recorded step shows the last action.",
                "Return a new array, or a plain number, with each decision",
                changed=changed,
                of=len(given),
            )
        if not (in_act or later or changed):
            yield fine(
                "Observations stay as they were shown, and decisions as they were given.",
                decisions=len(given),
            )


def _bytes(obs: Observation) -> bytes:
    legal = b"" if obs.legal is None else np.asarray(obs.legal).tobytes()
    return obs.features.tobytes() + legal


def _told(step: Step, made: Decision) -> Step:
    return Step(step.episode, step.t, step.role, step.agent, step.before, made, step.after)
