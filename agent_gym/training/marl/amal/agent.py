"""AMAL: what it adds to the training of a team, in the order of one iteration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.named_arrays import under
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.auxiliaries import Auxiliaries, Probes
from agent_gym.training.marl.amal.bonus import Bonus
from agent_gym.training.marl.amal.buffers import AsymmetricReplayBuffer, AuxBuffer, PrimaryBuffer
from agent_gym.training.marl.amal.distillation import Distillation
from agent_gym.training.marl.amal.headway import Headway
from agent_gym.training.marl.amal.information import MutualInformationEstimator
from agent_gym.training.marl.amal.transitions import core_features, inputs_of, transitions_of
from agent_gym.training.marl.amal.world_model import Quality, WorldModel
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.amal_figures import AmalFigures
from agent_gym.training.marl.batch import AUXILIARY, Arrays, Batch
from agent_gym.training.marl.collection import Episodes
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import LearnFigures
from agent_gym.training.marl.mixing import Mixed, alone
from agent_gym.training.marl.worlds import MakeWorlds, contract_for

INFORMATION = "information"
"""The reward for information, and the value head that expects it."""


def amal_for(config: TeamTrainConfig, make_worlds: MakeWorlds) -> AMALAgent | None:
    """Return what joins the training of a config; None if it names no AMAL."""
    return None if config.amal is None else AMALAgent(config, config.amal, make_worlds)


class AMALAgent:
    """A model of the world, the bonus that it pays, and auxiliary teams. Implements Mixer.

    The primary team is the policy that the session trains; greedy looks ask it alone.

    Args:
        config: The training it joins.
        amal: What it does there.
        make_worlds: Makes environments for auxiliary teams.
    """

    def __init__(self, config: TeamTrainConfig, amal: AmalConfig, make_worlds: MakeWorlds) -> None:
        self.config = amal
        seeds = Seeds(config.seed).child("marl", "amal")
        worlds = make_worlds(config, amal.num_auxiliary_agents)
        contract = worlds.contract
        self.core, self.state_width = core_features(contract), contract.widths[1]
        inputs = inputs_of(contract, worlds.n_agents)
        self.model = WorldModel(inputs, len(self.core), amal.model, seeds.child("world_model"))
        self.estimator = MutualInformationEstimator(amal.information, amal.variance_floor)
        self.distillation = (
            Distillation(len(self.core), amal.model, seeds.child("distillation"))
            if amal.information == "distillation"
            else None
        )
        self.bonus = Bonus(amal)
        self.headway = Headway(amal.least_headway)
        self.buffer = AsymmetricReplayBuffer(
            PrimaryBuffer(amal.model.window, amal.model.held_out_every, config.n_envs), AuxBuffer()
        )
        policy = TeamPolicy.create(config.network, contract_for(worlds, config.world.map), seeds)
        self.auxiliaries = Auxiliaries(
            amal, worlds, policy, config.chunk_length, seeds.child("auxiliaries")
        )
        self._seeds, self._primary_steps = seeds, 0
        self._said: tuple[float, float | None] = 0.0, None
        self._quality = Quality(None, None, 0)
        self.probes: Probes | None = None

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the value heads it needs: none, if nothing is paid for information."""
        return (INFORMATION,) if self.config.lambda_info > 0.0 else ()

    @property
    def endless(self) -> frozenset[str]:
        """Return the rewards for which the end of an episode is no end."""
        return frozenset() if self.config.episodic else frozenset(self.heads)

    def mix(self, batch: Batch, episodes: Episodes, policy: TeamPolicy) -> Mixed:
        """Let auxiliary teams play, pay for information, and let the model learn."""
        self.probes = self._probes(batch)
        self.headway.take_in(episodes.mean_return)
        auxiliary = self._play(batch, policy)
        said = self.information(batch)
        self.bonus.take_in(said.ravel(), episodes.win_rate)
        mixed = replace(
            alone(self._paid(batch, said), episodes, policy),
            others=() if auxiliary is None else self._to_learn(auxiliary),
            shares={name: self.bonus.weight for name in self.heads},
            floors={AUXILIARY: self.config.min_ess},
            env_steps=batch.env_steps + (0 if auxiliary is None else auxiliary.env_steps),
        )
        self._primary_steps += batch.env_steps
        self.learn_world(batch, said)
        return mixed

    def information(self, batch: Batch) -> FloatArray:
        """Return what every step of a window says, ``[T, E]``; the model learns nothing by it."""
        rows = transitions_of(batch, self.core)
        if self.distillation is not None:
            return self.distillation.novelty(rows).reshape(batch.ended.shape)
        return self.estimator(self.model.forecast(rows)).reshape(batch.ended.shape)

    def _play(self, batch: Batch, policy: TeamPolicy) -> Batch | None:
        config, auxiliaries = self.config, self.auxiliaries
        steps = auxiliaries.grant(batch.env_steps, self._wanted_share)
        if not steps or self.probes is None:
            return None
        played = auxiliaries.play(policy, self.probes, steps)
        said = self.information(played)
        auxiliaries.score(played, said)
        self.buffer.auxiliary.add(transitions_of(played, self.core))
        return self._paid(replace(played, weight=config.auxiliary_weight), said)

    @property
    def _wanted_share(self) -> float:
        """Return the share of auxiliary steps: most while the team is stuck, none once it wins."""
        config, win_rate = self.config, self.bonus.win_rate
        if self.headway.stuck and win_rate <= config.late_win_rate:
            return config.auxiliary_share
        return config.late_share * (1.0 - win_rate)

    def _to_learn(self, auxiliary: Batch) -> tuple[Batch, ...]:
        return (auxiliary,) if auxiliary.weight > 0.0 else ()

    def _paid(self, batch: Batch, said: FloatArray) -> Batch:
        return batch.paid(INFORMATION, self.bonus.paid(said)) if self.heads else batch

    def learn_world(self, batch: Batch, said: FloatArray) -> None:
        """Let the model learn from the primary stream, and see what that took off its surprise."""
        rows = transitions_of(batch, self.core)
        self.buffer.primary.add(rows)
        if self.config.model.symmetric and len(self.buffer.auxiliary):
            self.buffer.primary.forge(self.buffer.auxiliary.rows())
        floor, went_on = self.config.variance_floor, ~rows.ended
        before = self.model.forecast(rows).surprise(floor)
        view = self.buffer.primary.view()
        self.model.learn(view)
        if self.distillation is not None:
            self.distillation.learn(view)
        fell = before - self.model.forecast(rows).surprise(floor)
        self._quality = self.model.quality(view)
        calibration = rank_correlation(said.ravel()[went_on], fell[went_on])
        self._said = self._saturated(said), calibration

    def _saturated(self, said: FloatArray) -> float:
        most = np.log(self.config.model.heads)
        return float((said >= most - 1e-9).mean())

    def _probes(self, batch: Batch) -> Probes:
        """Return some moments of the primary window."""
        rng = self._seeds.child("probes", self.bonus.iteration).rng()
        t, e = (rng.integers(size, size=self.config.cem_probes) for size in batch.ended.shape)
        return Probes(batch.observations[t, e], batch.legal[t, e], batch.alive[t, e])

    def learned(self, figures: LearnFigures, policy: TeamPolicy, env_steps: int) -> AmalFigures:
        """Let a generation end if it is time, and tell how the iteration went."""
        told = self._figures(figures, env_steps)
        if self.probes is not None and self.auxiliaries.grow_older(policy, self.probes):
            self.buffer.auxiliary.clear()
        return told

    def _figures(self, figures: LearnFigures, env_steps: int) -> AmalFigures:
        auxiliaries, bonus = self.auxiliaries, self.bonus
        saturated, calibration = self._said
        played, last = auxiliaries.steps > 0, auxiliaries.last
        return AmalFigures(
            iteration=bonus.iteration,
            env_steps=env_steps,
            leaks=self.buffer.primary.view().leaks,
            model_r2=self._quality.r2,
            model_nll=self._quality.nll,
            information=bonus.mean,
            information_ratio=bonus.mean / bonus.reference if bonus.reference > 0.0 else None,
            saturated=saturated,
            calibration=calibration,
            lambda_info=bonus.weight,
            auxiliary_share=auxiliaries.steps / (auxiliaries.steps + self._primary_steps),
            cem_generation=auxiliaries.search.generation if played else None,
            cem_kl=auxiliaries.kl if played else None,
            cem_jsd=auxiliaries.jsd if last is not None else None,
            cem_pulled_back=auxiliaries.pulled_back if played else None,
            cem_return=None if last is None else last.mean_return,
            cem_elite_gain=None if last is None else last.elite_gain,
            ess=figures.ess.get(AUXILIARY),
            used=figures.used_by.get(AUXILIARY),
        )

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """Return all that decides how it goes on: model, scales, buffers, search and worlds."""
        arrays = {f"model/{name}": array for name, array in self.model.state().items()}
        arrays |= {f"bonus/{name}": array for name, array in self.bonus.state().items()}
        arrays |= {f"headway/{name}": array for name, array in self.headway.state().items()}
        if self.distillation is not None:
            kept = self.distillation.state()
            arrays |= {f"distillation/{name}": array for name, array in kept.items()}
        values: dict[str, Any] = {"primary_steps": self._primary_steps}
        for name, part in self._parts():
            kept, values[name] = part.state()
            arrays |= {f"{name}/{key}": array for key, array in kept.items()}
        return arrays, values

    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Go on where another one stood."""
        self.model.restore(under("model/", arrays))
        self.bonus.restore(under("bonus/", arrays))
        self.headway.restore(under("headway/", arrays))
        if self.distillation is not None:
            self.distillation.restore(under("distillation/", arrays))
        self._primary_steps = values["primary_steps"]
        for name, part in self._parts():
            part.restore(under(f"{name}/", arrays), values[name])

    def _parts(self) -> tuple[tuple[str, PrimaryBuffer | AuxBuffer | Auxiliaries], ...]:
        return (
            ("primary", self.buffer.primary),
            ("auxiliary", self.buffer.auxiliary),
            ("auxiliaries", self.auxiliaries),
        )


def rank_correlation(one: FloatArray, other: FloatArray) -> float | None:
    """Return Spearman's correlation; None if one of them does not vary, or there is none."""
    if not one.size or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return None
    return float(spearmanr(one, other).statistic)
