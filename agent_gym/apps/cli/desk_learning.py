"""The work behind the commands of ``agent-gym desk`` that learn; reports are plain values."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

from agent_gym.agents.desk import RecentContext
from agent_gym.apps.cli.desk_options import LoopOptions, Memory, PlayOptions, must_exist
from agent_gym.apps.cli.workspace import source_commit
from agent_gym.core.errors import ConfigError
from agent_gym.markets.readers import ReadRequest
from agent_gym.training.desk import (
    ModelStore,
    ResearchEngine,
    RetrainingConfig,
    RetrainingLoop,
    TrainingModule,
)
from agent_gym.training.desk.play import BARS_FILE, DB_FILE, HORIZON, LOG_FOLDER, PlayConfig
from agent_gym.training.desk.play import play as play_desk


def analyze(memory: Memory, request: ReadRequest, window: str | None) -> dict[str, Any]:
    """Return what the desk did."""
    bars = memory.bars(request)
    engine = ResearchEngine(memory.context(), bars, horizon=memory.horizon)
    return engine.analyze_behavior(window).as_dict()


def train(memory: Memory, request: ReadRequest, now: float | None) -> dict[str, Any]:
    """Return how good an acceptor is that is trained now."""
    training = _training(memory, request)
    return training.train_model(training.prepare_dataset(now, memory.horizon)).as_dict()


def retrain(
    memory: Memory, request: ReadRequest, options: LoopOptions, root: Path
) -> dict[str, Any]:
    """Return what one run of the loop did."""
    config = RetrainingConfig(horizon=memory.horizon)
    loop = RetrainingLoop(_training(memory, request), config=config, store=root)
    return loop.run_retraining(options.now, options.reason, options.dry_run).as_dict()


def rollback(root: Path) -> str | None:
    """Put the champion before the present one back and return it, None if there was none."""
    if not root.is_dir():
        raise ConfigError(
            "no model has been kept here",
            where=str(root),
            expected="the folder of models that `agent-gym desk retrain` fills",
            remedy="Run `agent-gym desk retrain` first, or name the folder with --store",
        )
    return RetrainingLoop(TrainingModule(RecentContext()), store=root).rollback()


def play(out: Path, options: PlayOptions) -> dict[str, Any]:
    """Let a desk work and return what it did, with commands to try next."""
    champion = None
    if options.model_store is not None:
        must_exist(options.model_store)
        champion = ModelStore(options.model_store).champion()
    version = None if champion is None else champion.version
    config = PlayConfig(hours=options.hours, seed=options.seed)
    report = play_desk(out, config, champion, version).as_dict()
    return report | {"try": _next_steps(out, report["known_until"])}


def _next_steps(out: Path, now: float) -> list[str]:
    db, bars = quote(str(out / DB_FILE)), quote(str(out / BARS_FILE))
    read = f"--db {db} --data {bars} --horizon {HORIZON}"
    return [
        f"agent-gym desk analyze {read}",
        f"agent-gym desk train {read}",
        f"agent-gym desk retrain {read} --now {now:.0f} --store {quote(str(out / 'models'))}",
        f"agent-gym desk verify-log {quote(str(out / LOG_FOLDER))}",
    ]


def _training(memory: Memory, request: ReadRequest) -> TrainingModule:
    return TrainingModule(memory.context(), memory.bars(request), commit=source_commit())
