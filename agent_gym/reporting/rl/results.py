"""The table of results for the lunar lander: our seeds beside what others have published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.core.errors import DataError
from agent_gym.reporting.canvas import steps_text
from agent_gym.reporting.rl.aims import missing_section
from agent_gym.reporting.rl.commands import training_command
from agent_gym.reporting.rl.curves import score_of, share_above
from agent_gym.reporting.rl.published import SOLVED
from agent_gym.reporting.rl.runs import Arm, read_arms
from agent_gym.reporting.rl.verdict import LEAST_SEEDS, published_for
from agent_gym.reporting.text import many, number, one_line, span
from agent_gym.training.rl.config import TrainerConfig

ORDER = ("ppo", "a2c", "sac", "td3")
UNUSUAL = ("continuous", "backend", "learner", "threads")
AWAITED = 10  # seeds that a claim should rest on

HEAD = """# Lunar lander

Every row is one config, trained from scratch with several seeds. The score of a seed is the mean
return of {episodes} deterministic episodes that neither training nor the choice of the kept model
has seen. A row shows the interquartile mean over seeds with its 95 % interval (bootstrap of seeds,
2000 resamples).
"""

BESIDE = """The published figures are those of RL Baselines3 Zoo: the mean over the episodes of
**one run** each, on version 2 of the game. Version 3, used here, mended how the game is reset, so a
published figure is a landmark and no exact rival. A return of {solved:g} counts as solved.
"""

IN_JAX = """SBX marks what was learned in JAX by SBX, which is several times as fast as
Stable-Baselines3 and has other luck. The kept network is that of Stable-Baselines3 with the same
weights, and it is judged like all others.
"""

AGAIN = """## Make it again

    {command}

reads the stored runs and writes this page, `lunar_lander.json` with every figure of it,
`lunar_lander_episodes.csv` with every final episode, and the picture of the curves. Runs that are
finished are not run again, so seeds can be added later.
"""


def results_table(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return one row for each config of the lunar lander below the folders.

    A row holds ``algo, env, steps, seeds, iqm, low, high`` and what is behind them. ``low`` and
    ``high`` are None for a single seed. A config without a finished seed has no row.
    """
    return [row_of(arm) for arm in lander_arms(folders) if arm.finished]


def lander_arms(folders: Sequence[Path]) -> list[Arm]:
    """Return the arms that trained the lander: PPO, A2C, SAC, TD3, others; each by its steps."""
    arms = [arm for folder in folders for arm in read_arms(folder) if arm.is_lander]
    if not arms:
        raise DataError(
            "no run of the lunar lander lies here",
            where=", ".join(map(str, folders)),
            remedy="Train one: agent-gym train --config lander-ppo --seeds 5",
        )
    _refuse_twice(arms)
    return sorted(arms, key=_place)


def row_of(arm: Arm) -> dict[str, Any]:
    """Return the row of an arm that has at least one finished seed."""
    score, share, known = score_of(arm), share_above(arm, SOLVED), published_for(arm)
    if score is None:
        raise DataError("no seed of this arm has finished", where=arm.name)
    results = [run.result for run in arm.finished if run.result]
    spent = [each.cpu_s for each in results if each.cpu_s is not None]
    return {
        "algo": arm.algo,
        "env": arm.env,
        "steps": arm.steps,
        "steps_taken": arm.steps_taken,
        "seeds": score.seeds,
        "iqm": score.iqm,
        "low": score.low,
        "high": score.high,
        "mean": score.mean,
        "name": arm.name,
        "folder": arm.runs[0].path.parent.as_posix(),
        "episodes": int(arm.finished[0].rewards.size),
        "share_above_200": share.estimate if share else None,
        "per_seed": [{"seed": run.seed, "mean": run.score} for run in arm.finished],
        "missing": [
            {"seed": run.seed, "status": run.status} for run in arm.runs if not run.finished
        ],
        "cpu_s": sum(spent) / len(spent) if spent else None,
        "published": known._asdict() if known else None,
        "learner": arm.settings.get("learner", "sb3"),
        "backend": arm.settings.get("backend", "gymnasium"),
        "settings": arm.settings,
        "command": training_command(arm, LEAST_SEEDS),
        "state_hashes": {str(each.seed): each.state_hash for each in results},
    }


def algorithm_of(row: dict[str, Any]) -> str:
    """Return the algorithm, with a mark where another library learned or stepped than usual.

    Example:
        >>> algorithm_of({"algo": "sac", "learner": "sbx", "backend": "gymnasium"})
        'SAC (SBX)'
    """
    marks = [row["learner"].upper()] if row["learner"] != "sb3" else []
    marks += [row["backend"]] if row["backend"] != "gymnasium" else []
    return str(row["algo"]).upper() + (f" ({', '.join(marks)})" if marks else "")


