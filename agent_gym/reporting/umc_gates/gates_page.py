"""The gates as a page: the answer first, then every figure beside its bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_gym.reporting.umc_gates.words import ends, figure, sentence, table

RULES = {
    "at least": "at least {}",
    "at most": "at most {}",
    "equals": "{}",
    "interval holds": "interval holds {}",
    "interval above": "interval above {}",
    "shown only": "shown only",
}
HEADS = ("figure", "found", "interval", "bound", "seeds", "")
ORIGIN = (
    "The bounds are those of the design. Set after a first run (decision 20): M3 at 5 bp with the "
    "preference for gain, the larger numbers of paths, `D.costs` and `D.gross` beside the plain "
    "loss of gate D, which is mostly luck. Intervals of gate A hold for all four nulls together "
    "(98.75 % each). Rows of the recurrent tier have three seeds. What `F.g4_policy` projects is a "
    "policy made for the test: nothing that trades learns from echoes. The figures of every seed "
    "are in the JSON file."
)


def gates_markdown(document: Mapping[str, Any], picture: str) -> str:
    """Return the page; equal documents give equal text."""
    gates = document["gates"]
    asked = [found for found in gates.values() if found["passed"] is not None]
    held = sum(found["passed"] for found in asked)
    parts = [
        "# UMC: acceptance gates",
        _answer(document, held, len(asked)),
        f"![Figures beside their bounds]({picture})",
    ]
    for letter, about in document["by_letter"].items():
        own = {name: found for name, found in gates.items() if name.startswith(f"{letter}.")}
        word = "passed" if about["passed"] else "missed"
        parts.append(f"## {letter}: {word}\n\n{about['title']}.")
        parts.append(table(HEADS, [_row(name, found) for name, found in own.items()]))
        parts += [
            f"- `{name}`: {sentence(found['words'])}"
            for name, found in own.items()
            if found["words"]
        ]
    parts.append(_reading(document))
    return "\n\n".join(parts) + "\n"


def _answer(document: Mapping[str, Any], held: int, asked: int) -> str:
    plan = document["plan"]
    words = f"{held} of {asked} bounds hold for `{plan['agent']['use']}`."
    if document["failed"]:
        missed = ", ".join(f"`{name}`" for name in document["failed"])
        words += f" Missed: {missed}."
    return f"{words} {ORIGIN}"


def _row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    mark = {True: "passed", False: "**missed**", None: ""}[found["passed"]]
    value = "-" if found["value"] is None else f"{figure(found['value'])} {found['unit']}"
    bound = RULES[found["rule"]].format(figure(found["bound"]))
    return (f"`{name}` {found['what']}", value, ends(found), bound, str(found["seeds"]), mark)


def _reading(document: Mapping[str, Any]) -> str:
    kinds = sorted({found["interval"] for found in document["gates"].values()} - {"none"})
    seeds = document["seeds"]
    return (
        "## How to read this\n\n"
        f"Intervals: {'; '.join(kinds) or 'none'}. Seeds begin with {seeds[0]}; every path is "
        "learned on its first half and traded on its second, under the costs that the agent "
        "reckons with.\n\n"
        f"    {document['manifest']['command']}"
    )
