"""``agent-gym export``: a trained model for use elsewhere, or the script that makes it again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.model_words import MODEL_HELP, find_model, short_name
from agent_gym.apps.cli.output import emit
from agent_gym.apps.cli.workspace import check_target
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home, write_text
from agent_gym.training.rl.export import export_zip, open_trained, script_of, weights_hash
from agent_gym.training.rl.export_onnx import export_onnx

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)

ENDINGS = {"script": ".py", "onnx": ".onnx", "zip": ".zip"}


@app.callback()
@writes("a model for use elsewhere")
def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    kind: Annotated[
        Literal["script", "onnx", "zip"],
        typer.Option(
            "--format",
            help="script: plain Stable-Baselines3 that makes the same weights; onnx: the policy "
            "with its normaliser in one graph; zip: the format of Stable-Baselines3.",
        ),
    ] = "script",
    out: Annotated[
        Path | None, typer.Option(help="File to write (default in results/models).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Write a trained model as a script that makes it again, as ONNX, or as a zip."""
    folder = find_model(model)
    target = out or home() / "models" / f"{short_name(folder)}{ENDINGS[kind]}"
    check_target(target)
    said: dict[str, Any] = {"model": str(folder), "format": kind, "file": str(target)}
    said |= WRITERS[kind](folder, target)
    emit(said, as_json=as_json, view=Text(f"{target}: {said['about']}", overflow="fold"))


def _script(folder: Path, target: Path) -> dict[str, Any]:
    made = open_trained(folder)
    foreign = made.policy.card.manifest.get("foreign")
    if foreign is not None:
        raise ConfigError(
            "nobody knows how this model was trained",
            where=str(folder),
            found=f"it came from {foreign['file']}",
            remedy="Export it as onnx or zip",
        )
    digest = weights_hash(made.policy.weights())
    step = made.policy.card.step
    write_text(target, script_of(made.config, made.seed, step=step, expected=digest))
    exact = made.recipe.backend == "gymnasium"
    about = (
        "run it with python: it ends by saying whether its weights are those of this model"
        if exact
        else f"same settings, but this run was stepped by {made.recipe.backend}: other weights"
    )
    return {"sha256": digest, "step": step, "exact": exact, "about": about}


def _onnx(folder: Path, target: Path) -> dict[str, Any]:
    policy = open_trained(folder).policy
    check = export_onnx(policy, target)
    about = f"acts as the model does on {check.agreeing} of {check.observations} observations"
    return {"check": check.as_dict(), "about": about}


def _zip(folder: Path, target: Path) -> dict[str, Any]:
    export_zip(folder, target)
    made = open_trained(folder)
    library = "Stable-Baselines3" if made.config.learner == "sb3" else made.config.learner
    normalized = made.policy.normalizer is not None
    note = " (it does not hold the normaliser: onnx does)" if normalized else ""
    return {"about": f"opens with {library}{note}", "has_normalizer": False}


WRITERS = {"script": _script, "onnx": _onnx, "zip": _zip}
