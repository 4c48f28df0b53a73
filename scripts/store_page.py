"""The page of the store's figures, from the figures alone."""

from __future__ import annotations

from typing import Any

LIMIT_MS = 100.0


def page_of(found: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    figures = found["figures"]
    steps = found["trajectories"] * found["steps_each"]
    parts = [
        "# The store at size",
        f"{steps:,} steps in {found['trajectories']:,} trajectories on a local PostgreSQL, a tenth "
        f"of that on SQLite, {found['cores']} cores. Made by `make store-results`:",
        f"    {found['command']}",
        "`load` is the load average at the end of a stage: with more than the number of cores the "
        "machine was busy with other work, and times are longer than they would be.",
        "## What was done",
        _stages(figures),
        "## What pages ask",
        _verdict(figures),
        _questions(figures),
    ]
    return "\n\n".join(parts) + "\n"


def _stages(figures: dict[str, Any]) -> str:
    rows = ["| stage | seconds | load | found |", "|---|---:|---:|---|"]
    for name, found in figures.items():
        left_out = ("seconds", "load", "questions", "tables", "unused_indexes")
        told = ", ".join(f"{key} {_plain(found[key])}" for key in found if key not in left_out)
        rows.append(f"| {name} | {found['seconds']:,} | {found['load']} | {told} |")
    return "\n".join(rows)


def _verdict(figures: dict[str, Any]) -> str:
    said = []
    for kind in ("postgresql", "sqlite"):
        asked = figures[f"{kind}: questions"]
        slow = sum(each["p95_ms"] >= LIMIT_MS for each in asked["questions"].values())
        unit = asked.get("unit_p50_ms")
        busy = (
            ""
            if unit is None
            else f" Counting to 100,000 in the server, which reads nothing, took {unit} ms."
        )
        said.append(
            f"{kind}: {asked['asked']:,} questions, p50 {asked['p50_ms']} ms, p95 "
            f"{asked['p95_ms']} ms; {slow} of {len(asked['questions'])} have a p95 of "
            f"{LIMIT_MS:.0f} ms or more, at a load of {asked['load']}.{busy}"
        )
    return "\n\n".join(said)


def _questions(figures: dict[str, Any]) -> str:
    kinds = ("postgresql", "sqlite")
    asked = {kind: figures[f"{kind}: questions"]["questions"] for kind in kinds}
    rows = [
        "| question | PostgreSQL p50 ms | p95 ms | SQLite p50 ms | p95 ms |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in asked["postgresql"]:
        cells = [
            str(asked[kind].get(name, {}).get(part, "-"))
            for kind in kinds
            for part in ("p50_ms", "p95_ms")
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
