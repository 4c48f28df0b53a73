"""A training with every probe on, and a verdict on each idea: is it alive?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import write_json
from agent_gym.core.seeds import Seeds
from agent_gym.training.marl.amal.agent import INFORMATION, amal_for
from agent_gym.training.marl.amal.canary import canary, symmetric, twins_of
from agent_gym.training.marl.amal.probes import (
    NoiseProbe,
    Place,
    as_if_fresh,
    cosine,
    gradient,
    returns_anew,
    sight,
)
from agent_gym.training.marl.amal.sign_test import signs
from agent_gym.training.marl.amal.transitions import transitions_of
from agent_gym.training.marl.batch import TEAM
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.mixing import Mixed
from agent_gym.training.marl.records import Progress
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.study import study
from agent_gym.training.marl.worlds import MakeWorlds, battle_worlds
from agent_gym.training.threads import torch_threads

REPORT = "diagnosis.json"
EPISODES_ANEW = 32
EARLY = 20
"""Iterations that are early: where auxiliary teams should see more than the primary one."""
CANARY_EVERY = 10
BATTLES_SEEN = 8
"""By each auxiliary team, to see how widely it spreads."""


@dataclass
class Series:
    """What the probes of every iteration found."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float | None) -> None:
        """Take in a value, unless there is none."""
        if value is not None:
            self.found.setdefault(name, []).append(float(value))

    def __getitem__(self, name: str) -> list[float]:
        return self.found.get(name, [])


def diagnose(
    config: TeamTrainConfig,
    folder: Path,
    listener: Callable[[Progress], None] | None = None,
    make_worlds: MakeWorlds = battle_worlds,
) -> dict[str, Any]:
    """Train with every probe on; return each figure with its bound and whether it keeps it.

    Probes play battles of their own, which count nowhere, and change no number of the training.

    Args:
        config: A training of AMAL.
        folder: Where ``diagnosis.json`` goes.
        listener: Is told of every iteration.
        make_worlds: Makes the environments.
    """
    with torch_threads(1), threadpool_limits(limits=1):
        examined = _Examination(config, make_worlds)
        while not examined.session.over:
            progress = examined.iterate()
            if listener is not None:
                listener(progress)
        report = examined.report()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / REPORT, report)
    return report


class _Examination:
    """A session, its agent, and what the probes found so far."""

    def __init__(self, config: TeamTrainConfig, make_worlds: MakeWorlds) -> None:
        agent = amal_for(config, make_worlds)
        if agent is None or not agent.heads or agent.config.auxiliary_share == 0.0:
            raise ConfigError(
                "only a training of AMAL with a bonus and auxiliary teams can be examined",
                where="amal",
                expected="lambda_info and auxiliary_share above 0",
            )
        self.config, self.agent, self._make = config, agent, make_worlds
        self.session = Session(config, make_worlds, agent)
        self.series = Series()
        self._seeds = Seeds(config.seed).child("marl", "diagnosis")
        self._noise = NoiseProbe(agent, config.n_envs, self._seeds.child("noise"))

    def iterate(self) -> Progress:
        """Do one iteration with the probes around it."""
        before = self.agent.auxiliaries.search.generation
        mixed = self.session.play()
        self._around_model(mixed)
        ratios = self._before_learning(mixed)
        progress = self.session.learn(mixed)
        self._after_learning(mixed, ratios)
        if self.agent.auxiliaries.search.generation > before:
            self._anew()
        return progress

    def _around_model(self, mixed: Mixed) -> None:
        agent, i = self.agent, self.session.iteration
        rows = transitions_of(mixed.fresh, agent.core)
        self._noise.take_in(rows)
        self.series.add("least_information", float(agent.information(mixed.fresh).min()))
        if len(agent.buffer.auxiliary) and i % CANARY_EVERY in (0, 1):
            for name, config in (("canary", self.config), ("forged", symmetric(self.config))):
                seeds = self._seeds.child(name, i)
                self.series.add(name, canary(twins_of(agent, config), self._make, mixed, seeds))
        if i < EARLY and mixed.others:
            self._sight(mixed.policy)

    def _sight(self, policy: TeamPolicy) -> None:
        """Compare which states both kinds of teams see, from the same starts."""
        auxiliaries = self.agent.auxiliaries
        crowd = auxiliaries.space.crowd(policy, auxiliaries.shifts)
        place = Place(self.config, self._make, crowd.n_teams * BATTLES_SEEN)
        seeds = self._seeds.child("sight", self.session.iteration)
        found = sight(crowd, policy, place, self.agent.core, seeds)
        self.series.add("coverage", found.coverage)
        self.series.add("novelty", found.novelty)

    def _before_learning(self, mixed: Mixed) -> dict[str, Any]:
        """Return the ratios of every batch; compare gradients and spreads of advantages."""
        learner, chunk = self.session.learner, self.config.chunk_length
        shares = dict(mixed.shares)
        ratios: dict[str, Any] = {}
        for batch in (mixed.fresh, *mixed.others):
            rows = study(batch, learner.parts, self.config.learn, chunk).rows
            ratios[batch.source] = rows
        rows = ratios[mixed.fresh.source]
        ours, bonus = rows.advantages[TEAM][rows.used], rows.advantages[INFORMATION][rows.used]
        scale = shares[INFORMATION] * ours.std() / max(float(bonus.std()), 1e-8)
        if shares[INFORMATION] > 0.0:
            self.series.add("bonus_ratio", float((scale * bonus).std() / max(ours.std(), 1e-8)))
        if mixed.others:
            one, other = (
                gradient(learner, [as_if_fresh(each)], shares)
                for each in (mixed.fresh, mixed.others[0])
            )
            self.series.add("cosine", cosine(one, other))
        return ratios

    def _after_learning(self, mixed: Mixed, ratios: Mapping[str, Any]) -> None:
        learner, chunk = self.session.learner, self.config.chunk_length
        for batch in (mixed.fresh, *mixed.others):
            then = ratios[batch.source]
            now = study(batch, learner.parts, self.config.learn, chunk).rows.ratios
            reach = self.config.learn.clip * np.minimum(then.ratios, 1.0)
            clipped = np.abs(now - then.ratios) > reach
            self.series.add(f"clip/{batch.source}", float(clipped[then.used].mean()))

    def _anew(self) -> None:
        """Play the generation that has just ended once more, in battles it was not chosen by."""
        judged = self.agent.auxiliaries.judged
        if judged is None:
            return
        crowd = self.agent.auxiliaries.space.crowd(self.session.learner.policy, judged.shifts)
        seeds = self._seeds.child("anew", self.agent.auxiliaries.search.generation)
        found = returns_anew(crowd, self.config, self._make, EPISODES_ANEW, seeds)
        self.series.add("elite_gain", float(found[judged.elites].mean() - found.mean()))

    def report(self) -> dict[str, Any]:
        """Return every figure with its bound, and the series behind them."""
        told = [each.as_dict() for each in self.session.told]
        return {
            "kind": "diagnosis of AMAL",
            "config": self.config.model_dump(mode="json"),
            "env_steps": self.session.env_steps,
            "figures": figures(told, self.series, self._noise.shares),
            "iterations": told,
            "series": self.series.found | {"noise_share": self._noise.shares},
            "curve": [row.as_dict() for row in self.session.curve],
        }


