"""The parts of a training page, as HTML; whatever comes from outside is escaped here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import yaml

from agent_gym.evaluation.page import Answer, Origin, chip, table, tiles
from agent_gym.reporting.canvas import PALETTE, steps_text
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.commands import training_command
from agent_gym.reporting.rl.curves import reached_curve, score_of, share_above, steps_to
from agent_gym.reporting.rl.published import SOLVED
from agent_gym.reporting.rl.runs import Arm, Run
from agent_gym.reporting.rl.verdict import Light, Verdict, published_for
from agent_gym.reporting.text import DASH, many, number, one_line, span, visible

MOST_EMBEDDED = 3_000_000
MOST_ROWS, MOST_SETTINGS = 400, 120


class Shown(NamedTuple):
    """A video on the page, and where it lies beside it."""

    clip: Clip
    link: str


def answer(arm: Arm, found: Verdict, others: int) -> Answer:
    """Return the answer, why, and the figures behind it."""
    lead = ""
    if others:
        lead = (
            f"Best of {many(others + 1, 'arm')}: {one_line(arm.name, 80)}. It was picked by these "
            "very figures, which flatters it. "
        )
    why = (lead + _how(arm), *found.why)
    return Answer(found.light, found.word, found.headline, why, _tiles(arm))


def _how(arm: Arm) -> str:
    count = len(arm.finished)
    episodes = arm.finished[0].rewards.size if count else 0
    return (
        f"Interquartile mean over {many(count, 'seed')}, each the mean of {episodes} fresh greedy "
        f"episodes of its kept model."
        if count
        else "Nothing was measured."
    )


def _tiles(arm: Arm) -> str:
    score, known = score_of(arm), published_for(arm)
    if score is None:
        return ""
    scores = arm.scores
    cells = [(number(score.mean, 4), "mean over seeds")]
    if known is not None:
        cells.append((f"{known.mean:g}", f"published, at {steps_text(known.steps)} steps"))
    share = share_above(arm, SOLVED) if arm.is_lander else None
    if share is not None:
        cells.append((f"{100.0 * share.estimate:.1f} %", f"of episodes reach {SOLVED:g}"))
    cells.append((number(float(scores.min()), 4), "worst seed"))
    cells.append((steps_text(arm.steps), "steps of training a seed"))
    spent = [run.result.cpu_s for run in arm.finished if run.result and run.result.cpu_s]
    if spent:
        cells.append((span(sum(spent) / len(spent)), "of CPU a seed"))
    return tiles(cells)


def videos(shown: Sequence[Shown]) -> str:
    """Return the videos, carried in the page as long as it stays small, else as links."""
    parts, carried = [], 0
    for each in shown:
        clip = each.clip
        said = f"{clip.title}: return {number(clip.reward)}, {many(clip.length, 'step')}"
        text = f"<figcaption>{escape(one_line(said, 200))}</figcaption>"
        link = escape(each.link)
        if carried + len(clip.mp4) <= MOST_EMBEDDED:
            carried += len(clip.mp4)
            data = b64encode(clip.mp4).decode()
            inner = (
                '<video controls muted loop playsinline preload="metadata" '
                f'aria-label="{escape(one_line(said, 200))}" src="data:video/mp4;base64,{data}">'
                "</video>"
            )
        else:
            size = f"{len(clip.mp4) / 1e6:.1f} MB"
            inner = f'<p><a href="{link}">{link}</a> <span class="faint">({size})</span></p>'
        parts.append(f"<figure>{inner}{text}</figure>")
    return f'<div class="videos" id="videos">{"".join(parts)}</div>' if parts else ""


def arms_table(arms: Sequence[Arm]) -> str:
    """Return one row an arm: its score beside what was published."""
    rows = []
    for at, arm in enumerate(arms):
        score, known = score_of(arm), published_for(arm)
        swatch = f'<span class="swatch c{at % len(PALETTE)}"></span>'
        cells = [f"{swatch}{escape(one_line(arm.name, 80))}", arm.algo, steps_text(arm.steps)]
        cells.append(f"{len(arm.finished)} / {len(arm.runs)}")
        cells.append(number(score.iqm) if score else DASH)
        cells.append(
            f"{number(score.low)} to {number(score.high)}" if score and score.low else DASH
        )
        cells.append(f"{known.mean:g} at {steps_text(known.steps)}" if known else DASH)
        rows.append([cells[0], *map(escape, cells[1:])])
    heads = ("Arm", "Algorithm", "Steps", "Seeds", "IQM", "95 %", "Published")
    return table(heads, rows)


def seeds_table(arms: Sequence[Arm]) -> str:
    """Return one row a seed, and what went wrong with those that failed."""
    several, lander = len(arms) > 1, any(arm.is_lander for arm in arms)
    heads = ["Arm, seed" if several else "Seed", "Status", "Final mean", "95 % of episodes"]
    heads += [f"Reach {SOLVED:g}", f"Steps to {SOLVED:g}"] if lander else []
    heads += ["Kept model at", "CPU"]
    rows = [
        _seed_row(arm, run, at if several else None, lander=lander)
        for at, arm in enumerate(arms)
        for run in arm.runs
    ]
    left = len(rows) - MOST_ROWS
    more = f'<p class="faint">{left} more are not shown.</p>' if left > 0 else ""
    return table(heads, rows[:MOST_ROWS]) + more + _failures(arms)


def _seed_row(arm: Arm, run: Run, place: int | None, *, lander: bool) -> list[str]:
    result = run.result
    seed = DASH if run.seed is None else str(run.seed)
    swatch = "" if place is None else f'<span class="swatch c{place % len(PALETTE)}"></span>'
    name = seed if place is None else f"{escape(one_line(arm.name, 60))}, {seed}"
    light: Light = "good" if run.finished else "bad" if run.status == "error" else "unsure"
    cells = [f"{swatch}{name}", chip(light, run.status)]
    cells.append(number(run.score) if run.finished else DASH)
    ends = result and run.finished and result.final_low is not None
    cells.append(
        f"{number(result.final_low)} to {number(result.final_high)}" if result and ends else DASH
    )
    if lander:
        share = float((run.rewards >= SOLVED).mean()) if run.finished else None
        reached = steps_to(run, SOLVED)
        cells.append(DASH if share is None else f"{100.0 * share:.0f} %")
        cells.append(_reached(reached.step, seen=reached.seen) if reached else DASH)
    cells.append(_kept(result.best_step, result.steps) if result else DASH)
    cells.append(span(result.cpu_s) if result and result.cpu_s else DASH)
    return cells


def _kept(step: int | None, of: int) -> str:
    return f"{DASH if step is None else steps_text(step)} of {steps_text(of)}"


def _reached(step: int, *, seen: bool) -> str:
    return steps_text(step) if seen else f"not by {steps_text(step)}"


def _failures(arms: Sequence[Arm]) -> str:
    parts = []
    for run in (run for arm in arms for run in arm.runs):
        said = run.result.error if run.result else None
        if said:
            title = f"Seed {run.seed} failed"
            text = "\n".join(f"{key}: {value}" for key, value in said.items() if value)
            parts.append(
                f'<article class="card bad"><h3>{escape(title)}</h3>'
                f"<pre>{escape(visible(text, 2_000))}</pre></article>"
            )
    return "".join(parts[:10])


def reached_note(arm: Arm) -> str:
    """Return by when half of the seeds had reached the mark; seeds that had not are counted."""
    found = reached_curve(arm, SOLVED) if arm.is_lander else None
    if found is None:
        return ""
    middle = found.median()
    ends = [DASH if end is None else steps_text(end) for end in (middle.low, middle.high)]
    band = f"{ends[0]} or later" if middle.high is None else " to ".join(ends)
    late = f" {many(found.censored, 'seed')} had not by the end." if found.censored else ""
    if middle.estimate is None:
        return f"Less than half of the seeds reached a mean of {SOLVED:g}.{late}"
    when = f"{steps_text(middle.estimate)} steps (95 %: {band})"
    return f"Half of the seeds first had a mean of {SOLVED:g} within {when}.{late}"


def settings(arms: Sequence[Arm]) -> str:
    """Return what was set, differences between arms first, and the whole config to copy."""
    flat = [_flat(arm.settings) for arm in arms]
    names = list(dict.fromkeys(name for each in flat for name in each))
    differ = [name for name in names if len({str(each.get(name)) for each in flat}) > 1]
    if len(arms) > 1:
        heads = ["Setting", *(one_line(arm.name, 40) for arm in arms)]
        rows = [
            [escape(name), *(escape(_value(each.get(name))) for each in flat)] for name in differ
        ]
        body = table(heads, rows[:MOST_SETTINGS]) if rows else "<p>All settings are equal.</p>"
    else:
        chosen = [name for name in names if name.startswith("agent.") or name in _MAIN]
        lines = {name: _value(flat[0][name]) for name in chosen[:MOST_SETTINGS]}
        body = _facts(lines)
    text = yaml.safe_dump(arms[0].config, sort_keys=False, allow_unicode=True)
    return (
        f'<div class="box">{body}<details><summary>Whole config as YAML</summary>'
        f"<pre>{escape(visible(text, 20_000))}</pre></details></div>"
    )


_MAIN = ("algo", "env", "continuous", "n_envs", "steps", "backend", "learner", "threads")


def origin(arms: Sequence[Arm]) -> Origin:
    """Return where all this comes from and how to make it again."""
    asked = tuple(dict.fromkeys(training_command(arm) for arm in arms))
    results = [run.result for arm in arms for run in arm.runs if run.result]
    if not results:
        return Origin(asked)
    first = results[0].manifest
    versions = first.get("versions")
    facts = {
        "Commit": str(first.get("commit") or "not known"),
        "Config hash": str(first.get("config_hash") or ""),
        "Versions": _short(versions) if isinstance(versions, Mapping) else "",
        "Folders": ", ".join(dict.fromkeys(str(arm.runs[0].path.parent) for arm in arms)),
    }
    if len(arms) == 1:
        facts["State hashes"] = ", ".join(
            f"{each.seed}: {each.state_hash[:16]}" for each in results[:20] if each.state_hash
        )
    return Origin(asked, facts, first, "The manifest is that of the first run.")


def _flat(config: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return one_line(str(value), 200)


def _short(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(values.items()))


def _facts(rows: Mapping[str, str]) -> str:
    """Return many short facts in as many columns as there is room for."""
    cells = "".join(
        f"<div><dt>{escape(name.removeprefix('agent.'))}</dt><dd>{escape(value)}</dd></div>"
        for name, value in rows.items()
    )
    return f'<dl class="facts">{cells}</dl>'