def results_page(rows: Sequence[dict[str, Any]], command: str, picture: str | None = None) -> str:
    """Return the page of the table in Markdown; equal rows give equal text.

    Args:
        rows: What ``results_table`` gives.
        command: What makes the page again.
        picture: Name of the picture of the curves beside the page.
    """
    episodes = " or ".join(str(count) for count in sorted({row["episodes"] for row in rows}))
    parts = [HEAD.format(episodes=episodes), _table(rows), BESIDE.format(solved=SOLVED)]
    if any(row["learner"] == "sbx" for row in rows):
        parts.append(IN_JAX)
    parts += _failures(rows)
    short = [row for row in rows if row["seeds"] < AWAITED or row["missing"]]
    if short:
        parts.append(_short_of(short))
    parts.append(missing_section(rows))
    if picture:
        parts.append(f"![Return of greedy episodes against steps of training]({picture})\n")
    parts.append("## Seeds\n\n" + _seeds(rows))
    parts.append("## Settings\n\nWhat differs from the library's own defaults.\n")
    parts += [_settings(row) for row in rows]
    parts.append(AGAIN.format(command=command))
    return "\n".join(parts)


def _place(arm: Arm) -> tuple[int, str, int, str]:
    at = ORDER.index(arm.algo) if arm.algo in ORDER else len(ORDER)
    return at, arm.algo, arm.steps, arm.name


def _refuse_twice(arms: Sequence[Arm]) -> None:
    """Refuse runs that are named by two of the folders: they would count twice."""
    seen: set[Path] = set()
    for run in (run for arm in arms for run in arm.runs):
        place = run.path.resolve()
        if place in seen:
            raise DataError(
                "a run was given twice", where=str(place), remedy="Name each folder once"
            )
        seen.add(place)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    heads = ["algorithm", "environment", "steps", "seeds", "IQM", "95 % interval", "mean"]
    heads += [f"reach {SOLVED:g}", "CPU a seed", "published"]
    lines = [_line(heads), _line(["---", "---", *["---:"] * 7, "---"])]
    for row in rows:
        known, share, cpu_s = row["published"], row["share_above_200"], row["cpu_s"]
        cells = [algorithm_of(row), row["env"], trained_for(row), str(row["seeds"])]
        cells += [f"**{row['iqm']:.1f}**", _ends(row), f"{row['mean']:.1f}"]
        cells.append("-" if share is None else f"{100.0 * share:.1f} %")
        cells.append("-" if cpu_s is None else span(cpu_s))
        cells.append(f"{known['mean']:g} at {steps_text(known['steps'])}" if known else "-")
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def trained_for(row: dict[str, Any]) -> str:
    """Return the steps of a row, and how many were taken where that is not the same.

    Example:
        >>> trained_for({"steps": 250_000, "steps_taken": 251_904})
        '250k (251,904 taken)'
    """
    said = steps_text(row["steps"])
    return said if row["steps_taken"] <= row["steps"] else f"{said} ({row['steps_taken']:,} taken)"


def _ends(row: dict[str, Any]) -> str:
    return "-" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"


def _short_of(rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        said = f"{_title(row)}: {many(row['seeds'], 'seed')}"
        if row["missing"]:
            left = ", ".join(f"{each['seed']} ({each['status']})" for each in row["missing"])
            said += f"; not counted: {left}"
        lines.append(f"- {said}")
    text = f"Fewer than {AWAITED} seeds, or some without a result; {LEAST_SEEDS} are the least:"
    return "\n".join((text, "", *lines, ""))


def _failures(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the seeds that did not solve the game: the interquartile mean leaves the worst out."""
    lines = [
        f"- {_title(row)}: seed {each['seed']} with {each['mean']:.1f}"
        for row in rows
        for each in row["per_seed"]
        if each["mean"] < SOLVED
    ]
    text = "Seeds that did not come to {:g}; the interquartile mean leaves the worst seed out:"
    return ["\n".join((text.format(SOLVED), "", *lines, ""))] if lines else []


def _seeds(rows: Sequence[dict[str, Any]]) -> str:
    lines = [_line(("run", "mean return of each seed")), _line(("---", "---"))]
    for row in rows:
        means = ", ".join(f"{each['mean']:.1f}" for each in row["per_seed"])
        lines.append(_line((_title(row), means)))
    return "\n".join(lines) + "\n"


def _settings(row: dict[str, Any]) -> str:
    config = row["settings"]
    kind = CONFIGS.get(row["algo"])
    agent = config.get("agent", {})
    usual = kind().model_dump(mode="json") if kind else {}
    chosen = {name: value for name, value in agent.items() if value != usual.get(name)}
    shown = {"n_envs": config.get("n_envs")} | _unusual(config) | chosen
    normalize = config.get("normalize", {})
    shown |= {
        f"normalize.{name}": True for name in ("observations", "rewards") if normalize.get(name)
    }
    said = ", ".join(f"`{name}: {_plain(value)}`" for name, value in shown.items())
    return f"**{_title(row)}**: {said}\n\n    {one_line(row['command'], 500)}\n"


def _unusual(config: dict[str, Any]) -> dict[str, Any]:
    """Return what else decides how it was learned, where it is not as usual."""
    found = {
        name: config[name]
        for name in UNUSUAL
        if name in config and config[name] != TrainerConfig.model_fields[name].default
    }
    inside = config.get("env_params") or {}
    return found | {f"env_params.{name}": value for name, value in inside.items()}


def _title(row: dict[str, Any]) -> str:
    return f"{algorithm_of(row)}, {steps_text(row['steps'])}, {_cell(row['name'])}"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value))
    return number(value, 6) if isinstance(value, float) else one_line(str(value), 80)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return one_line(text, 400).replace("|", r"\|")
