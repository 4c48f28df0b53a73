"""``agent-gym evaluate MODEL``: fresh greedy episodes of a trained model, with an interval."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.agents.sb3.card import read_card
from agent_gym.apps.cli.config_options import words_of
from agent_gym.apps.cli.evaluate_options import EPISODES, OF_MODELS, THRESHOLD, EvaluateJob
from agent_gym.apps.cli.model_words import find_model, is_model, short_name
from agent_gym.apps.cli.output import emit, table
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.training.rl.config import MARKET
from agent_gym.training.rl.export import open_trained
from agent_gym.training.rl.judging import judge, write_episodes
from agent_gym.training.rl.result import figure_text, interval_text

SHARED = (*OF_MODELS, "seed")
"""Options of ``evaluate`` that say something about the episodes of a model."""


def evaluate_models(
    words: list[str], job: EvaluateJob, others: list[str], *, as_json: bool
) -> list[str]:
    """Evaluate the model among the words, or return the words with models as agents.

    Args:
        words: What was named, at least one of it a model.
        job: What was said.
        others: Options that say nothing about a model's episodes, as they were given.
        as_json: Print one JSON document.
    """
    if job.data is not None or job.market is not None:
        return [_as_agent(word) if is_model(word) else word for word in words]
    if len(words) > 1:
        raise ConfigError(
            "the episodes of one model at a time",
            found=" ".join(words),
            remedy="Name one; `agent-gym experiment compare` sets trainings side by side",
        )
    refuse_options(job, others)
    evaluate_model(words[0], job, as_json=as_json)
    return []


def evaluate_model(word: str, job: EvaluateJob, *, as_json: bool) -> None:
    """Play fresh episodes with a model and tell what they say."""
    folder = find_model(word)
    csv = job.csv or home() / "metrics" / f"{short_name(folder)}-episodes.csv"
    check_target(csv)
    model = open_trained(folder)
    threshold = THRESHOLD if job.threshold is None else job.threshold
    played = judge(model, job.episodes or EPISODES, job.seed, threshold)
    write_episodes(csv, played.episodes)
    about = {
        "model": str(folder),
        "algo": model.config.algo,
        "env": model.judged_in.env,
        "step": model.policy.card.step,
        "trained_with_seed": model.seed,
        "seed": job.seed,
        "csv": str(csv),
    }
    payload = about | played.as_dict()
    emit(payload, as_json=as_json, view=view_of(payload))


def _as_agent(word: str) -> str:
    folder = find_model(word)
    card = read_card(folder)
    if card.env.get("id") != MARKET:
        raise ConfigError(
            "this model was not trained on a market",
            where=str(folder),
            found=card.env.get("id"),
            remedy="Leave out --market and --data to see its episodes",
        )
    return f"sb3/{card.algo}:model={folder}"


def refuse_options(job: EvaluateJob, others: list[str]) -> None:
    """Raise ConfigError if options were given that say nothing about the episodes of a model."""
    fields = tuple(name for name in EvaluateJob.model_fields if name not in SHARED)
    found = [*words_of(_only(job, fields)), *others]
    if found:
        raise ConfigError(
            "these options say nothing about the episodes of a model",
            found=" ".join(found),
            remedy="Leave them out; or name --market or --data to trade a market model by a "
            "protocol",
        )


def _only(job: EvaluateJob, fields: tuple[str, ...]) -> EvaluateJob:
    return EvaluateJob().model_copy(update={name: getattr(job, name) for name in fields})


def view_of(said: dict[str, Any]) -> RenderableType:
    """Return the figures for a person."""
    mean = interval_text(said["mean"], said["low"], said["high"])
    head = f"{said['algo']} on {said['env']}, trained for {said['step']:,} steps"
    share = f"{said['share']:.0%} [{said['share_low']:.0%}, {said['share_high']:.0%}]"
    rows: list[tuple[object, ...]] = [
        (f"{said['episodes']} episodes: mean return", mean),
        ("standard deviation", figure_text(said["deviation"])),
        (f"share at or above {said['threshold']:g}", share),
        ("mean length", f"{said['mean_length']:.0f} steps"),
    ]
    for name in ("worst", "best"):
        each = ", ".join(f"{one['seed']} ({_whole(one['reward'])})" for one in said[name])
        rows.append((f"{name} seeds", each))
    where = Text(f"Every episode: {said['csv']}", overflow="fold")
    return Group(table(head, ("figure", "value"), rows), where)


def _whole(reward: float) -> str:
    return f"{reward:.0f}" if abs(reward) >= 10.0 else figure_text(reward)
