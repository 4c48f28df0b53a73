"""``agent-gym watch``: one episode of a trained model as a video."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.model_words import MODEL_HELP, find_model, short_name
from agent_gym.apps.cli.output import emit
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import atomic_path, home
from agent_gym.reporting.rl.videos import record_episode
from agent_gym.training.rl.export import TrainedModel, open_trained
from agent_gym.training.rl.judging import judge, ranked_by_reward
from agent_gym.training.rl.result import figure_text

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)

TRIED = 20
USUAL = "median"
ENDING = ".mp4"


@app.callback()
@writes("a video")
def watch(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    out: Annotated[
        Path | None, typer.Option(help="File to write (.mp4; default in results/videos).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the episode, as `evaluate` lists them.")
    ] = None,
    which: Annotated[
        Literal["best", "median", "worst"] | None,
        typer.Option(
            help=f"Which of {TRIED} fresh episodes is shown (default {USUAL}); not with --seed."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a video of one episode; the median of several, unless told otherwise."""
    if seed is not None and which is not None:
        raise ConfigError(
            "--seed names the episode, so there is none to choose",
            where="--which",
            found=f"--seed {seed} --which {which}",
            remedy="Leave one of them out",
        )
    folder = find_model(model)
    target = out or home() / "videos" / f"{short_name(folder)}{ENDING}"
    if target.suffix != ENDING:
        raise ConfigError("a video is written as MP4", where="--out", found=str(target))
    check_target(target)
    made = open_trained(folder)
    shown = pick(made, which or USUAL) if seed is None else seed
    clip = record_episode(made.policy, made.judged_in, shown, title=short_name(folder))
    with atomic_path(target) as path:
        path.write_bytes(clip.mp4)
    said = {
        "model": str(folder),
        "file": str(target),
        "seed": clip.seed,
        "reward": clip.reward,
        "length": clip.length,
        "which": which or USUAL if seed is None else None,
        "bytes": len(clip.mp4),
    }
    reward = figure_text(clip.reward)
    text = f"{target}: seed {clip.seed}, return {reward} in {clip.length} steps"
    emit(said, as_json=as_json, view=Text(text, overflow="fold"))


def pick(model: TrainedModel, which: str) -> int:
    """Return the seed of the best, median or worst of a few fresh episodes."""
    ranked = ranked_by_reward(judge(model, TRIED, 0, 0.0).episodes)
    place = {"worst": 0, "median": (len(ranked) - 1) // 2, "best": len(ranked) - 1}[which]
    return ranked[place].seed
