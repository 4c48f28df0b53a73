"""What else ``agent-gym train`` can do: prove exactness, print a schema, take in a foreign zip."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from agent_gym.agents.sb3.algorithms import ACTIVATIONS
from agent_gym.agents.sb3.artifact import save_model
from agent_gym.agents.sb3.config import CONFIGS, AgentConfig
from agent_gym.agents.sb3.foreign import unsafe_load_foreign_zip
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.output import EXIT_RUN, emit, screen, table
from agent_gym.apps.cli.train_options import TrainJob, asked_config
from agent_gym.apps.cli.train_view import say
from agent_gym.apps.cli.workspace import check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import configure, unknown
from agent_gym.envs.training_env import describe_env
from agent_gym.training.rl.calibration import BUDGET_S, calibrate
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment_config import ExperimentConfig
from agent_gym.training.rl.reproducibility import verify_reproducibility
from agent_gym.training.rl.schema import training_schema
from agent_gym.training.rl.setup import recipe_of

VERIFIED_STEPS = 10_000


@with_options("job", TrainJob, "What is trained")
def verify(
    job: TrainJob,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Setting by dotted key, such as agent.gamma=0.99."
        ),
    ] = None,
    kills: Annotated[int, typer.Option(min=1, max=100, help="How often it is killed.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Of the runs, and of the kills.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Prove that a run which is killed and goes on ends like one that was left alone.

    The same training runs unbroken, again in another process, and killed (SIGKILL) at random
    moments; the state of all that decides how training would go on is compared by its hash.
    The exit code is 4 if anything differs.
    """
    config = asked_config(job, pairs or ())
    report = verify_reproducibility(
        config, steps=job.steps or VERIFIED_STEPS, kills=kills, seed=seed, say=say
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


@with_options("job", TrainJob, "What is trained")
def speed(
    job: TrainJob,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Setting by dotted key, such as agent.gamma=0.99."
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--seconds", min=0.1, max=600.0, help="For each layout.")
    ] = BUDGET_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure how fast this machine trains, with other threads, environments and minibatches.

    Only threads change nothing but the speed; the rest also changes what is learned, so it is shown
    and not taken.
    """
    config = asked_config(job, pairs or ())
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


def schema(
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Of experiments instead of trainings.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, as it does anyway.")
    ] = True,
) -> None:
    """Print the JSON Schema of a training file, for editors that complete and check YAML."""
    found = ExperimentConfig.model_json_schema() if experiment else training_schema()
    screen.print(to_json(found), markup=False, highlight=False, soft_wrap=True)


def unsafe_import_zip(
    file: Annotated[Path, typer.Argument(metavar="ZIP", help="Zip of Stable-Baselines3.")],
    algo: Annotated[str, typer.Option(help="Algorithm: " + ", ".join(CONFIGS))],
    env: Annotated[str, typer.Option(help="Environment it was trained in, an id of Gymnasium.")],
    out: Annotated[Path, typer.Option(help="Folder of the model that is written.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """RUN WHATEVER CODE a zip of Stable-Baselines3 holds, and keep its model in a safe format.

    The format is a pickle: opening one is as trusting as running a program of the same sender.
    The statistics of a VecNormalize are not in it, so a model that needs them cannot come in.
    """
    if algo not in CONFIGS:
        raise unknown("algorithm", algo, tuple(CONFIGS))
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
