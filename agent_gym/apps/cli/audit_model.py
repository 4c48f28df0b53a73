"""``agent-gym audit MODEL``: what is silently broken in a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agent_gym.agents.sb3.artifact import verify_model
from agent_gym.apps.cli.model_words import find_model
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, entry
from agent_gym.core.seeds import Seeds
from agent_gym.envs.gym_world import GymWorldConfig
from agent_gym.envs.market_env import resolve_config
from agent_gym.evaluation.audit import AuditReport, Subject
from agent_gym.evaluation.audit.models import OF_GAMES, OF_MODELS, Game, audit_model
from agent_gym.markets.bars import Bars
from agent_gym.markets.source import open_market
from agent_gym.training.rl.export import TrainedModel, open_trained

UNUSED = Ref(use="synthetic/btc-1h", params={"n_bars": 300})
"""Bars that checks may change at will; a game sees none of them."""


def audit_trained(
    word: str, checks: Sequence[str], job: Any, open_bars: Callable[[Any], Bars]
) -> tuple[AuditReport, Ref]:
    """Audit the model that a word means.

    Args:
        word: What the command was given.
        checks: What is looked at.
        job: The options of ``agent-gym audit``.
        open_bars: Opens the bars that the options name.
    """
    folder = find_model(word)
    verify_model(folder)
    model = open_trained(folder)
    ref = Ref(use=f"sb3/{model.config.algo}", params={"model": str(folder)})
    named = job.data is not None or job.market is not None
    if model.recipe.is_market:
        bars = open_bars(job) if named else _own_bars(model, job.bars, job.seed)
        subject = Subject.named(ref, bars, seed=job.seed, lessons=job.lessons)
        return audit_model(subject, checks, OF_MODELS), ref
    if named:
        raise ConfigError(
            "this model plays a game, not a market",
            where=str(folder),
            found="--data" if job.data is not None else "--market",
            remedy="Leave it out",
        )
    return _in_game(model, ref, folder, checks, job), ref


def _in_game(
    model: TrainedModel, ref: Ref, folder: Path, checks: Sequence[str], job: Any
) -> AuditReport:
    recipe = model.judged_in
    game = Game(GymWorldConfig(id=recipe.env, params=recipe.params))
    bars = open_market(UNUSED, Seeds(0))
    subject = Subject.named(ref, bars, seed=job.seed, lessons=job.lessons, world=game)
    place = {"env": recipe.env, "params": recipe.params, "model": str(folder)}
    return audit_model(subject, checks, OF_GAMES, place)


def _own_bars(model: TrainedModel, n_bars: int, seed: int) -> Bars:
    """Return bars of the market that the model is judged in, with its own parameters."""
    config = resolve_config(None, model.judged_in.params)
    params = dict(config.market.params)
    if "n_bars" in entry("market", config.market.use).config.model_fields:
        params["n_bars"] = n_bars
    ref = Ref(use=config.market.use, params=params)
    bars = open_market(ref, Seeds(config.market_seed + seed))
    return bars.rows(0, min(len(bars), n_bars))
