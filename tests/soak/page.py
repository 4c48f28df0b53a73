"""What a soak came to, as JSON and as a page."""

from pathlib import Path
from typing import Any

from agent_gym.core.files import write_json, write_text
from tests.soak.invariants import INVARIANTS


def passed(acts: list[dict[str, Any]]) -> bool:
    """Return whether everything was done and everything held."""
    return not any(act["violations"] or act["problems"] or act["not_done"] for act in acts)


def write(folder: Path, acts: list[dict[str, Any]], seed: int, seconds: float) -> None:
    """Write soak.json and soak.md."""
    command = f"make soak SECONDS={seconds:g} SEED={seed}"
    kept = [{name: act[name] for name in act if name != "desk"} for act in acts]
    said = {"command": command, "seed": seed, "seconds": seconds, "passed": passed(acts)}
    write_json(folder / "soak.json", said | {"acts": kept})
    write_text(folder / "soak.md", page(said, acts))


def page(said: dict[str, Any], acts: list[dict[str, Any]]) -> str:
    """Return the page."""
    names = [act["database"] for act in acts]
    lines = [
        "# The soak",
        "",
        f"`{said['command']}`: {'everything held' if said['passed'] else '**NOT everything held**'}"
        f". [What is done and what is watched](../soak.md); [all of it](soak.json).",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for title, read in ROWS:
        lines.append(f"| {title} | {' | '.join(str(read(act)) for act in acts)} |")
    kinds = sorted({kind for act in acts for kind in act["faults"]})
    lines += ["", f"| fault | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for kind in kinds:
        counts = (str(act["faults"].get(kind, "-")) for act in acts)
        lines.append(f"| {kind} | {' | '.join(counts)} |")
    lines += ["", f"| invariant | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for name in INVARIANTS:
        counts = (str(sum(one["invariant"] == name for one in act["violations"])) for act in acts)
        lines.append(f"| {name} | {' | '.join(counts)} |")
    lines += _wrong(acts)
    return "\n".join(lines) + "\n"


def _wrong(acts: list[dict[str, Any]]) -> list[str]:
    lines = []
    for act in acts:
        found = [f"{one['invariant']}: {one['words']}" for one in act["violations"][:20]]
        found += [f"after recovery: {words}" for words in act["problems"]]
        found += [f"never done: {kind}" for kind in act["not_done"]]
        lines += [f"- {act['database']}: {' '.join(words.split())}" for words in found]
    return ["", "What did not hold:", "", *lines] if lines else []


def _figure(name: str) -> Any:
    return lambda act: f"{act['figures'].get(name, 0):,}"


def _kills(act: dict[str, Any]) -> str:
    done = {name: count for name, count in act["faults"].items() if name.startswith("kill")}
    return f"{sum(done.values()):,}"


def _starts(act: dict[str, Any]) -> str:
    names = ("service", "harness", "nightly", "recorder")
    return ", ".join(f"{name} {act['starts'][name]}" for name in names)


def _requests(act: dict[str, Any]) -> str:
    answers = act["figures"].get("answers", {})
    return (
        f"{sum(answers.values()):,} ({', '.join(f'{n} {k}' for k, n in sorted(answers.items()))})"
    )


ROWS: tuple[tuple[str, Any], ...] = (
    ("seconds", lambda act: f"{act['seconds']:,.0f}"),
    ("disk", lambda act: act["disk"]),
    ("faults", lambda act: f"{sum(act['faults'].values()):,}"),
    ("kills", _kills),
    ("starts", _starts),
    ("ticks of agents", _figure("ticks")),
    ("trajectories", _figure("trajectories")),
    ("steps recorded", _figure("steps")),
    ("acknowledged steps", _figure("acknowledged_steps")),
    ("acknowledged ticks", _figure("acknowledged_ticks")),
    ("models", _figure("models")),
    ("entries of the history", _figure("history")),
    ("HTTP requests", _requests),
    ("looks of the observer", lambda act: f"{act['looks']:,}"),
    ("of them at the database", lambda act: f"{act['looks_at_database']:,}"),
    ("of them at the service", lambda act: f"{act['looks_at_service']:,}"),
    ("most memory of the service, MB", lambda act: act["rss_mb_most"]),
    ("unfinished files left by kills", _figure("half_written")),
    ("violations", lambda act: f"{len(act['violations']):,}"),
)
