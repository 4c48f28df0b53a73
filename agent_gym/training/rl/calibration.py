"""How fast this machine trains a config, measured for a few layouts; nothing is chosen silently.

Threads change only the speed. The number of environments and the size of a minibatch also change
what is learnt, so layouts that differ in them are shown, and taken only by who asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from agent_gym.agents.sb3.config import OnPolicyConfig
from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.registry import Config
from agent_gym.training.rl.config import BUDGET_S, TrainerConfig
from agent_gym.training.rl.loop import Loop
from agent_gym.training.rl.setup import make_setup
from agent_gym.training.threads import torch_threads

THREADS = (1, 2)
FACTORS = (0.5, 1.0, 2.0, 4.0)
LEAST_ITERATIONS = 2


class Layout(Config):
    """One way to lay a run out, and how fast it was."""

    threads: int
    n_envs: int
    batch_size: int | None = Field(description="of a minibatch; null where there is none")
    steps_per_s: float
    learns_alike: bool = Field(description="whether only the threads differ from the config")


class Calibration(Config):
    """All layouts that were tried, fastest first, and the two that are worth knowing."""

    layouts: tuple[Layout, ...] = Field(min_length=1)
    as_configured: Layout
    recommended: Layout = Field(description="the fastest of those that learn alike")

    @property
    def fastest(self) -> Layout:
        """Return the fastest of all; it may learn otherwise."""
        return self.layouts[0]


def calibrate(
    config: TrainerConfig,
    *,
    budget_s: float = BUDGET_S,
    say: Callable[[str], None] | None = None,
    clock: Clock | None = None,
) -> Calibration:
    """Train for a moment in each layout and return steps per second.

    Args:
        config: What is to be trained.
        budget_s: Wall seconds for each layout, a warm-up of one iteration apart.
        say: Who is told of each.
        clock: Measures.
    """
    measured = []
    for candidate in candidates(config):
        speed = _speed(candidate, budget_s, clock or SystemClock())
        layout = _layout(candidate, config, speed)
        measured.append(layout)
        if say is not None:
            say(
                f"threads {layout.threads}, n_envs {layout.n_envs}, "
                f"batch_size {layout.batch_size}: {speed:,.0f} steps/s"
            )
    alike = [layout for layout in measured if layout.learns_alike]
    return Calibration(
        layouts=tuple(sorted(measured, key=lambda layout: -layout.steps_per_s)),
        as_configured=next(each for each in alike if each.threads == config.threads),
        recommended=max(alike, key=lambda layout: layout.steps_per_s),
    )


def candidates(config: TrainerConfig) -> list[TrainerConfig]:
    """Return the layouts that are tried: each thing changed by itself, the config's own first."""
    agent = config.agent.model_dump()
    batch = agent.get("batch_size")
    ways: list[dict[str, Any]] = [{}]
    ways += [{"threads": threads} for threads in THREADS]
    for factor in FACTORS:
        n_envs = max(1, round(config.n_envs * factor))
        ways.append({"n_envs": n_envs})
        if batch is not None:
            ways.append({"agent": agent | {"batch_size": max(2, round(batch * factor))}})
    found: dict[str, TrainerConfig] = {}
    for way in ways:
        made = _made(config, way)
        if made is not None:
            found.setdefault(made.model_dump_json(), made)
    return list(found.values())


def _made(config: TrainerConfig, way: dict[str, Any]) -> TrainerConfig | None:
    """Return a config with something changed; None if its batches do not divide its rollouts."""
    try:
        return TrainerConfig.model_validate(config.model_dump() | way)
    except ValueError:
        return None


def _speed(config: TrainerConfig, budget_s: float, clock: Clock) -> float:
    with torch_threads(config.threads):
        setup = make_setup(_learning_at_once(config), seed=0)
        try:
            loop = Loop(setup.model, config.steps)
            loop.iterate()
            start, began_s = loop.step, clock.monotonic_s()
            count, spent_s = 0, 0.0
            while count < LEAST_ITERATIONS or spent_s < budget_s:
                loop.iterate()
                count, spent_s = count + 1, clock.monotonic_s() - began_s
            return (loop.step - start) / spent_s
        finally:
            setup.env.close()


def _learning_at_once(config: TrainerConfig) -> TrainerConfig:
    """Return a config that learns from its first steps on, as the run does later."""
    if isinstance(config.agent, OnPolicyConfig):
        return config
    changes = {"learning_starts": 0, "buffer_size": 10_000}
    return config.model_copy(update={"agent": config.agent.model_copy(update=changes)})


def _layout(candidate: TrainerConfig, config: TrainerConfig, speed: float) -> Layout:
    return Layout(
        threads=candidate.threads,
        n_envs=candidate.n_envs,
        batch_size=getattr(candidate.agent, "batch_size", None),
        steps_per_s=speed,
        learns_alike=candidate.model_copy(update={"threads": config.threads}) == config,
    )
