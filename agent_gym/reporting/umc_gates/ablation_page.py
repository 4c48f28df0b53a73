"""The ablation as a page: what was expected, what came, and what is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.reporting.umc_gates.words import ends, figure, table

HEADS = ("market", "arm", "figure", "difference", "95 % interval", "p (Holm)", "seeds")


def ablation_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    found = document["comparisons"]
    expected = [one for one in found if one["expected"] is not None]
    parts = [
        "# UMC: what each part is worth",
        _answer(document, expected),
        f"![Differences in net]({picture})",
        "## What was expected, and what came",
        table((*HEADS, "expected", "verdict"), [_expected(one) for one in expected]),
        "## All differences",
        table(HEADS, [_row(one) for one in found]),
        "## The arms",
        table(
            ("arm", "part", "what differs"),
            [(f"`{name}`", own["part"], own["about"]) for name, own in document["arms"].items()],
        ),
        _reading(document),
    ]
    return "\n\n".join(parts) + "\n"


def _answer(document: Mapping[str, Any], expected: Sequence[Mapping[str, Any]]) -> str:
    right = sum(one["verdict"] == "as expected" for one in expected)
    optional = ", ".join(document["optional"]) or "none"
    return (
        f"{right} of {len(expected)} differences came as expected. Parts whose interval holds 0 in "
        f"every figure on every market, and which are optional therefore: {optional}."
    )


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        one["market"],
        f"`{one['arm']}` - `{one['against']}`",
        one["metric"],
        figure(one["estimate"]),
        ends(one),
        figure(one["p_holm"]),
        str(one["seeds"]),
    )


def _expected(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (*_row(one), one["expected"], one["verdict"])


def _reading(document: Mapping[str, Any]) -> str:
    metrics = "; ".join(f"`{name}`: {text}" for name, text in document["metrics"].items())
    return (
        "## How to read this\n\n"
        "All arms of a seed trade the same path, so differences are paired. P-values come from "
        "flipping signs and hold for all comparisons of a figure together. On markets that nobody "
        "moves every arm decides by `targets()`, which gate G shows to equal `act()`. "
        f"{metrics}.\n\n"
        f"    {document['manifest']['command']}"
    )
