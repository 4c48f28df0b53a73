"""From a training to a verdict: the evaluation room trades the folds and judges them."""

from __future__ import annotations

from agent_gym.agents.echo import EchoConfig
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.protocol.forward import ForwardPlan
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.umc_walk import UmcPlan, UmcRun, walk_umc
from agent_gym.training.umc.trainer import UMCTrainer


def judge_walk(trainer: UMCTrainer, setting: Setting, draws: int, echoes: EchoConfig) -> UmcRun:
    """Trade the folds of a trained walk beside baselines, register the trials and judge.

    The evaluation teaches its own agents, as it does all others, and so cannot be shown agents that
    learned something else. The trainer's keeper gives it every slow fit that is done already.

    Args:
        trainer: Has trained, or will have after this: a fit that is not done is run, and kept.
        setting: Where trials are registered. One process: others would not know the keeper.
        draws: Random positions beside each arm.
        echoes: The crowd beside it.
    """
    config = trainer.config
    if config.walk is None or setting.jobs != 1:
        raise ConfigError(
            "only a walk forward can be judged, in one process",
            found="no folds" if config.walk is None else f"{setting.jobs} processes",
            remedy="Give walk, and jobs=1",
        )
    forward = ForwardPlan(walk=config.walk, config=config.backtest, seed=config.seed, draws=draws)
    plan = UmcPlan(params=config.params, forward=forward, echoes=echoes)
    with trainer.keeping():
        return walk_umc(trainer.bars, plan, setting)