def figures(
    told: list[dict[str, Any]], series: Series, noise: list[float]
) -> dict[str, dict[str, Any]]:
    """Return the verdicts: a value, the bounds it must keep, in words, and whether it does."""
    start = max((row["information"] for row in told[1:5]), default=0.0)
    last = _mean([row["information"] for row in told[-5:]])
    ratio = series["bonus_ratio"]
    gains = series["elite_gain"]
    r2 = [row["model_r2"] for row in told if row["model_r2"] is not None]
    made = {
        "leaks": _figure(max(row["leaks"] for row in told), high=0),
        "canary": _figure(_largest(series["canary"]), high=0),
        "canary_notices_forgery": _figure(_least(series["forged"]), low=1),
        "model_r2": _figure(_mean(r2[-5:]), low=0.5),
        "information_start": _figure(start, low=0.05),
        "information_fall": _figure(
            1.0 - last / start if start and last is not None else None, low=0.6
        ),
        "information_least": _figure(_least(series["least_information"]), low=0.0),
        "calibration": _figure(_mean(_column(told, "calibration")), low=0.2),
        "noise_share": _figure(_mean(noise[-5:]), high=0.1),
        "bonus_ratio": _figure(ratio[0] if ratio else None, low=0.02, high=0.5),
        "bonus_ratio_fall": _figure(1.0 - ratio[-1] / ratio[0] if ratio else None, low=0.0),
        "sign_test": _figure(float(np.mean(signs())), low=1.0),
        "cem_kl": _figure(_middle(_column(told, "cem_kl")), low=0.02, high=0.5),
        "cem_jsd": _figure(_mean(_column(told, "cem_jsd")), low=0.01),
        "elite_gain": _figure(_mean(gains), low=0.0),
        "novelty_gain": _figure(_mean(series["novelty"]), low=0.0),
        "coverage_gain": _figure(_mean(series["coverage"]), low=0.0),
        "ess_auxiliary": _figure(_mean(_column(told, "ess")), low=0.3),
        "used_auxiliary": _figure(_mean(_column(told, "used")), low=0.3),
        "gradient_cosine": _figure(_mean(series["cosine"]), low=0.0),
    }
    for source in ("fresh", "auxiliary"):
        made[f"clip_{source}"] = _figure(_mean(series[f"clip/{source}"]), high=0.5)
    return made


def _figure(
    value: float | None, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    """Return a value with its bounds; one that was never seen keeps none."""
    passed = value is not None and (low is None or value >= low) and (high is None or value <= high)
    words = [
        f"at least {low:g}" if low is not None else "",
        f"at most {high:g}" if high is not None else "",
    ]
    bound = " and ".join(filter(None, words))
    return {"value": value, "low": low, "high": high, "bound": bound, "passed": passed}


def _column(told: list[dict[str, Any]], name: str) -> list[float]:
    return [row[name] for row in told if row[name] is not None]


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _middle(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


def _least(values: list[float]) -> float | None:
    return min(values, default=None)


def _largest(values: list[float]) -> float | None:
    return max(values, default=None)
