"""A training under way: one iteration after the other, which can be kept between any two."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.named_arrays import under
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.training.marl.amal_figures import AmalFigures
from agent_gym.training.marl.batch import TEAM, Arrays, Batch
from agent_gym.training.marl.best import BestTeam, best_of, better
from agent_gym.training.marl.checkpoints import Checkpoint
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner, LearnFigures
from agent_gym.training.marl.looks import Look, look_at
from agent_gym.training.marl.mean import MeanTeam
from agent_gym.training.marl.mixing import Mixed, Mixer, alone
from agent_gym.training.marl.records import CurveRow, Progress
from agent_gym.training.marl.study import TEAM_ALONE, Heads
from agent_gym.training.marl.worlds import MakeWorlds, contract_for


class Session:
    """Everything that changes while a team learns.

    Args:
        config: What is trained and how.
        make_worlds: Makes the environments.
        mixer: What joins the training, if the config names something.
    """

    def __init__(
        self, config: TeamTrainConfig, make_worlds: MakeWorlds, mixer: Mixer | None = None
    ) -> None:
        if (config.amal is None) is not (mixer is None):
            raise ConfigError(
                "a session of AMAL needs what amal_for() makes of its config, and no other does",
                where="amal",
                found=mixer,
            )
        self.config, self.mixer = config, mixer
        self._seeds = Seeds(config.seed).child("marl")
        self._make = make_worlds
        worlds = make_worlds(config, config.n_envs)
        self._judges = make_worlds(config, config.evaluation.episodes)
        policy = TeamPolicy.create(
            config.network, contract_for(worlds, config.world.map), self._seeds.child("actor")
        )
        chunk = config.chunk_length
        self.learner = Learner(
            policy,
            worlds.contract.widths[1],
            config.learn,
            chunk,
            self._seeds,
            TEAM_ALONE if mixer is None else Heads((TEAM, *mixer.heads), mixer.endless),
        )
        self.collector = Collector(
            worlds, config.n_steps, chunk, config.network.memory, self._seeds.child("play")
        )
        self.identity = worlds.get_state().values
        self.past: list[Batch] = []
        self.curve: list[CurveRow] = []
        self.told: list[AmalFigures] = []
        self.best: BestTeam | None = None
        self.mean = MeanTeam(config.evaluation.mean_over)
        self.iteration = self.env_steps = 0

    def iterate(self) -> Progress:
        """Play a window, learn from it, and look at the policy if it is time."""
        return self.learn(self.play())

    def play(self) -> Mixed:
        """Play a window, and whatever else is to be learned from."""
        policy = self.learner.policy
        batch, episodes = self.collector.collect(policy)
        if self.mixer is None:
            return alone(batch, episodes, policy)
        return self.mixer.mix(batch, episodes, policy)

    def learn(self, mixed: Mixed) -> Progress:
        """Learn from what was played, and look at the policy if it is time."""
        config, before = self.config, self.env_steps
        learned = self.learner.learn(
            [mixed.fresh, *mixed.others, *self.past],
            before / config.env_steps,
            mixed.shares,
            mixed.floors,
        )
        self.collector.critic_memory = learned.critic_memory
        if config.learn.reuse is not None:
            again = mixed.fresh.again(config.learn.reuse.weight)
            self.past = [again, *self.past][: config.learn.reuse.iterations]
        self.env_steps += mixed.env_steps
        self.iteration += 1
        self.mean.take_in(self.learner.actor_weights, mixed.env_steps)
        told = self._told(learned.figures)
        look = None
        if self._crossed(before, config.evaluation.every) or self.env_steps >= config.env_steps:
            look, mean = self._look()
            self.curve.append(
                CurveRow.of(self.env_steps, look, mean, mixed.episodes, learned.figures)
            )
        return Progress(
            self.iteration,
            self.env_steps,
            config.env_steps,
            mixed.episodes,
            learned.figures,
            look,
            told,
        )

    def _look(self) -> tuple[Look, Look | None]:
        """Look at the team and at its mean, if there is one; keep who won most so far."""
        policy, weights = self.learner.policy, self.mean.weights()
        look = self._seen(policy, mean=False)
        if weights is None:
            return look, None
        return look, self._seen(policy.with_weights(weights), mean=True)

    def _seen(self, policy: TeamPolicy, *, mean: bool) -> Look:
        look = look_at(policy, self._judges, self._seeds.child("looks"))
        self.best = better(self.best, BestTeam(policy, self.env_steps, look.wins, mean))
        return look

    def _told(self, figures: LearnFigures) -> AmalFigures | None:
        if self.mixer is None:
            return None
        self.told.append(self.mixer.learned(figures, self.learner.policy, self.env_steps))
        return self.told[-1]

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

    def judge(self, policy: TeamPolicy) -> Look:
        """Look at a policy from fresh starts, which no look before has used."""
        worlds = self._make(self.config, self.config.evaluation.final_episodes)
        return look_at(policy, worlds, self._seeds.child("final"))

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
            "best": None if self.best is None else self.best.values(),
        }
        arrays |= {f"mean/{name}": array for name, array in self.mean.state().items()}
        if self.best is not None:
            arrays |= {f"best/{name}": array for name, array in self.best.policy.weights.items()}
        if self.mixer is not None:
            mixed, kept["mixer"] = self.mixer.state()
            arrays |= {f"mixer/{name}": array for name, array in mixed.items()}
            kept["told"] = [each.as_dict() for each in self.told]
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
        self.mean.restore(under("mean/", arrays))
        self.best = best_of(values["best"], under("best/", arrays), self.learner.policy)
        if self.mixer is not None:
            self.mixer.restore(under("mixer/", arrays), values["mixer"])
            self.told = [AmalFigures(**each) for each in values["told"]]
