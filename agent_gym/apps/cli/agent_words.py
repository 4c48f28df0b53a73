"""Agents as they are named on the command line: a name, a pattern, parameters, a grid of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from agent_gym.apps.cli.config_options import parse_pairs
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, configure, entry, names
from agent_gym.evaluation.baselines import Arm, label_of

MOST_OF_A_GRID = 1_000


def parse_agents(words: Sequence[str]) -> tuple[Arm, ...]:
    """Return the arms that words name, each once, every parameter checked.

    ``rules/*`` stands for all agents of that name, ``NAME:fast=10,slow=50`` sets parameters, and
    several numbers, as in ``NAME:fast=10/20``, make a grid from which training chooses.

    Example:
        >>> [arm.label for arm in parse_agents(["rules/flat", "rules/sma-cross:fast=5/9,slow=20"])]
        ['rules/flat', 'rules/sma-cross fast=5/9 slow=20']
    """
    arms: dict[str, Arm] = {}
    for word in words:
        for arm in _arms(word):
            arms.setdefault(arm.label, arm)
    return tuple(arms.values())


def _arms(word: str) -> list[Arm]:
    name, _, said = word.partition(":")
    if any(sign in name for sign in "*?["):
        found = [known for known in names("agent") if fnmatchcase(known, name)]
        if not found or said:
            raise ConfigError(
                "a pattern stands for agents as they are" if said else "no agent has such a name",
                found=repr(word),
                remedy=f"Known: {', '.join(names('agent'))}",
            )
        return [_arm(Ref(use=known), {}) for known in found]
    return [_arm(Ref(use=name), parse_pairs(said.split(","), "AGENT") if said else {})]


def _arm(ref: Ref, params: dict[str, Any]) -> Arm:
    choices = {name: _several(value) for name, value in params.items()}
    refs = [
        Ref(use=ref.use, params=dict(zip(choices, values, strict=True)))
        for values in product(*choices.values())
    ]
    if len(refs) > MOST_OF_A_GRID:
        raise ConfigError(
            "this grid is too large", where=ref.use, found=len(refs), expected=MOST_OF_A_GRID
        )
    for each in refs:
        configure(entry("agent", each.use).config, each.params, where=f"agent {each.use}")
    return Arm(label=label_of(Ref(use=ref.use, params=params)), refs=tuple(refs))


def _several(value: Any) -> list[Any]:
    """Return the numbers between strokes, or the value itself."""
    if not isinstance(value, str) or "/" not in value:
        return [value]
    parsed = [parse_pairs([f"x={part}"], "AGENT")["x"] for part in value.split("/")]
    numbers = all(isinstance(each, int | float) for each in parsed)
    return parsed if numbers else [value]
