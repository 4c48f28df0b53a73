"""A training under way: one iteration after the other, which can be kept between any two."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.named_arrays import under
from agent_gym.core.seeds import Seeds
from agent_gym.training.marl.batch import Arrays, Batch
from agent_gym.training.marl.checkpoints import Checkpoint
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.looks import Look, look_at
from agent_gym.training.marl.records import CurveRow, Progress
from agent_gym.training.marl.worlds import MakeWorlds, contract_for


class Session:
    """Everything that changes while a team learns.

    Args:
        config: What is trained and how.
        make_worlds: Makes the environments.
    """

    def __init__(self, config: TeamTrainConfig, make_worlds: MakeWorlds) -> None:
        self.config = config
        self._seeds = Seeds(config.seed).child("marl")
        self._make = make_worlds
        worlds = make_worlds(config, config.n_envs)
        self._judges = make_worlds(config, config.evaluation.episodes)
        policy = TeamPolicy.create(
            config.network, contract_for(worlds, config.world.map), self._seeds.child("actor")
        )
        chunk = config.chunk_length
        self.learner = Learner(policy, worlds.contract.widths[1], config.learn, chunk, self._seeds)
        self.collector = Collector(
            worlds, config.n_steps, chunk, config.network.memory, self._seeds.child("play")
        )
        self.identity = worlds.get_state().values
        self.past: list[Batch] = []
        self.curve: list[CurveRow] = []
        self.iteration = self.env_steps = 0

    def iterate(self) -> Progress:
        """Play a window, learn from it, and look at the policy if it is time."""
        config = self.config
        batch, episodes = self.collector.collect(self.learner.policy)
        done = self.env_steps / config.env_steps
        learned = self.learner.learn([batch, *self.past], done)
        self.collector.critic_memory = learned.critic_memory
        if config.learn.reuse is not None:
            again = batch.again(config.learn.reuse.weight)
            self.past = [again, *self.past][: config.learn.reuse.iterations]
        before = self.env_steps
        self.env_steps += batch.env_steps
        self.iteration += 1
        look = None
        if self._crossed(before, config.evaluation.every) or self.env_steps >= config.env_steps:
            look = look_at(self.learner.policy, self._judges, self._seeds.child("looks"))
            self.curve.append(CurveRow.of(self.env_steps, look, episodes, learned.figures))
        return Progress(
            self.iteration, self.env_steps, config.env_steps, episodes, learned.figures, look
        )

    def _crossed(self, before: int, every: int) -> bool:
        return before // every < self.env_steps // every

    @property
    def good_enough(self) -> bool:
        """Return whether the last looks were all good enough to stop."""
        rule = self.config.stopping
        if rule is None or len(self.curve) < rule.looks:
            return False
        return all(row.win_rate >= rule.win_rate for row in self.curve[-rule.looks :])

    @property
    def over(self) -> bool:
        """Return whether nothing is left to do."""
        return self.env_steps >= self.config.env_steps or self.good_enough

    def judge(self) -> Look:
        """Look at the policy from fresh starts, which no look before has used."""
        worlds = self._make(self.config, self.config.evaluation.final_episodes)
        return look_at(self.learner.policy, worlds, self._seeds.child("final"))

    def state(self) -> Checkpoint:
        """Return all that decides how it goes on."""
        arrays: Arrays = {f"learner/{name}": a for name, a in self.learner.state().items()}
        played, values = self.collector.state()
        arrays |= {f"collector/{name}": array for name, array in played.items()}
        for i, batch in enumerate(self.past):
            arrays |= {f"past/{i}/{name}": array for name, array in batch.arrays().items()}
        kept: dict[str, Any] = {
            "collector": values,
            "past": [{"source": batch.source, "weight": batch.weight} for batch in self.past],
            "curve": [asdict(row) for row in self.curve],
            "iteration": self.iteration,
            "env_steps": self.env_steps,
        }
        return Checkpoint(arrays, kept)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on where another session of the same config stood."""
        arrays, values = checkpoint
        self.learner.restore(under("learner/", arrays))
        self.collector.restore(under("collector/", arrays), values["collector"])
        self.past = [
            Batch.of(under(f"past/{i}/", arrays), **about) for i, about in enumerate(values["past"])
        ]
        self.curve = [CurveRow(**row) for row in values["curve"]]
        self.iteration, self.env_steps = values["iteration"], values["env_steps"]
