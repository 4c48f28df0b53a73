"""The defects of a team's training, each planted by replacing one seam or one setting."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from agent_gym.core import Seeds
from agent_gym.evaluation.battle import record, write_replay
from agent_gym.evaluation.marl import Verdict, compare_teams
from agent_gym.training.marl import look_at, shipped_config
from agent_gym.training.marl.amal import MutualInformationEstimator
from agent_gym.training.marl.audit import Seams, TeamSubject
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.losses import PolicyLoss
from agent_gym.training.marl.runs import changed
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.worlds import battle_worlds
from tests.training import marl_broken_agents as agents
from tests.training import marl_broken_learners as learners
from tests.training.marl_samples import shaken


def loose_loss(terms, clip, entropy_weight):
    """1: a loss that broadcasts."""
    loss = -(terms.log_probs * terms.advantages).mean()
    return PolicyLoss(loss, loss, loss, loss)


class Mates:
    """2: a policy for the first agent, and another network for the others."""

    def __init__(self, policy):
        self._own, self._other = policy, shaken(policy, seed=7)
        self.memory = policy.memory

    def act(self, seen, legal, memory, draws=None):
        own = self._own.act(seen, legal, memory, draws)
        actions = own.actions.copy()
        actions[..., 1:] = self._other.act(seen, legal, memory, draws).actions[..., 1:]
        return own._replace(actions=actions)


class MatesCollector(Collector):
    def collect(self, policy, n_steps=None):
        return super().collect(Mates(policy), n_steps)


class Lawless:
    """6: draws among all actions, legal or not."""

    def __init__(self, policy):
        self._policy = policy

    def act(self, seen, legal, memory, draws=None):
        return self._policy.act(seen, np.ones_like(legal), memory, draws)


class LawlessCollector(Collector):
    def collect(self, policy, n_steps=None):
        return super().collect(Lawless(policy), n_steps)


class WindowEnds(Collector):
    """11: a window that is full ends every episode."""

    def collect(self, policy, n_steps=None):
        batch, episodes = super().collect(policy, n_steps)
        ended = batch.ended.copy()
        ended[-1] = True
        return replace(batch, ended=ended), episodes


def session_with(collector):
    def make(config, make_worlds, mixer):
        made = Session(config, make_worlds, mixer)
        made.collector.__class__ = collector
        return made

    return make


class Predictability(MutualInformationEstimator):
    """6: how well one head foretells the step, compared with the others."""

    def __call__(self, told):
        errors = np.square(told.truth[:, None] - told.mean).sum(axis=-1)
        return np.maximum(errors.mean(axis=1) - errors[:, 0], 0.0)


class Endless:
    """11: time never runs out."""

    def __init__(self, worlds):
        self._worlds = worlds

    def __getattr__(self, name):
        return getattr(self._worlds, name)

    def step(self, actions):
        found = self._worlds.step(actions)
        return found._replace(ended=np.zeros_like(found.ended))


def endless_auxiliaries(config, n_envs):
    own = config.amal.num_auxiliary_agents
    worlds = battle_worlds(config, n_envs)
    return Endless(worlds) if n_envs == own else worlds


def load_partly(folder):
    """16: half of the team is left random."""
    return shaken(Seams().load(folder), seed=3)


class Drawing:
    """17: draws whatever it is told."""

    def __init__(self, policy):
        self._policy, self.memory = policy, policy.memory
        self._rng = Seeds(0).rng()

    def act(self, seen, legal, memory, draws=None):
        return self._policy.act(seen, legal, memory, self._rng.random(legal.shape[:-1]))


def by_mean(runs, *, ties):
    """18 and 21: whoever was faster on average, wins; with ``ties`` also where nobody wins."""
    found = compare_teams([*runs])
    tasks = {}
    for name, task in found.tasks.items():
        own = {
            arm: [run.reached(0.8, task.until) for run in f.runs] for arm, f in task.arms.items()
        }
        mean = {arm: np.mean([steps for steps, _ in each]) for arm, each in own.items()}
        solved = all(seen for _, seen in own["amal"])
        faster = mean["amal"] < min(each for arm, each in mean.items() if arm != "amal")
        won = not solved if ties else faster
        said = {"amal": Verdict("beats" if won or faster else "not shown", "on average")}
        tasks[name] = replace(task, verdicts=said)
    return replace(found, tasks=tasks)


def cut_record(player, battle, start):
    """20: no more than 200 steps."""
    whole = record(player, battle, start)
    header = whole.header.model_copy(update={"steps": min(200, whole.header.steps)})
    return replace(whole, header=header, rows=whole.rows[:200]).sealed()


def write_elsewhere(path, replay):
    """20: below a folder of its own choice."""
    (path.parent / "Replays").mkdir()
    write_replay(path.parent / "Replays" / path.name, replay)


class Plant(NamedTuple):
    """A defect: its number, the check that must find it, and who else may."""

    number: int
    name: str
    check: str
    seams: Seams = Seams()
    config: Mapping[str, Any] = MappingProxyType({})
    also: tuple[str, ...] = ()

    @property
    def subject(self) -> TeamSubject:
        config = changed(shipped_config("amal"), self.config, where=self.name)
        return TeamSubject(self.name, config, self.seams)


def planted(number, check, *also, name="", config=None, **seams):
    (part,) = seams.values() if seams else ("settings",)
    said = name or getattr(part, "__name__", str(part))
    return Plant(number, said, check, Seams(**seams), config or {}, also)


PLANTS = (
    planted(
        1,
        "credit",
        "bonus",
        "correction",
        "living",
        "whole-team",
        "agent-id",
        learner=learners.OuterProduct,
    ),
    planted(1, "credit", policy_loss=loose_loss),
    planted(2, "whole-team", "living", "agent-id", learner=learners.FirstAgentAlone),
    planted(2, "whole-team", name="mates", session=session_with(MatesCollector)),
    planted(
        2,
        "whole-team",
        "greedy",
        name="mates_in_looks",
        look=lambda p, w, s: look_at(Mates(p), w, s),
    ),
    planted(3, "bonus", learner=learners.NoShares),
    planted(3, "bonus", agent=agents.OneNumber),
    planted(3, "bonus", agent=agents.OtherSteps),
    planted(4, "correction", learner=learners.Uncorrected),
    planted(4, "correction", name="no-correction", config={"learn.reuse.corrected": False}),
    planted(5, "bonus", learner=learners.WrongSign),
    planted(6, "information", estimator=Predictability),
    planted(6, "information", name="one-head-error", config={"amal.information": "error"}),
    planted(6, "information", "whole-team", name="lawless", session=session_with(LawlessCollector)),
    planted(7, "fitness", agent=agents.NearInWeights),
    planted(7, "fitness", agent=agents.NoRegion),
    planted(7, "fitness", agent=agents.Counterfactual),
    planted(8, "auxiliary-teams", agent=agents.TwoTeams),
    planted(8, "auxiliary-teams", agent=agents.NeverRenewed),
    planted(9, "auxiliary-rows", "auxiliary-teams", agent=agents.NeverLearned),
    planted(9, "auxiliary-rows", agent=agents.PassedOff),
    planted(10, "model-apart", agent=agents.Leaking),
    planted(10, "model-apart", agent=agents.LeakingInPlay),
    planted(10, "model-apart", agent=agents.LeakingScales),
    planted(10, "model-apart", name="symmetric-model", config={"amal.model.symmetric": True}),
    planted(10, "model-apart", agent=agents.OneActor),
    planted(11, "endings", name="window_ends", session=session_with(WindowEnds)),
    planted(11, "endings", learner=learners.BorderEnds),
    planted(11, "endings", "auxiliary-teams", make_worlds=endless_auxiliaries),
    planted(12, "living", learner=learners.DeadCount),
    planted(13, "scales", learner=learners.OneBound),
    planted(13, "scales", learner=learners.NoValueNorm),
    planted(13, "agent-id", "credit", "correction", "living", learner=learners.NoIds),
    planted(14, "updates", learner=learners.OneUpdate),
    planted(15, "world-model", agent=agents.AcrossEnds),
    planted(15, "world-model", name="no-updates", config={"amal.model.updates": 0}),
    planted(16, "save-load", agent=agents.Forgetful),
    planted(16, "save-load", load=load_partly),
    planted(17, "greedy", name="drawn", look=lambda p, w, s: look_at(Drawing(p), w, s)),
    planted(18, "verdicts", name="by_mean", compare=lambda runs: by_mean(runs, ties=False)),
    planted(19, "all-steps", agent=agents.Uncounted),
    planted(20, "replays", record=cut_record),
    planted(20, "replays", write=write_elsewhere),
    planted(21, "verdicts", name="without_a_win", compare=lambda runs: by_mean(runs, ties=True)),
)
