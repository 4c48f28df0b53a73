"""Check: does anything learn, all of it, and in the right direction?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.types import Inspectable, Learner
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, unchecked, warning
from agent_gym.evaluation.audit.lessons import Taught, Weights, give_lessons
from agent_gym.evaluation.audit.stream import are_targets
from agent_gym.evaluation.audit.subject import Subject

STILL_SHARE = 0.25  # so many rows or columns of a weight may stand still before it is a warning


class LearningConfig(Config):
    """How long a lesson is and what counts as having learned it."""

    lesson_bars: int = Field(default=480, ge=48, description="bars of one lesson")
    solved: float = Field(
        default=0.75, gt=0.5, lt=0.92, description="share of bars on the right side"
    )
    margin: float = Field(default=0.1, gt=0, lt=0.5, description="change of that share that counts")


@register("check", "learning", LearningConfig)
class Learning:
    """Teaches a market whose next move is plain to see, and watches weights, losses and reward."""

    looks_for = "weights that never move, losses that stand still, learning that goes the wrong way"
    wants_agent = True

    def __init__(self, config: LearningConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Give lessons, then look at what they changed."""
        agent = subject.agent()
        if not isinstance(agent, Learner | Inspectable):
            yield unchecked(
                "It shows no weights (core.types.Inspectable) and has no fit() "
                "(core.types.Learner): by all it says there is nothing in it that learns."
            )
            return
        if not are_targets(subject.stream.start.actions):
            yield unchecked("The lesson is taught in target positions; this world has none.")
            return
        taught = give_lessons(subject, self._config.lesson_bars)
        if isinstance(agent, Inspectable):
            yield from _weights(taught)
            yield from _losses(taught)
        else:
            yield unchecked(
                "It fits but shows no weights (core.types.Inspectable), so nobody can see which "
                "of them move."
            )
        yield self._bandit(taught)

    def _bandit(self, taught: Taught) -> Finding:
        config, score, before = self._config, taught.score, taught.untrained
        figures: dict[str, float] = {"right_side_share": score}
        if before is not None:
            figures["untrained_share"] = before
        if taught.rewards:
            figures |= {"first_reward": taught.rewards[0], "last_reward": taught.rewards[-1]}
        base = 0.5 if before is None else before
        if score >= config.solved:
            return fine("It learns the planted bandit.", **figures)
        if score < 0.5 - config.margin and score < base - config.margin / 2:
            return error(
                "It learns the planted bandit the wrong way round: after the lessons it is on the "
                "losing side more often than before.",
                "Look for a sign: a loss that is maximised, a reward that is subtracted, sides "
                "that are swapped",
                **figures,
            )
        if score <= max(base, 0.5) + config.margin:
            return error(
                "It does not learn the planted bandit, a market whose next move shows in every "
                "column.",
                "See that the loss falls for single samples and not only on average (shapes such "
                "as [B,1] against [B] broadcast), that the policy is in the loss, and that what "
                "decides is what was trained; if it only needs longer, give it more lessons",
                **figures,
            )
        return warning(
            "It learns the planted bandit in part.",
            "Give it more lessons; if that does not help, look at its learning rate and features",
            **figures,
        )


def _weights(taught: Taught) -> Iterator[Finding]:
    after = taught.after
    if not after:
        yield error("weights() shows nothing after the lessons.", "Show what is trained", weights=0)
        return
    dead = [name for name in after if not _moved(name, taught)]
    if dead:
        yield error(
            f"These weights never move: {', '.join(dead[:5])}{' ...' if len(dead) > 5 else ''}. "
            "No gradient reaches them, so they stay as they were drawn.",
            "Put what they produce into the loss, give them to the optimiser, and do not detach "
            "on the way; what is not meant to learn does not belong into weights()",
            dead=len(dead),
            of=len(after),
        )
        return
    wrong = [name for name, value in after.items() if not np.isfinite(value).all()]
    if wrong:
        yield error(
            f"Weights are not finite after the lessons: {', '.join(wrong[:5])}.",
            "Lower the learning rate, clip gradients, and scale what goes in",
            weights=len(wrong),
        )
        return
    yield fine(
        "Every weight moves.", weights=len(after), numbers=sum(v.size for v in after.values())
    )
    yield from _still_lines(taught.before, after)


def _moved(name: str, taught: Taught) -> bool:
    """Say whether a weight differs from its start and, where a twin was fitted, from the twin's."""
    value = taught.after[name]
    others = [seen[name] for seen in (taught.before, taught.twin) if name in seen]
    return bool(others) and all(_changes(value, other).any() for other in others)


def _changes(value: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    if value.shape != other.shape:
        return np.ones(value.shape, dtype=np.bool_)
    return np.asarray(value != other)


def _still_lines(before: Weights, after: Weights) -> Iterator[Finding]:
    """Find inputs that are always 0 (or units that are dead): whole lines that do not move."""
    for name, value in after.items():
        if name not in before or value.ndim != 2 or value.shape != before[name].shape:
            continue
        changed = _changes(value, before[name])
        still = max(((~changed.any(axis=axis)).mean(), axis) for axis in (0, 1))
        share, axis = float(still[0]), still[1]
        figures = {"still_share": share, "lines": value.shape[1 - axis]}
        what = f"{share:.0%} of the {'columns' if axis == 0 else 'rows'} of {name} never move"
        if share >= STILL_SHARE:
            yield warning(
                f"{what}: inputs that are always 0, such as padding, or units that are dead.",
                "Take out inputs that carry nothing; look at scaling and learning rate",
                **figures,
            )
        elif share > 0.0:
            yield note(f"{what}.", **figures)


def _losses(taught: Taught) -> Iterator[Finding]:
    readings: dict[str, list[float]] = {}
    for seen in taught.losses:
        for name, value in seen.items():
            readings.setdefault(name, []).append(value)
    if not readings:
        yield unchecked("It shows no losses().")
        return
    sound = 0
    for name, values in readings.items():
        if not all(math.isfinite(value) for value in values):
            yield error(
                f"The loss {name} is not a finite number.",
                "Look for logarithms of 0, divisions by 0 and gradients that explode",
                readings=len(values),
            )
        elif len(values) < 2:
            yield unchecked(f"The loss {name} was shown once only, so nobody can say if it moves.")
        elif len(set(values)) == 1:
            yield error(
                f"The loss {name} stands still.",
                "See that it is computed from this batch, and that losses() shows the last one",
                value=values[0],
                readings=len(values),
            )
        else:
            sound += 1
    if sound:
        first = next(iter(readings))
        yield fine(
            "Losses move.",
            losses=sound,
            **{f"{first}_first": readings[first][0], f"{first}_last": readings[first][-1]},
        )
