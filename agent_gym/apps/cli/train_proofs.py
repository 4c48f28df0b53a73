"""The work of the other commands of ``agent-gym train``; it needs torch."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.text import Text

from agent_gym.agents.sb3.algorithms import ACTIVATIONS
from agent_gym.agents.sb3.artifact import save_model
from agent_gym.agents.sb3.config import CONFIGS, AgentConfig
from agent_gym.agents.sb3.foreign import unsafe_load_foreign_zip
from agent_gym.apps.cli.output import EXIT_RUN, emit, screen, table
from agent_gym.apps.cli.train_view import say
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import configure
from agent_gym.envs.training_env import describe_env
from agent_gym.training.rl.calibration import calibrate
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment_config import ExperimentConfig
from agent_gym.training.rl.reproducibility import verify_reproducibility
from agent_gym.training.rl.schema import training_schema
from agent_gym.training.rl.setup import recipe_of

VERIFIED_STEPS = 10_000


class Proof(NamedTuple):
    """How exactness is proved; without steps 10,000 are taken."""

    steps: int | None
    kills: int
    seed: int


def verify(config: TrainerConfig, asked: Proof, *, as_json: bool) -> None:
    """Prove that a killed run ends like one that was left alone, and print the hashes."""
    report = verify_reproducibility(
        config, steps=asked.steps or VERIFIED_STEPS, kills=asked.kills, seed=asked.seed, say=say
    )
    payload = report.model_dump(mode="json") | {"exact": report.exact}
    rows: list[tuple[object, ...]] = [
        ("left alone", report.unbroken),
        ("again, in another process", report.repeated or "not asked for"),
        (f"killed at steps {', '.join(map(str, report.killed_at))}", report.resumed),
        ("files that differ", ", ".join(report.differing_files) or "none"),
    ]
    title = f"{config.algo} on {config.env}: " + ("exact" if report.exact else "NOT exact")
    emit(payload, as_json=as_json, view=table(title, ("run", "hash of its state"), rows))
    if not report.exact:
        raise typer.Exit(EXIT_RUN)


def speed(config: TrainerConfig, budget_s: float, *, as_json: bool) -> None:
    """Measure steps a second in several layouts and print them."""
    found = calibrate(config, budget_s=budget_s, say=say)
    rows: list[tuple[object, ...]] = [
        (
            each.threads,
            each.n_envs,
            each.batch_size or "",
            round(each.steps_per_s),
            "yes" if each.learns_alike else "no",
        )
        for each in found.layouts
    ]
    title = (
        f"{config.algo} on {config.env}: {found.as_configured.steps_per_s:,.0f} steps/s as it is, "
        f"{found.recommended.steps_per_s:,.0f} with --set threads={found.recommended.threads}"
    )
    columns = ("threads", "n_envs", "batch_size", "steps/s", "learns alike")
    emit(found.model_dump(mode="json"), as_json=as_json, view=table(title, columns, rows))


def schema(experiment: bool) -> None:
    """Print the JSON Schema of a training file or of an experiment."""
    found = ExperimentConfig.model_json_schema() if experiment else training_schema()
    screen.print(to_json(found), markup=False, highlight=False, soft_wrap=True)


def unsafe_import_zip(file: Path, algo: str, env: str, out: Path, *, as_json: bool) -> None:
    """Run what a foreign zip holds and keep its model in a safe format."""
    check_writable(out)
    if out.exists():
        raise ConfigError("this place is taken", where=str(out), remedy="Name a new folder")
    config = configure(TrainerConfig, {"algo": algo, "env": env}, where="the command")
    recipe = recipe_of(config)
    model = unsafe_load_foreign_zip(file, algo)
    settings = settings_of(model, algo)
    told = config.model_copy(update={"agent": settings, "steps": max(1, model.num_timesteps)})
    manifest: dict[str, Any] = {
        "foreign": {"file": file.name, "sha256": sha256(file.read_bytes()).hexdigest()},
        "config": told.model_dump(mode="json"),
        "seeds": [0],
    }
    described = describe_env(recipe)
    card = save_model(
        model, out, config=settings, env=described, step=model.num_timesteps, manifest=manifest
    )
    payload = {"model": str(out), "algo": algo, "env": env, "step": card.step}
    emit(payload, as_json=as_json, view=Text(f"{out}: {algo}, {card.step:,} steps of training"))


def settings_of(model: Any, algo: str) -> AgentConfig:
    """Return the settings that give the network of a foreign model."""
    arch = model.policy.net_arch
    parts = list(arch.values()) if isinstance(arch, dict) else [arch]
    names = {kind: name for name, kind in ACTIVATIONS.items()}
    activation = names.get(model.policy.activation_fn)
    if any(list(part) != list(parts[0]) for part in parts) or activation is None:
        raise ConfigError(
            "networks of this shape are not known here",
            where="policy",
            found=f"{arch}, {model.policy.activation_fn.__name__}",
            expected=f"one list of layers for all parts, and one of {', '.join(ACTIVATIONS)}",
        )
    said = {"net_arch": tuple(parts[0]), "activation": activation, "gamma": float(model.gamma)}
    return configure(CONFIGS[algo], said, where=f"a foreign {algo}")
