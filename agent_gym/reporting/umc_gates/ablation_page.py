"""The ablation as a page: what was expected, what came, and what is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.reporting.text import many
from agent_gym.reporting.umc_gates.words import ends, figure, table

HEADS = ("market", "arm", "figure", "difference", "95 % interval", "p (Holm)", "seeds")
LATER = "added after the first run"


def ablation_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    found = document["comparisons"]
    expected = [one for one in found if one["expected"] is not None]
    parts = [
        "# UMC: what each part is worth",
        f"{_answer(expected)} {optional_words(document)}",
        f"![Differences in net]({picture})",
        "## What was expected, and what came",
        table((*HEADS, "expected", "verdict"), [_expected(one) for one in expected]),
        "## All differences",
        table(HEADS, [_row(one) for one in found]),
        "## The arms",
        table(
            ("arm", "part", "what differs", ""),
            [_arm(name, own) for name, own in document["arms"].items()],
        ),
        _reading(document),
    ]
    return "\n\n".join(parts) + "\n"


def _answer(expected: Sequence[Mapping[str, Any]]) -> str:
    """Say how many expectations came true; those that cannot fail are counted apart."""
    given = [one for one in expected if one["expected"]["by_construction"]]
    open_ones = [one for one in expected if not one["expected"]["by_construction"]]
    words = f"{_right(open_ones)} of {many(len(open_ones), 'difference')} came as expected"
    later = sum(one["expected"]["added_after_the_first_run"] for one in open_ones)
    words += f" ({later} of them {LATER})." if later else "."
    if not given:
        return words
    right = _right(given)
    are = "all are" if right == len(given) else f"only {right} of them are"
    return f"{words} {many(len(given), 'row')} more must be 0 by construction, and {are}."


def _right(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(one["verdict"] == "as expected" for one in rows)


def optional_words(document: Mapping[str, Any]) -> str:
    """Say which parts are optional, and of which the seeds are too few to say so."""
    few, least = document["too_few_seeds_for_optional"], document["fewest_seeds_for_optional"]
    if few and {one["part"] for one in document["comparisons"]} <= set(few):
        return f"There are too few seeds to call anything optional: {least} are needed."
    words = (
        "Parts whose interval holds 0 in every figure on every market, and which are optional "
        f"therefore: {', '.join(document['optional']) or 'none'}."
    )
    return f"{words} Too few seeds to say so (below {least}): {', '.join(few)}." if few else words


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
    wished = one["expected"]
    later = f" ({LATER})" if wished["added_after_the_first_run"] else ""
    return (*_row(one), wished["sign"] + later, one["verdict"])


def _arm(name: str, own: Mapping[str, Any]) -> tuple[str, ...]:
    later = LATER if own["added_after_the_first_run"] else ""
    return (f"`{name}`", own["part"], own["about"], later)


def _reading(document: Mapping[str, Any]) -> str:
    metrics = "; ".join(f"`{name}`: {text}" for name, text in document["metrics"].items())
    return (
        "## How to read this\n\n"
        "All arms of a seed trade the same path, so differences are paired. P-values come from "
        "flipping signs and hold for all comparisons of a figure together. A difference counts "
        "where its interval leaves out 0 and that p-value is below .05; a sign that was expected "
        "is else *not shown*, and one that was not to be there *not contradicted*. How far *about "
        "0* may reach was set after the first run. On markets that nobody moves every arm decides "
        "by `targets()`, which gate G shows to equal `act()`. "
        f"{metrics}.\n\n"
        f"    {document['manifest']['command']}"
    )
