"""What else ``agent-gym train`` can do: prove exactness, print a schema, take in a foreign zip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent_gym.agents.sb3.config import CONFIGS
from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.model_words import model_door
from agent_gym.apps.cli.train_options import TrainJob, asked_config
from agent_gym.core.registry import unknown
from agent_gym.training.rl.config import BUDGET_S

PROOFS = "train_proofs"


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
    asked = model_door(PROOFS).Proof(steps=job.steps, kills=kills, seed=seed)
    model_door(PROOFS).verify(config, asked, as_json=as_json)


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
    model_door(PROOFS).speed(config, budget_s, as_json=as_json)


def schema(
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Of experiments instead of trainings.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, as it does anyway.")
    ] = True,
) -> None:
    """Print the JSON Schema of a training file, for editors that complete and check YAML."""
    model_door(PROOFS).schema(experiment)


@writes("a model in a safe format")
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
    model_door(PROOFS).unsafe_import_zip(file, algo, env, out, as_json=as_json)
