"""``agent-gym umc train``: UMC trained with checkpoints, on all bars or fold after fold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import Field

from agent_gym.apps.cli.backtest import FLAGS, request_words
from agent_gym.apps.cli.config_options import flag, with_options, words_of
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.evaluate_options import TRIALS
from agent_gym.apps.cli.output import emit
from agent_gym.apps.cli.read_options import with_request
from agent_gym.apps.cli.umc_backtest import account_of, forward_plan, read_bars
from agent_gym.apps.cli.umc_options import MindOptions, SourceJob, WalkJob, check_inputs
from agent_gym.apps.cli.umc_train_view import shown_training, trained_view
from agent_gym.apps.cli.workspace import (
    check_own_folder,
    check_target,
    check_writable,
    source_commit,
)
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config
from agent_gym.evaluation.backtest import BacktestConfig
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.results import staged
from agent_gym.evaluation.umc_walk import UmcRun, write_run
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import ReadRequest
from agent_gym.training.rl.folder_lock import LOCK
from agent_gym.training.umc import UMCTrainConfig, UMCTrained, UMCTrainer, judge_walk
from agent_gym.training.umc.checkpoints import EVERY_STEPS
from agent_gym.training.umc.run_file import RUN

WALK = "walk"
OF_WALK = ("train", "validation", "test", "purge", "embargo", "lockbox", "draws")
DEFAULTS = WalkJob()


class TrainJob(SourceJob):
    """What is learned from."""

    walk: bool = Field(
        default=False,
        description="one agent a fold, each going on from the one before, then traded and judged; "
        "else one agent that learns from all bars",
    )
    train: str = Field(
        default=DEFAULTS.train, description="with --walk: first training segment; it grows"
    )
    validation: str | None = Field(
        default=None, description="with --walk: segment by which the model is chosen again, or none"
    )
    test: str = Field(
        default=DEFAULTS.test, description="with --walk: test segment, and the step to the next"
    )
    purge: int = Field(
        default=DEFAULTS.purge, ge=0, description="with --walk: bars that a label reaches forward"
    )
    embargo: int = Field(
        default=DEFAULTS.embargo, ge=0, description="with --walk: bars that features remember"
    )
    lockbox: str | None = Field(
        default=None, description="with --walk: last stretch that is left alone, such as 60d"
    )
    draws: int = Field(
        default=DEFAULTS.draws,
        ge=1,
        le=100_000,
        description="with --walk: random positions with the same turnover",
    )


class TrainOutputs(Config):
    """Where to, and how it goes on after a stop."""

    out: Path | None = Field(
        default=None, description="folder of the training (default results/umc_train/NAME)"
    )
    resume: bool = Field(
        default=True, description="go on where it was stopped, to the bit; else begin anew"
    )
    checkpoint_every: int = Field(
        default=EVERY_STEPS, ge=1, description="steps between checkpoints; changes no number"
    )
    registry: Path | None = Field(
        default=None, description=f"with --walk: file of all trials (default results/{TRIALS})"
    )


@with_request
@with_options("config", BacktestConfig, "Costs, limits and risk", FLAGS)
@with_options("outputs", TrainOutputs, "What is written")
@with_options("mind", MindOptions, "The agent")
@with_options("job", TrainJob, "What is learned from")
@writes("a trained agent with its checkpoints")
def train(
    job: TrainJob,
    mind: MindOptions,
    outputs: TrainOutputs,
    config: BacktestConfig,
    request: ReadRequest,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train UMC with checkpoints: on all bars, or with --walk fold after fold, then judge it.

    What was stopped goes on where it was, to the bit; what is done is not done again.
    """
    _refuse_walk_options(job, mind, outputs)
    params, account = mind.params(), account_of(job, config)
    registry = TrialRegistry(outputs.registry or home() / TRIALS)
    out = outputs.out or home() / "umc_train" / _name(job)
    check_writable(out)
    check_own_folder(out, RUN, LOCK)
    if job.walk:
        check_target(registry.path, "--registry")
    bars = read_bars(job, request)
    check_inputs(tuple(params.get("inputs", ())), bars)
    bars, asked = _cut(job, bars, account, params)
    words = [*words_of(job), *words_of(mind), *words_of(config, FLAGS), *request_words(request)]
    command = ("agent-gym", "umc", "train", *words)
    with shown_training(out) as tell:
        trainer = UMCTrainer(
            bars, asked, out, tell, every_steps=outputs.checkpoint_every, command=command
        )
        if not outputs.resume:
            trainer.begin_anew()
        trained = trainer.train()
    run = None
    if job.walk:
        setting = Setting(registry, command=command, commit=source_commit())
        run = judge_walk(trainer, setting, job.draws, mind.echoes(job.seed))
        with staged(out / WALK) as stage:
            write_run(stage, run)
    view = trained_view(trained, run, registry.path)
    emit(_payload(trained, run, registry), as_json=as_json, view=view)


def _refuse_walk_options(job: TrainJob, mind: MindOptions, outputs: TrainOutputs) -> None:
    if job.walk:
        return
    said = [name for name in OF_WALK if name in job.model_fields_set]
    said += [name for name in ("echo_size",) if name in mind.model_fields_set]
    said += [name for name in ("registry",) if name in outputs.model_fields_set]
    if said:
        raise ConfigError(
            "these options go with --walk only",
            where="options of agent-gym umc train",
            found=", ".join(map(flag, said)),
            remedy="Add --walk, or leave them out",
        )


def _cut(
    job: TrainJob, bars: Bars, account: BacktestConfig, params: dict[str, Any]
) -> tuple[Bars, UMCTrainConfig]:
    """Return the bars before the lockbox, and what is trained on them."""
    if not job.walk:
        return bars, UMCTrainConfig(params=params, backtest=account, seed=job.seed)
    fields = set(WalkJob.model_fields) & set(TrainJob.model_fields)
    plan = forward_plan(WalkJob(**{name: getattr(job, name) for name in fields}), account, bars)
    seen = bars.rows(0, len(bars) - plan.lockbox)
    return seen, UMCTrainConfig(params=params, walk=plan.walk, backtest=account, seed=job.seed)


def _name(job: TrainJob) -> str:
    if job.data is not None:
        return job.data.stem
    return (job.market or "training").replace("/", "-")


def _payload(trained: UMCTrained, run: UmcRun | None, registry: TrialRegistry) -> dict[str, Any]:
    said = trained.as_dict() | {"timings": trained.timings(), "out": str(trained.folder)}
    if run is None:
        return said | {"verdict": None}
    return said | {"verdict": run.payload(), "registry": str(registry.path)}
