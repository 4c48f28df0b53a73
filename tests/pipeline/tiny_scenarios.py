"""Tiny scenarios, a desk and an agent that tests of the nightly play; registered on import."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import ClassVar

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject

LEVEL = 10.0
DRIFT = 0.0  # a change that no hash of code knows of


class TinyConfig(Config):
    level: float = LEVEL
    fail: str = "none"
    fail_from: int = 0
    """Seeds whose rank modulo 4 is at least this fail in the way that ``fail`` names."""


@register("desk", "tiny/desk", TinyConfig)
def tiny_desk(config: TinyConfig) -> TinyConfig:
    return config


class TinyScenario(Scenario):
    version: ClassVar[int] = 1
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric(
            name="gain",
            unit="1",
            direction="up",
            meaning="more is better",
            tolerance=Tolerance(rel=0.02, abs=0.01),
        ),
        Metric(
            name="accidents", unit="n", direction="down", meaning="must not be", must_be_zero=True
        ),
        Metric(name="maybe", unit="1", direction="up", meaning="often unknown", gates=False),
    )

    def __init__(self, config: TinyConfig) -> None:
        self._config = config

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        self._fail(seeds.root)
        luck = float(seeds.child("market").rng().normal())
        level = self._config.level + float(subject.desk.params.get("level", LEVEL)) - LEVEL
        level += DRIFT
        level *= 0.5 if subject.plant is not None else 1.0
        gain = level + 0.1 * luck
        said = f"{gain!r} {seeds.root}"
        accidents = 1.0 if self._config.fail == "accident" else 0.0
        metrics = {"gain": gain, "accidents": accidents, "maybe": None}
        if self._config.fail == "nan":
            metrics["gain"] = float("nan")
        if self._config.fail == "unsteady":
            said += str(SystemClock().now_ns())
        return Episode(
            metrics=metrics,
            trajectory_hash=blake2b(said.encode(), digest_size=16).hexdigest(),
            events=3,
            notes=("played",),
        )

    def _fail(self, seed: int) -> None:
        if seed % 4 < self._config.fail_from:
            return
        if self._config.fail == "raise":
            raise ValueError("this scenario raises")
        if self._config.fail == "exit":
            os._exit(7)
        if self._config.fail == "hang":
            SystemClock().sleep_s(600)
        if self._config.fail == "ctrl-c":
            raise KeyboardInterrupt


@register("scenario", "tiny", TinyConfig)
def tiny(config: TinyConfig) -> TinyScenario:
    return TinyScenario(config)
