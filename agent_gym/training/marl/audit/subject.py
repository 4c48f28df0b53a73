"""What is audited: a training of a team, and the places where its code is plugged in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import BattleMap
from agent_gym.evaluation.battle import Player, Replay, Start, record, write_replay
from agent_gym.evaluation.marl import Comparison, TeamRun, compare_teams
from agent_gym.training.marl.amal import AMALAgent, MutualInformationEstimator
from agent_gym.training.marl.amal_config import AmalConfig, InformationKind
from agent_gym.training.marl.audit.spies import SpiedWorlds
from agent_gym.training.marl.batch import Arrays
from agent_gym.training.marl.checkpoints import Checkpoint
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.looks import Look, look_at
from agent_gym.training.marl.losses import PolicyLoss, PolicyTerms, policy_loss
from agent_gym.training.marl.mixing import Mixed, Mixer
from agent_gym.training.marl.records import Progress
from agent_gym.training.marl.runs import changed
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.study import Heads
from agent_gym.training.marl.worlds import MakeWorlds, TeamWorlds, battle_worlds

ITERATIONS = 2
NOT_MEANT = "No auxiliary rows are to be learned from (auxiliary_share or auxiliary_weight is 0)."
SMALL = {
    "world.map": "3m",
    "n_envs": 4,
    "n_steps": 60,
    "network.hidden": 16,
    "env_steps": 100_000,
    "evaluation.every": 1_000_000,
    "evaluation.episodes": 5,
}
SMALL_AMAL = {
    "amal.num_auxiliary_agents": 6,
    "amal.evolution_frequency": 1,
    "amal.cem_episodes": 0.0,
    "amal.cem_probes": 16,
    "amal.model.hidden": 32,
    "amal.model.batch": 128,
}
MANY = {"amal.auxiliary_share": 0.4, "amal.late_share": 0.4}
"""Sizes and rates alone: how things are learned stays as the config says."""


@dataclass(frozen=True, slots=True)
class Seams:
    """Where the code of a training is plugged in; a defect is planted by replacing one."""

    session: Callable[[TeamTrainConfig, MakeWorlds, Mixer | None], Session] = Session
    learner: type[Learner] = Learner
    policy_loss: Callable[[PolicyTerms, float, float], PolicyLoss] = policy_loss
    agent: Callable[[TeamTrainConfig, AmalConfig, MakeWorlds], AMALAgent] = AMALAgent
    estimator: Callable[[InformationKind, float], MutualInformationEstimator] = (
        MutualInformationEstimator
    )
    make_worlds: MakeWorlds = battle_worlds
    look: Callable[[TeamPolicy, TeamWorlds, Seeds], Look] = look_at
    save: Callable[[TeamPolicy, Path], Any] = TeamPolicy.save
    load: Callable[[Path], TeamPolicy] = TeamPolicy.load
    compare: Callable[[Sequence[TeamRun]], Comparison] = compare_teams
    record: Callable[[Player, BattleMap, Start], Replay] = record
    write: Callable[[Path, Replay], None] = write_replay


class Watched(NamedTuple):
    """A session whose worlds are watched; ``agent`` and ``auxiliary`` are those of AMAL."""

    session: Session
    agent: AMALAgent | None
    primary: SpiedWorlds
    auxiliary: SpiedWorlds | None


@dataclass(frozen=True, slots=True)
class Training:
    """A small training that is over.

    Attributes:
        watched: The session as it ended.
        windows: What was learned from, iteration by iteration.
        told: Progress of every iteration.
        shifts: Of the auxiliary teams while they played, iteration by iteration.
        agent_state: AMAL as it was before the last update.
        before: All that was kept before the last iteration.
        after: The same at the end.
    """

    watched: Watched
    windows: tuple[Mixed, ...]
    told: tuple[Progress, ...]
    shifts: tuple[FloatArray, ...]
    agent_state: tuple[Arrays, dict[str, Any]] | None
    before: Checkpoint
    after: Checkpoint


@dataclass(frozen=True)
class TeamSubject:
    """A training of a team, made small, that can be begun anew at will.

    Attributes:
        name: What the report calls it.
        config: The training as it is meant; sizes are made small for the audit.
        seams: The code that it is made of.
    """

    name: str
    config: TeamTrainConfig
    seams: Seams = field(default_factory=Seams)

    @cached_property
    def small(self) -> TeamTrainConfig:
        """Return the config of the small training."""
        sizes, amal = dict(SMALL), self.config.amal
        if amal is not None:
            sizes |= SMALL_AMAL | (MANY if amal.auxiliary_share > 0.0 else {})
        return changed(self.config, sizes, where=self.name)

    @property
    def amal(self) -> AmalConfig:
        """Return the settings of AMAL; whoever asks knows that there are some."""
        if self.small.amal is None:
            raise TypeError(f"{self.name} is no training of AMAL")
        return self.small.amal

    def agent(
        self, config: TeamTrainConfig | None = None, make_worlds: MakeWorlds | None = None
    ) -> AMALAgent:
        """Return a fresh AMAL, with another config or in other worlds if they are given."""
        chosen = config or self.small
        amal = chosen.amal or self.amal
        made = self.seams.agent(chosen, amal, make_worlds or self.seams.make_worlds)
        made.estimator = self.seams.estimator(amal.information, amal.variance_floor)
        return made

    def session(self) -> Watched:
        """Return a fresh session in worlds that are watched."""
        spied: list[SpiedWorlds] = []

        def spying(config: TeamTrainConfig, n_envs: int) -> TeamWorlds:
            spied.append(SpiedWorlds(self.seams.make_worlds(config, n_envs)))
            return spied[-1]

        agent = None if self.small.amal is None else self.agent(make_worlds=spying)
        first = len(spied)
        made = self.seams.session(self.small, spying, agent)
        if not isinstance(made.learner, self.seams.learner):
            made.learner = self._in_place_of(made)
        return Watched(made, agent, spied[first], spied[0] if first else None)

    def _in_place_of(self, session: Session) -> Learner:
        """Return the learner of the seams with the first weights of a session's own."""
        own = session.learner
        made = self.seams.learner(
            own.policy,
            session.collector.worlds.contract.widths[1],
            own.config,
            self.small.chunk_length,
            Seeds(self.small.seed).child("marl"),
            Heads(tuple(own.parts.norms), own.parts.endless),
        )
        made.restore(own.state())
        return made

    @cached_property
    def training(self) -> Training:
        """Return a training of a few iterations."""
        watched = self.session()
        session, agent = watched.session, watched.agent
        windows, told, shifts = [], [], []
        before, kept = session.state(), None
        for i in range(ITERATIONS):
            if i == ITERATIONS - 1:
                before = session.state()
            windows.append(session.play())
            if agent is not None:
                shifts.append(agent.auxiliaries.shifts.copy())
                kept = agent.state()
            told.append(session.learn(windows[-1]))
        return Training(
            watched, tuple(windows), tuple(told), tuple(shifts), kept, before, session.state()
        )
