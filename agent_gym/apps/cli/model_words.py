"""Trained models as the command line names them: a folder, a file in it, or an experiment."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import home
from agent_gym.core.registry import names
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.run_records import read_result, seed_folders

CARD, ZIP = "model.json", "model.zip"
FILES = (".zip", ".json", ".safetensors", ".npz", ".onnx", ".pkl", ".pt")
MODEL_HELP = (
    "Folder of a trained model (.../seed_0/best), of its run, or of an experiment, or the name of "
    "an experiment."
)


def is_model(word: str) -> bool:
    """Say whether a word can only mean a trained model, and no agent of the registry."""
    if word in names("agent") or ":" in word or "*" in word:
        return False
    path = Path(word)
    deep = word.startswith(("/", ".", "~")) or word.count("/") > 1 or path.suffix in FILES
    return deep or path.exists() or (home() / "experiments" / word).is_dir()


def model_door(name: str) -> Any:
    """Return the module of commands that needs torch; those who name no model go without."""
    return import_module(f"agent_gym.apps.cli.{name}")


def find_model(word: str) -> Path:
    """Return the folder of the model that a word means; nothing in it is read yet."""
    path = Path(word).expanduser()
    named = home() / "experiments" / word
    if not path.exists() and named.is_dir():
        path = named
    if not path.exists():
        raise ConfigError(
            "there is no such model",
            where="MODEL",
            found=word,
            expected=MODEL_HELP,
            remedy=f"Known experiments: {', '.join(_known()) or 'none'}",
        )
    if path.is_file():
        return _of_file(path)
    return _of_folder(path)


def _of_file(path: Path) -> Path:
    if path.name in (CARD, ZIP, "policy.safetensors") and (path.parent / CARD).is_file():
        return path.parent
    if path.suffix == ".zip":
        raise ConfigError(
            "a zip of Stable-Baselines3 is not opened: reading it runs whatever code it holds",
            where=str(path),
            expected="the folder of a model",
            remedy="If you trust whoever made it, `agent-gym train unsafe-import-zip` turns it "
            "into a model",
        )
    raise DataError(
        "this file is no model", where=str(path), expected=MODEL_HELP, remedy="Name its folder"
    )


def _of_folder(folder: Path) -> Path:
    for place in (folder, RunFolder(folder).best, RunFolder(folder).last):
        if (place / CARD).is_file():
            return place
    runs = seed_folders(folder)
    chosen = best_run([path for _, path in runs])
    if chosen is not None:
        return RunFolder(chosen).best
    inside = [path.name for path in sorted(folder.iterdir()) if seed_folders(path)]
    raise DataError(
        "there is no model in this folder",
        where=str(folder),
        found="runs that have none yet" if runs else "no " + CARD,
        expected=MODEL_HELP,
        remedy=f"Name one of its arms: {', '.join(inside)}" if inside else "Check the path",
    )


def best_run(runs: list[Path]) -> Path | None:
    """Return the run whose model was best while it was trained; None if none has a model.

    The episodes that judge it in the end have no part in the choice, so they stay fair.
    """
    scored = []
    for path in runs:
        if (RunFolder(path).best / CARD).is_file():
            result = read_result(path)
            mean = None if result is None else result.best_mean
            scored.append((float("-inf") if mean is None else mean, path))
    return max(scored, key=lambda each: each[0])[1] if scored else None


def short_name(folder: Path) -> str:
    """Return a name for files made of a model, from the folders that it lies in.

    Example:
        >>> short_name(Path("results/experiments/lander-ppo/seed_0/best"))
        'lander-ppo-seed_0'
    """
    parts = [part for part in folder.absolute().parts if part not in ("best", "last", "/")]
    return "-".join(parts[-2:]) or "model"


def _known() -> list[str]:
    folder = home() / "experiments"
    return sorted(path.name for path in folder.glob("[!.]*") if path.is_dir())[:20]
